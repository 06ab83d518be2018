//! Messages over a program's standard streams, one per line.

use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

use super::lines::{Line, next_line};
use super::process::{ServerProcess, Streams};
use super::stderr::Tail;
use super::{Call, OwnedTask};
use crate::audience::{Ear, Received};
use crate::correlate::{Correlator, Ended, Outcome};
use crate::endpoint::Command;
use crate::error::{Counted, Evidence, McpError};
use crate::flood::Flooded;
use crate::limits::Limits;
use crate::message::Message;
use crate::secrets::Secrets;
use crate::serve::answer;

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
    secrets: Secrets,
}

#[derive(Debug, Default)]
struct Shared {
    requests: Correlator,
    /// Told when nothing more is to be written.
    closing: Notify,
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
    pub(crate) fn start(
        command: &Command,
        limits: &Limits,
        ear: &Arc<Ear>,
    ) -> Result<Self, McpError> {
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
                Outward {
                    answers,
                    shared: Arc::clone(&shared),
                    ear: Arc::clone(ear),
                },
                limits.clone(),
            ))),
            writer: OwnedTask(tokio::spawn(write(input, queued, Arc::clone(&shared)))),
            errors: OwnedTask(tokio::spawn(
                shared.stderr.clone().drain(errors, command.shows_errors),
            )),
            shared,
            limits: limits.clone(),
            secrets: Secrets::of_command(command),
        })
    }

    pub(super) async fn exchange(&self, call: Call<'_>) -> Result<Outcome, McpError> {
        let request = self.shared.requests.open(call.id, Arc::clone(call.signs));
        // A failed send means that the program reads no more; the reader knows why.
        let _closed = self.queue.send(call.body).await;
        match request.answer().await {
            Some(outcome) => Ok(outcome),
            None => Err(self.failure(call.method).await),
        }
    }

    pub(super) async fn tell(&self, body: String) -> Result<(), McpError> {
        self.queue
            .send(body)
            .await
            .map_err(|_closed| McpError::Closed)
    }

    pub(super) fn try_tell(&self, body: String) {
        // A full queue means that the program does not read; it would not see this either.
        let _full = self.queue.try_send(body);
    }

    pub(super) fn requests(&self) -> &Correlator {
        &self.shared.requests
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn evidence(&self) -> Box<Evidence> {
        let noise = self
            .shared
            .noise
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Box::new(Evidence {
            stderr: self.secrets.hidden(self.shared.stderr.text()),
            skipped_lines: noise.lines,
            last_skipped: self.secrets.hidden(noise.last.clone()),
        })
    }

    /// Closes the program's input, then asks, then kills: the order of the specification.
    pub(super) async fn close(&self) {
        let Self {
            process,
            queue: _,
            shared,
            reader,
            writer,
            errors,
            limits,
            secrets: _,
        } = self;
        shared.requests.end(Ended::Closed);
        shared.closing.notify_one();
        // The writer ends when the queue is empty, unless the program does not read its input.
        all_finished(&[writer], limits.close).await;
        writer.abort();
        let ended = process.ended_within(limits.close).await;
        // Streams still open after the end belong to processes that the program started.
        let alone = ended && all_finished(&[reader, errors], EXIT_GRACE).await;
        if !alone {
            process.terminate().await;
            if process.ended_within(limits.close).await {
                all_finished(&[reader, errors], limits.close).await;
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
            Some(Ended::Flooded) => self.limits.flooded(),
            Some(Ended::Closed) => McpError::Closed,
            Some(Ended::ByServer) | None => McpError::Exited {
                method: method.to_owned(),
                status: self.exit_status().await,
                evidence: self.evidence(),
            },
        }
    }

    /// How a program ended that closed its output; none while it still runs. What it wrote to its error
    /// output is read by then.
    pub(super) async fn exit_status(&self) -> Option<ExitStatus> {
        let ended = self.process.ended_within(EXIT_GRACE).await;
        let status = if ended {
            self.process.reap().await
        } else {
            None
        };
        all_finished(&[&self.errors], EXIT_GRACE).await;
        status
    }
}

async fn write(mut input: ChildStdin, mut queued: mpsc::Receiver<String>, shared: Arc<Shared>) {
    loop {
        let body = tokio::select! {
            body = queued.recv() => body,
            () = shared.closing.notified() => {
                // What is in the queue is still written; nothing enters it any more.
                queued.close();
                continue;
            }
        };
        let Some(body) = body else { return };
        let mut line = answer::on_one_line(body);
        line.push('\n');
        let written = input.write_all(line.as_bytes()).await;
        if written.is_err() || input.flush().await.is_err() {
            // Answers already written may still be in the pipe; the reader ends the rest.
            sleep(EXIT_GRACE).await;
            shared.requests.end(Ended::ByServer);
            return;
        }
    }
}

/// Where the reader takes what it reads.
struct Outward {
    answers: mpsc::WeakSender<String>,
    shared: Arc<Shared>,
    ear: Arc<Ear>,
}

async fn read(output: ChildStdout, outward: Outward, limits: Limits) {
    let mut output = BufReader::with_capacity(64 * 1024, output);
    let shared = &outward.shared;
    let reason = loop {
        let line = match next_line(&mut output, limits.message_bytes).await {
            Ok(Line::Text(line)) => line,
            Ok(Line::TooLong) => break Ended::TooLarge,
            Ok(Line::End) | Err(_) => break Ended::ByServer,
        };
        match Message::parse_all(&line) {
            Ok(messages) => {
                if outward.take(messages).is_err() {
                    break Ended::Flooded;
                }
            }
            Err(_not_a_message) if skip(&line, shared, limits.noise_bytes) => {}
            Err(_not_a_message) => break Ended::TooNoisy,
        }
    };
    shared.requests.end(reason);
}

impl Outward {
    fn take(&self, messages: Vec<Message>) -> Result<(), Flooded> {
        for received in messages {
            match received.into() {
                Received::Answer { id, outcome } => self.shared.requests.settle(&id, outcome),
                Received::Other(message) => {
                    if let Some(answer) = self.ear.hear(message)?
                        && let Some(queue) = self.answers.upgrade()
                    {
                        // Waiting here could block both sides, each on the other's full pipe. A
                        // server that does not read its input loses its answer.
                        let _full = queue.try_send(answer);
                    }
                }
            }
        }
        Ok(())
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
