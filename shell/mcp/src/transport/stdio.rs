//! Messages over a program's standard streams, one per line.

use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

use super::AbortOnDrop;
use super::bounded_lines::{LineRead, next_line};
use super::server_process::{ChildStreams, ServerProcess};
use super::stderr_tail::StderrTail;
use crate::connection_limits::ConnectionLimits;
use crate::endpoint::Command;
use crate::error::{LimitedItem, McpError, ServerDiagnostics};
use crate::mcp_request::McpRequest;
use crate::message_handler::{IncomingMessage, MessageDispatcher};
use crate::message_rate::MessageRateExceeded;
use crate::pending_requests::{CloseReason, PendingRequests, RpcOutcome};
use crate::rpc_message::RpcMessage;
use crate::serve::encode;
use toolwarden_secrets::Secrets;

/// The capacity of the write queue; senders wait while it is full.
const WRITE_QUEUE_LENGTH: usize = 64;
/// How long a program that closed its output may take to exit before it counts as running.
const EXIT_GRACE: Duration = Duration::from_millis(500);
/// How much of a skipped line is shown.
const SHOWN_CHARS: usize = 200;

/// A program that the client talks to over its standard streams.
#[derive(Debug)]
pub(crate) struct Stdio {
    process: ServerProcess,
    queue: mpsc::Sender<String>,
    shared: Arc<Shared>,
    reader: AbortOnDrop,
    writer: AbortOnDrop,
    errors: AbortOnDrop,
    limits: ConnectionLimits,
    secrets: Secrets,
}

#[derive(Debug, Default)]
struct Shared {
    requests: PendingRequests,
    /// Notified when no further messages will be written.
    closing: Notify,
    noise: Mutex<SkippedOutput>,
    stderr: StderrTail,
}

#[derive(Debug, Default)]
struct SkippedOutput {
    lines: u64,
    bytes: usize,
    last: String,
}

impl Stdio {
    /// Starts the program.
    pub(crate) fn start(
        command: &Command,
        limits: &ConnectionLimits,
        ear: &Arc<MessageDispatcher>,
    ) -> Result<Self, McpError> {
        let (process, streams) = ServerProcess::start(command)?;
        let ChildStreams {
            input,
            output,
            errors,
        } = streams;
        let shared = Arc::new(Shared::default());
        let (queue, queued) = mpsc::channel(WRITE_QUEUE_LENGTH);
        let answers = queue.downgrade();
        Ok(Self {
            process,
            queue,
            reader: AbortOnDrop(tokio::spawn(read_messages(
                output,
                MessageRouter {
                    answers,
                    shared: Arc::clone(&shared),
                    dispatcher: Arc::clone(ear),
                },
                limits.clone(),
            ))),
            writer: AbortOnDrop(tokio::spawn(write_messages(
                input,
                queued,
                Arc::clone(&shared),
            ))),
            errors: AbortOnDrop(tokio::spawn(
                shared.stderr.clone().drain(errors, command.shows_errors),
            )),
            shared,
            limits: limits.clone(),
            secrets: command.secrets(),
        })
    }

    pub(super) async fn exchange(&self, request: McpRequest<'_>) -> Result<RpcOutcome, McpError> {
        let pending = self.shared.requests.open(request.id, request.activity());
        // A failed send means that the program has stopped reading; the reader knows why.
        let _closed = self.queue.send(request.body()).await;
        match pending.response().await {
            Some(outcome) => Ok(outcome),
            None => Err(self.close_error(request.method).await),
        }
    }

    pub(super) async fn send_message(&self, body: String) -> Result<(), McpError> {
        self.queue
            .send(body)
            .await
            .map_err(|_closed| McpError::Closed)
    }

    pub(super) fn try_send_message(&self, body: String) {
        // A full queue means that the program does not read; it would not see this message either.
        let _full = self.queue.try_send(body);
    }

    pub(super) fn requests(&self) -> &PendingRequests {
        &self.shared.requests
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn diagnostics(&self) -> Box<ServerDiagnostics> {
        let noise = self
            .shared
            .noise
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Box::new(ServerDiagnostics {
            stderr: self.secrets.mask(self.shared.stderr.text()),
            skipped_lines: noise.lines,
            last_skipped: self.secrets.mask(noise.last.clone()),
        })
    }

    /// Closes the program's input, then sends SIGTERM, then kills: the order of the specification.
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
        shared.requests.fail_all(CloseReason::ByClient);
        shared.closing.notify_one();
        // The writer finishes when the queue is empty, unless the program does not read its input.
        all_finished(&[writer], limits.close).await;
        writer.abort();
        let ended = process.wait_for_exit(limits.close).await;
        // Streams still open after the exit belong to processes that the program started.
        let alone = ended && all_finished(&[reader, errors], EXIT_GRACE).await;
        if !alone {
            process.terminate().await;
            if process.wait_for_exit(limits.close).await {
                all_finished(&[reader, errors], limits.close).await;
            }
        }
        let _status = timeout(limits.close, process.reap()).await;
    }

    /// Why the connection ended.
    async fn close_error(&self, method: &str) -> McpError {
        match self.shared.requests.close_reason() {
            Some(CloseReason::TooLarge) => McpError::TooLarge {
                limit: self.limits.message_bytes,
            },
            Some(CloseReason::TooNoisy) => McpError::TooMany {
                what: LimitedItem::NoiseBytes,
                limit: self.limits.noise_bytes,
            },
            Some(CloseReason::TooManyMessages) => self.limits.message_rate_error(),
            Some(CloseReason::ByClient) => McpError::Closed,
            Some(CloseReason::ByServer) | None => McpError::Exited {
                method: method.to_owned(),
                status: self.exit_status().await,
                evidence: self.diagnostics(),
            },
        }
    }

    /// The exit status of a program that closed its output; `None` while it is still running. Its
    /// error output has been read by then.
    pub(super) async fn exit_status(&self) -> Option<ExitStatus> {
        let ended = self.process.wait_for_exit(EXIT_GRACE).await;
        let status = if ended {
            self.process.reap().await
        } else {
            None
        };
        all_finished(&[&self.errors], EXIT_GRACE).await;
        status
    }
}

async fn write_messages(
    mut input: ChildStdin,
    mut queued: mpsc::Receiver<String>,
    shared: Arc<Shared>,
) {
    loop {
        let body = tokio::select! {
            body = queued.recv() => body,
            () = shared.closing.notified() => {
                // Queued messages are still written; new ones are rejected.
                queued.close();
                continue;
            }
        };
        let Some(body) = body else { return };
        let mut line = encode::on_one_line(body);
        line.push('\n');
        let written = input.write_all(line.as_bytes()).await;
        if written.is_err() || input.flush().await.is_err() {
            // Responses already written may still be in the pipe; the reader fails the remaining
            // requests.
            sleep(EXIT_GRACE).await;
            shared.requests.fail_all(CloseReason::ByServer);
            return;
        }
    }
}

/// Where the reader delivers messages.
struct MessageRouter {
    answers: mpsc::WeakSender<String>,
    shared: Arc<Shared>,
    dispatcher: Arc<MessageDispatcher>,
}

async fn read_messages(output: ChildStdout, outward: MessageRouter, limits: ConnectionLimits) {
    let mut output = BufReader::with_capacity(64 * 1024, output);
    let shared = &outward.shared;
    let reason = loop {
        let line = match next_line(&mut output, limits.message_bytes).await {
            Ok(LineRead::Text(line)) => line,
            Ok(LineRead::TooLong) => break CloseReason::TooLarge,
            Ok(LineRead::End) | Err(_) => break CloseReason::ByServer,
        };
        match RpcMessage::parse_all(&line) {
            Ok(messages) => {
                if outward.route(messages).is_err() {
                    break CloseReason::TooManyMessages;
                }
            }
            Err(_not_a_message) if count_skipped_line(&line, shared, limits.noise_bytes) => {}
            Err(_not_a_message) => break CloseReason::TooNoisy,
        }
    };
    shared.requests.fail_all(reason);
}

impl MessageRouter {
    fn route(&self, messages: Vec<RpcMessage>) -> Result<(), MessageRateExceeded> {
        for received in messages {
            match received.into() {
                IncomingMessage::Response { id, outcome } => {
                    self.shared.requests.complete(&id, outcome)
                }
                IncomingMessage::Unsolicited(message) => {
                    if let Some(answer) = self.dispatcher.dispatch(message)?
                        && let Some(queue) = self.answers.upgrade()
                    {
                        // Waiting here could deadlock both sides, each on the other's full pipe. A
                        // server that does not read its input loses the response.
                        let _full = queue.try_send(answer);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Counts a line that is not a message; returns false when there are too many.
fn count_skipped_line(line: &[u8], shared: &Shared, limit: usize) -> bool {
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

/// Waits until all tasks have finished.
async fn all_finished(tasks: &[&AbortOnDrop], limit: Duration) -> bool {
    let poll = async {
        while !tasks.iter().all(|task| task.0.is_finished()) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(limit, poll).await.is_ok()
}
