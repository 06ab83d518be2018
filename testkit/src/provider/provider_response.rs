use std::future::pending;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::chunked_body::ChunkedBody;

/// One response, and how its bytes are sent.
#[derive(Clone, Debug)]
pub struct ProviderResponse {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    delay: Duration,
    chunk_delay: Duration,
    splits: Vec<usize>,
    body_end: BodyEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyEnd {
    Whole,
    Broken,
    Hanging,
}

impl ProviderResponse {
    /// Any bytes, with a status and a content type.
    #[must_use]
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body: body.into(),
            delay: Duration::ZERO,
            chunk_delay: Duration::ZERO,
            splits: Vec::new(),
            body_end: BodyEnd::Whole,
        }
    }

    /// A successful JSON response.
    #[must_use]
    pub fn json(body: &Value) -> Self {
        Self::new(200, "application/json", body.to_string())
    }

    /// A successful event stream.
    #[must_use]
    pub fn events(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/event-stream", body)
    }

    /// An error status with the usual error body.
    #[must_use]
    pub fn refusal(status: u16, message: &str) -> Self {
        let body =
            serde_json::json!({"error": {"message": message, "type": "invalid_request_error"}});
        Self::new(status, "application/json", body.to_string())
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends the response after a pause.
    #[must_use]
    pub const fn after_delay(mut self, pause: Duration) -> Self {
        self.delay = pause;
        self
    }

    /// Pauses between the pieces of the body.
    #[must_use]
    pub const fn with_chunk_delay(mut self, pause: Duration) -> Self {
        self.chunk_delay = pause;
        self
    }

    /// Splits the body at the given offsets and sends each piece separately.
    #[must_use]
    pub fn split_at(mut self, offsets: impl IntoIterator<Item = usize>) -> Self {
        self.splits = offsets.into_iter().collect();
        self
    }

    /// Breaks the connection where the body would end.
    #[must_use]
    pub const fn broken(mut self) -> Self {
        self.body_end = BodyEnd::Broken;
        self
    }

    /// Never ends the body.
    #[must_use]
    pub const fn hanging(mut self) -> Self {
        self.body_end = BodyEnd::Hanging;
        self
    }

    /// The status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// The declared type of the body.
    #[must_use]
    pub fn content_type(&self) -> &str {
        let found = self.headers.iter().find(|(name, _)| name == "content-type");
        found.map_or("", |(_, value)| value.as_str())
    }

    /// The bytes of the body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    #[expect(
        clippy::expect_used,
        reason = "a script that is not HTTP is a broken test"
    )]
    pub(super) async fn respond(self) -> Response<Body> {
        sleep(self.delay).await;
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(name, value);
        }
        let body = if self.splits.is_empty() && self.body_end == BodyEnd::Whole {
            Body::from(self.body)
        } else {
            Body::new(self.into_chunks())
        };
        response.body(body).expect("the script is HTTP")
    }

    fn into_chunks(self) -> ChunkedBody {
        // Capacity one: a piece is written to the socket before the next one is produced.
        let (sender, pieces) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut from = 0;
            for at in self.splits.iter().copied().chain([self.body.len()]) {
                let at = at.clamp(from, self.body.len());
                let piece = self.body.get(from..at).unwrap_or_default().to_vec();
                from = at;
                if !piece.is_empty() && sender.send(Ok(piece)).await.is_err() {
                    return;
                }
                // Time to write the piece to the socket, so that pieces are not merged.
                sleep(self.chunk_delay.max(Duration::from_millis(1))).await;
            }
            match self.body_end {
                BodyEnd::Whole => {}
                BodyEnd::Broken => {
                    // The client may already be gone.
                    let _gone = sender.send(Err(())).await;
                }
                BodyEnd::Hanging => pending().await,
            }
        });
        ChunkedBody(pieces)
    }
}
