//! HTTP responses, in one piece or as a stream.

use std::collections::VecDeque;

use serde_json::Value;
use tokio::time::timeout;
use toolwarden_model::event_stream::EventReader;

use super::SOON;

/// An answer that is read message by message.
pub(crate) struct Exchange {
    pub(crate) status: u16,
    pub(crate) is_stream: bool,
    /// The id of the last event.
    pub(crate) last_id: Option<String>,
    headers: reqwest::header::HeaderMap,
    response: reqwest::Response,
    reader: EventReader,
    queued: VecDeque<HttpMessage>,
    ended: bool,
}

/// One message of an answer, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpMessage {
    pub(crate) id: Option<String>,
    pub(crate) text: String,
}

impl Exchange {
    pub(crate) fn new(response: reqwest::Response) -> Self {
        let headers = response.headers().clone();
        let kind = headers.get("content-type");
        Self {
            status: response.status().as_u16(),
            is_stream: kind.is_some_and(|it| it == "text/event-stream"),
            last_id: None,
            headers,
            response,
            reader: EventReader::new(64 << 20),
            queued: VecDeque::new(),
            ended: false,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|it| it.to_str().unwrap())
    }

    /// The next event, also an empty one; none at the end.
    pub(crate) async fn event(&mut self) -> Option<HttpMessage> {
        while self.queued.is_empty() && !self.ended {
            self.read().await;
        }
        let told = self.queued.pop_front()?;
        if told.id.is_some() {
            self.last_id.clone_from(&told.id);
        }
        Some(told)
    }

    /// The text of the next message; none at the end.
    pub(crate) async fn text(&mut self) -> Option<String> {
        loop {
            let told = self.event().await?;
            if !told.text.is_empty() {
                return Some(told.text);
            }
        }
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> Value {
        let text = self.text().await.expect("there is another message");
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
    }

    /// Everything up to the end.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(text) = self.text().await {
            all.push(serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}")));
        }
        all
    }

    async fn read(&mut self) {
        if self.is_stream {
            let chunk = timeout(SOON, self.response.chunk()).await;
            match chunk.expect("something comes in time") {
                Ok(Some(bytes)) => {
                    for event in self.reader.feed(&bytes).unwrap() {
                        let text = String::from_utf8(event.data).unwrap();
                        self.queued.push_back(HttpMessage { id: event.id, text });
                    }
                }
                Ok(None) | Err(_) => self.ended = true,
            }
            return;
        }
        let mut text = Vec::new();
        while let Ok(Some(bytes)) = timeout(SOON, self.response.chunk()).await.unwrap() {
            text.extend_from_slice(&bytes);
        }
        let text = String::from_utf8(text).unwrap();
        self.queued.push_back(HttpMessage { id: None, text });
        self.ended = true;
    }
}
