//! Serves one agent over standard input and output, one message per line.

use std::io;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use toolwarden_mcp::error_codes::{INVALID_REQUEST, PARSE_ERROR};
use toolwarden_mcp::protocol::PROTOCOL_VERSION;
use toolwarden_mcp::serve::encode::{self, on_one_line};
use toolwarden_mcp::serve::request_checks::check_stdio_request;
use toolwarden_mcp::{InvalidMessage, RpcError, RpcMessage};

use crate::agent_info::Agent;
use crate::blocking::read_messages;
use crate::conversation::Conversation;
use crate::gateway::Gateway;
use crate::request_context::{NoHeaders, RequestContext};
use crate::response_stream::AgentSender;

/// The most lines that wait to be written.
const MAX_QUEUED_LINES: usize = 1_024;

/// Serves one agent until its input ends.
///
/// # Errors
/// A stream fails.
pub async fn serve(
    gateway: &Gateway,
    principal: &Arc<str>,
    input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<()> {
    let (lines, waiting) = mpsc::channel(MAX_QUEUED_LINES);
    let writer = tokio::spawn(write_lines(output, waiting));
    let serving = StdioSession {
        gateway: gateway.clone(),
        principal: Arc::clone(principal),
        conversation: None,
        lines,
        in_flight: JoinSet::new(),
        open_streams: JoinSet::new(),
        stateless: None,
    };
    let read = serving.read_lines(input).await;
    writer
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
    read
}

struct StdioSession {
    gateway: Gateway,
    principal: Arc<str>,
    conversation: Option<Arc<Conversation>>,
    lines: mpsc::Sender<String>,
    /// Requests whose responses are still to be written.
    in_flight: JoinSet<()>,
    /// Streams that stay open until the connection ends.
    open_streams: JoinSet<()>,
    /// The agent's last description of itself in the stateless era: its notifications need not repeat it.
    stateless: Option<(Arc<Conversation>, Arc<Agent>)>,
}

impl StdioSession {
    async fn read_lines(mut self, input: impl AsyncRead + Unpin + Send) -> io::Result<()> {
        let limit = self.gateway.settings().listen.body_bytes;
        let mut input = BufReader::new(input);
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut bounded = tokio::io::AsyncReadExt::take(&mut input, limit as u64 + 1);
            let read = bounded.read_until(b'\n', &mut line).await?;
            if read == 0 {
                break;
            }
            if line.len() > limit {
                return Err(io::Error::other(format!(
                    "a message is larger than {limit} bytes"
                )));
            }
            if !line.trim_ascii().is_empty() {
                self.handle_line(&line).await;
            }
        }
        self.finish().await;
        if let Some(conversation) = &self.conversation {
            self.gateway.close_conversation(&conversation.id);
        }
        Ok(())
    }

    /// Lets requests in flight finish: an agent that closed its input may still read responses.
    async fn finish(&mut self) {
        let drain = self.gateway.settings().drain;
        let answered = async { while self.in_flight.join_next().await.is_some() {} };
        // Requests that take longer are dropped.
        drop(tokio::time::timeout(drain, answered).await);
    }

    async fn handle_line(&mut self, line: &[u8]) {
        let messages = match read_messages(line, &self.gateway.settings().listen) {
            Ok(messages) => messages,
            Err(invalid) => {
                let code = match invalid {
                    InvalidMessage::TooMany { .. } => INVALID_REQUEST,
                    _ => PARSE_ERROR,
                };
                self.send_error(code, &invalid.to_string()).await;
                return;
            }
        };
        for message in messages {
            match message {
                RpcMessage::Request { id, method, params } if method == "initialize" => {
                    self.initialize(&id, params.as_deref()).await;
                }
                message => self.handle_message(message).await,
            }
        }
    }

    async fn initialize(&mut self, id: &RawValue, params: Option<&RawValue>) {
        let begun = self
            .gateway
            .initialize(&self.principal, None, params, None)
            .await;
        match begun {
            Ok(begun) => {
                // The response is the first message the agent receives.
                self.send_line(encode::result_response(id, &begun.result))
                    .await;
                self.forward_notifications(&begun.conversation);
                self.conversation = Some(begun.conversation);
            }
            Err(error) => self.send_line(encode::response(id, Err(&error))).await,
        }
    }

    /// Writes messages that do not belong to any request.
    fn forward_notifications(&self, conversation: &Arc<Conversation>) {
        let (conversation, lines) = (Arc::clone(conversation), self.lines.downgrade());
        tokio::spawn(async move {
            let mut after = 0;
            while let Some(event) = conversation.standalone_stream.next_after(after).await {
                after = event.number;
                let Some(lines) = lines.upgrade() else {
                    return;
                };
                if lines.send(event.text.to_string()).await.is_err() {
                    return;
                }
            }
        });
    }

    async fn handle_message(&mut self, message: RpcMessage) {
        let (id, params) = match &message {
            RpcMessage::Request { id, params, .. } => (id.clone(), params.as_deref()),
            RpcMessage::Notification { params, .. } => {
                (RawValue::NULL.to_owned(), params.as_deref())
            }
            RpcMessage::Response { .. } => (RawValue::NULL.to_owned(), None),
        };
        let found = match &self.conversation {
            Some(conversation) => Ok((Arc::clone(conversation), conversation.agent.load_full())),
            None => match (&message, self.stateless.clone()) {
                (RpcMessage::Notification { .. }, Some(known)) => Ok(known),
                _ => self.stateless_agent(params),
            },
        };
        let (conversation, agent) = match found {
            Ok(found) => found,
            Err(error) => {
                if matches!(message, RpcMessage::Request { .. }) {
                    self.send_line(encode::response(&id, Err(&error))).await;
                }
                return;
            }
        };
        // The gateway does not wait for a stream that stays open until the end.
        let stays = matches!(&message, RpcMessage::Request { method, .. } if method == "subscriptions/listen");
        let (outlet, mut interim) = AgentSender::channel();
        let context = Arc::new(RequestContext {
            conversation,
            agent,
            claims: None,
            groups: None,
            sender: outlet,
            id,
            headers: Arc::new(NoHeaders),
            trace: None,
            bytes: None,
        });
        let (gateway, lines) = (self.gateway.clone(), self.lines.clone());
        let work = async move {
            let mut work = Box::pin(gateway.take(&context, message));
            let answer = loop {
                tokio::select! {
                    biased;
                    Some(text) = interim.recv() => drop(lines.send(text).await),
                    answer = &mut work => break answer,
                }
            };
            while let Some(text) = interim.try_recv() {
                drop(lines.send(text).await);
            }
            if let Some(text) = answer {
                drop(lines.send(text).await);
            }
        };
        let tasks = if stays {
            &mut self.open_streams
        } else {
            &mut self.in_flight
        };
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    fn stateless_agent(
        &mut self,
        params: Option<&RawValue>,
    ) -> Result<(Arc<Conversation>, Arc<Agent>), RpcError> {
        let says_version = params.is_some_and(|it| it.get().contains(PROTOCOL_VERSION));
        let envelope = check_stdio_request(params).map_err(|refusal| {
            if says_version {
                return refusal.into();
            }
            RpcError {
                code: INVALID_REQUEST,
                message: "send `initialize` first".to_owned(),
                data: None,
            }
        })?;
        let agent = Agent::from_envelope(envelope);
        let gateway = &self.gateway;
        let conversation = gateway.stateless_conversation(&self.principal, params, &agent)?;
        let found = (conversation, Arc::new(agent));
        self.stateless = Some(found.clone());
        Ok(found)
    }

    async fn send_error(&self, code: i64, words: &str) {
        let error = RpcError {
            code,
            message: words.to_owned(),
            data: None,
        };
        self.send_line(encode::response(RawValue::NULL, Err(&error)))
            .await;
    }

    async fn send_line(&self, text: String) {
        // If the agent is gone, the end of its input reports it.
        drop(self.lines.send(text).await);
    }
}

async fn write_lines(
    mut output: impl AsyncWrite + Unpin + Send,
    mut waiting: mpsc::Receiver<String>,
) -> io::Result<()> {
    while let Some(text) = waiting.recv().await {
        let mut line = on_one_line(text);
        line.push('\n');
        output.write_all(line.as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
}
