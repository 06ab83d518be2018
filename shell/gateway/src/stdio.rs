//! An agent on standard streams: one message a line.

use std::io;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use toolwarden_mcp::codes::{INVALID_REQUEST, PARSE_ERROR};
use toolwarden_mcp::protocol::PROTOCOL_VERSION;
use toolwarden_mcp::serve::answer::{self, on_one_line};
use toolwarden_mcp::serve::ladder::check_without_headers;
use toolwarden_mcp::{InvalidMessage, Message, RpcError};

use crate::agent::Agent;
use crate::blocking::read_messages;
use crate::conversation::Conversation;
use crate::gateway::Gateway;
use crate::outlet::Outlet;
use crate::relay::{Asked, NoHeaders};

/// The most lines that wait to be written.
const WAITING: usize = 1_024;

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
    let (lines, waiting) = mpsc::channel(WAITING);
    let writer = tokio::spawn(write(output, waiting));
    let serving = Serving {
        gateway: gateway.clone(),
        principal: Arc::clone(principal),
        conversation: None,
        lines,
        under_way: JoinSet::new(),
        staying: JoinSet::new(),
        stateless: None,
    };
    let read = serving.read(input).await;
    writer
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
    read
}

struct Serving {
    gateway: Gateway,
    principal: Arc<str>,
    conversation: Option<Arc<Conversation>>,
    lines: mpsc::Sender<String>,
    /// Requests whose answers are still to be written.
    under_way: JoinSet<()>,
    /// Streams that stay open until the end.
    staying: JoinSet<()>,
    /// How the agent spoke last in the stateless era: its notifications need not say so again.
    stateless: Option<(Arc<Conversation>, Arc<Agent>)>,
}

impl Serving {
    async fn read(mut self, input: impl AsyncRead + Unpin + Send) -> io::Result<()> {
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
                self.take(&line).await;
            }
        }
        self.finish().await;
        if let Some(conversation) = &self.conversation {
            self.gateway.close_conversation(&conversation.id);
        }
        Ok(())
    }

    /// Lets requests under way be answered: an agent that says no more may still read.
    async fn finish(&mut self) {
        let drain = self.gateway.settings().drain;
        let answered = async { while self.under_way.join_next().await.is_some() {} };
        // What takes longer is given up.
        drop(tokio::time::timeout(drain, answered).await);
    }

    async fn take(&mut self, line: &[u8]) {
        let messages = match read_messages(line, &self.gateway.settings().listen) {
            Ok(messages) => messages,
            Err(invalid) => {
                let code = match invalid {
                    InvalidMessage::TooMany { .. } => INVALID_REQUEST,
                    _ => PARSE_ERROR,
                };
                self.refuse(code, &invalid.to_string()).await;
                return;
            }
        };
        for message in messages {
            match message {
                Message::Request { id, method, params } if method == "initialize" => {
                    self.initialize(&id, params.as_deref()).await;
                }
                message => self.pass(message).await,
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
                // Nothing goes out before the answer.
                self.say(answer::answer_with(id, &begun.result)).await;
                self.stand(&begun.conversation);
                self.conversation = Some(begun.conversation);
            }
            Err(error) => self.say(answer::outcome(id, Err(&error))).await,
        }
    }

    /// Writes what is sent without having been asked for.
    fn stand(&self, conversation: &Arc<Conversation>) {
        let (conversation, lines) = (Arc::clone(conversation), self.lines.downgrade());
        tokio::spawn(async move {
            let mut after = 0;
            while let Some(event) = conversation.standing.after(after).await {
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

    async fn pass(&mut self, message: Message) {
        let (id, params) = match &message {
            Message::Request { id, params, .. } => (id.clone(), params.as_deref()),
            Message::Notification { params, .. } => (RawValue::NULL.to_owned(), params.as_deref()),
            Message::Response { .. } => (RawValue::NULL.to_owned(), None),
        };
        let found = match &self.conversation {
            Some(conversation) => Ok((Arc::clone(conversation), conversation.agent.load_full())),
            None => match (&message, self.stateless.clone()) {
                (Message::Notification { .. }, Some(known)) => Ok(known),
                _ => self.stateless(params),
            },
        };
        let (conversation, agent) = match found {
            Ok(found) => found,
            Err(error) => {
                if matches!(message, Message::Request { .. }) {
                    self.say(answer::outcome(&id, Err(&error))).await;
                }
                return;
            }
        };
        // A stream that stays open until the end is not waited for.
        let stays =
            matches!(&message, Message::Request { method, .. } if method == "subscriptions/listen");
        let (outlet, mut interim) = Outlet::channel();
        let asked = Arc::new(Asked {
            conversation,
            agent,
            claims: None,
            groups: None,
            outlet,
            id,
            headers: Arc::new(NoHeaders),
            trace: None,
            bytes: None,
        });
        let (gateway, lines) = (self.gateway.clone(), self.lines.clone());
        let work = async move {
            let mut work = Box::pin(gateway.take(&asked, message));
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
            &mut self.staying
        } else {
            &mut self.under_way
        };
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    fn stateless(
        &mut self,
        params: Option<&RawValue>,
    ) -> Result<(Arc<Conversation>, Arc<Agent>), RpcError> {
        let says_version = params.is_some_and(|it| it.get().contains(PROTOCOL_VERSION));
        let envelope = check_without_headers(params).map_err(|refusal| {
            if says_version {
                return refusal.into();
            }
            RpcError {
                code: INVALID_REQUEST,
                message: "send `initialize` first".to_owned(),
                data: None,
            }
        })?;
        let agent = Agent::of_envelope(envelope);
        let gateway = &self.gateway;
        let conversation = gateway.stateless_conversation(&self.principal, params, &agent)?;
        let found = (conversation, Arc::new(agent));
        self.stateless = Some(found.clone());
        Ok(found)
    }

    async fn refuse(&self, code: i64, words: &str) {
        let error = RpcError {
            code,
            message: words.to_owned(),
            data: None,
        };
        self.say(answer::outcome(RawValue::NULL, Err(&error))).await;
    }

    async fn say(&self, text: String) {
        // Nobody reads when the agent is gone, which its input tells.
        drop(self.lines.send(text).await);
    }
}

async fn write(
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
