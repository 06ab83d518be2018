//! Messages over a program's standard streams, one per line.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::lines::{Line, next_line};
use super::process::{ServerProcess, Streams};
use super::stderr::Tail;
use super::{Call, OwnedTask};
use crate::correlate::{Correlator, Ended};
use crate::endpoint::Command;
use crate::error::{Counted, Evidence, McpError};
use crate::limits::Limits;
use crate::message::{self, Message};

/// Messages waiting to be written; more of them make the sender wait.
const QUEUE: usize = 64;
/// How long a program that closed its output may take to end before it counts as running.
const EXIT_GRACE: Duration = Duration::from_millis(500);
/// How much of a skipped line is shown.
const SHOWN_CHARS: usize = 200;

/// A program spoken to over its standard streams.
#[derive(Debug)]
pub(crate) struct Stdio {
    process: ServerProcess,
    queue: mpsc::Sender<String>,
    shared: Arc<Shared>,
    reader: OwnedTask,
    writer: OwnedTask,
    errors: OwnedTask,
    limits: Limits,
}

#[derive(Debug, Default)]
struct Shared {
    requests: Correlator,
    noise: Mutex<Noise>,
    stderr: Tail,
}

#[derive(Debug, Default)]
struct Noise {
    lines: u64,
    bytes: usize,
    last: String,
}

impl Stdio {
    /// Starts the program.
    pub(crate) fn start(command: &Command, limits: &Limits) -> Result<Self, McpError> {
        let (process, streams) = ServerProcess::start(command)?;
        let Streams {
            input,
            output,
            errors,
        } = streams;
        let shared = Arc::new(Shared::default());
        let (queue, queued) = mpsc::channel(QUEUE);
        let answers = queue.downgrade();
        Ok(Self {
            process,
            queue,
            reader: OwnedTask(tokio::spawn(read(
                output,
                answers,
                Arc::clone(&shared),
                limits.clone(),
            ))),
            writer: OwnedTask(tokio::spawn(write(input, queued, Arc::clone(&shared)))),
            errors: OwnedTask(tokio::spawn(shared.stderr.clone().drain(errors))),
            shared,
            limits: limits.clone(),
        })
    }

    pub(super) async fn exchange(&self, call: &Call) -> Result<Box<RawValue>, McpError> {
        let request = self.shared.requests.open(call.id);
        // A failed send means that the program reads no more; the reader knows why.
        let _closed = self.queue.send(call.body.clone()).await;
        match request.answer().await {
            Some(outcome) => outcome.map_err(|error| error.for_method(&call.method)),
            None => Err(self.failure(&call.method).await),
        }
    }

    pub(super) async fn notify(&self, body: String) -> Result<(), McpError> {
        self.queue
            .send(body)
            .await
            .map_err(|_closed| McpError::Closed)
    }

    pub(super) fn try_notify(&self, body: String) {
        // A full queue means that the program does not read; it would not see this either.
        let _full = self.queue.try_send(body);
    }

    pub(super) fn stray(&self) -> Option<String> {
        self.shared.requests.stray()
    }

    pub(super) fn evidence(&self) -> Box<Evidence> {
        let noise = self
            .shared
            .noise
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Box::new(Evidence {
            stderr: self.shared.stderr.text(),
            skipped_lines: noise.lines,
            last_skipped: noise.last.clone(),
        })
    }

    /// Closes the program's input, then asks, then kills: the order of the specification.
    pub(super) async fn close(self) {
        let Self {
            process,
            queue,
            shared: _,
            reader,
            mut writer,
            errors,
            limits,
        } = self;
        drop(queue);
        // The writer ends when the queue is empty, unless the program does not read its input.
        let _blocked = timeout(limits.close, &mut writer.0).await;
        drop(writer);
        let ended = process.ended_within(limits.close).await;
        // Streams still open after the end belong to processes that the program started.
        let alone = ended && all_finished(&[&reader, &errors], EXIT_GRACE).await;
        if !alone {
            process.terminate().await;
            if process.ended_within(limits.close).await {
                all_finished(&[&reader, &errors], limits.close).await;
            }
        }
        let _status = timeout(limits.close, process.reap()).await;
    }

    /// Why the connection ended.
    async fn failure(&self, method: &str) -> McpError {
        match self.shared.requests.ended() {
            Some(Ended::TooLarge) => McpError::TooLarge {
                limit: self.limits.message_bytes,
            },
            Some(Ended::TooNoisy) => McpError::TooMany {
                what: Counted::NoiseBytes,
                limit: self.limits.noise_bytes,
            },
            Some(Ended::ByServer) | None => {
                let ended = self.process.ended_within(EXIT_GRACE).await;
                let status = if ended {
                    self.process.reap().await
                } else {
                    None
                };
                all_finished(&[&self.errors], EXIT_GRACE).await;
                McpError::Exited {
                    method: method.to_owned(),
                    status,
                    evidence: self.evidence(),
                }
            }
        }
    }
}

async fn write(mut input: ChildStdin, mut queued: mpsc::Receiver<String>, shared: Arc<Shared>) {
    while let Some(mut body) = queued.recv().await {
        body.push('\n');
        let written = input.write_all(body.as_bytes()).await;
        if written.is_err() || input.flush().await.is_err() {
            // Answers already written may still be in the pipe; the reader ends the rest.
            sleep(EXIT_GRACE).await;
            shared.requests.end(Ended::ByServer);
            return;
        }
    }
}

async fn read(
    output: ChildStdout,
    answers: mpsc::WeakSender<String>,
    shared: Arc<Shared>,
    limits: Limits,
) {
    let mut output = BufReader::with_capacity(64 * 1024, output);
    let reason = loop {
        let line = match next_line(&mut output, limits.message_bytes).await {
            Ok(Line::Text(line)) => line,
            Ok(Line::TooLong) => break Ended::TooLarge,
            Ok(Line::End) | Err(_) => break Ended::ByServer,
        };
        match Message::parse_all(&line) {
            Ok(messages) => take(messages, &answers, &shared),
            Err(_not_a_message) if skip(&line, &shared, limits.noise_bytes) => {}
            Err(_not_a_message) => break Ended::TooNoisy,
        }
    };
    shared.requests.end(reason);
}

fn take(messages: Vec<Message>, answers: &mpsc::WeakSender<String>, shared: &Shared) {
    for received in messages {
        match received {
            Message::Response { id, outcome } => shared.requests.settle(&id, outcome),
            Message::Request {
                id,
                method,
                params: _,
            } => {
                if let Some(queue) = answers.upgrade() {
                    // Waiting here could block both sides, each on the other's full pipe. A
                    // server that does not read its input loses its answer.
                    let _full = queue.try_send(message::answer(&id, &method));
                }
            }
            Message::Notification { .. } => {}
        }
    }
}

/// Counts a line that is no message; false when there were too many.
fn skip(line: &[u8], shared: &Shared, limit: usize) -> bool {
    if line.trim_ascii().is_empty() {
        return true;
    }
    let mut noise = shared.noise.lock().unwrap_or_else(PoisonError::into_inner);
    noise.lines += 1;
    noise.bytes = noise.bytes.saturating_add(line.len());
    noise.last = String::from_utf8_lossy(line)
        .trim()
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .take(SHOWN_CHARS)
        .collect();
    noise.bytes <= limit
}

/// Waits until all tasks have ended.
async fn all_finished(tasks: &[&OwnedTask], limit: Duration) -> bool {
    let poll = async {
        while !tasks.iter().all(|task| task.0.is_finished()) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(limit, poll).await.is_ok()
}
