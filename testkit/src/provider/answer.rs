use std::future::pending;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::pieces::Pieces;

/// One answer, and how its bytes go out.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    before: Duration,
    between: Duration,
    splits: Vec<usize>,
    ending: Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Whole,
    Broken,
    Hanging,
}

impl Answer {
    /// Any bytes, with a status and a content type.
    #[must_use]
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body: body.into(),
            before: Duration::ZERO,
            between: Duration::ZERO,
            splits: Vec::new(),
            ending: Ending::Whole,
        }
    }

    /// A success that is JSON.
    #[must_use]
    pub fn json(body: &Value) -> Self {
        Self::new(200, "application/json", body.to_string())
    }

    /// A success that is a stream of events.
    #[must_use]
    pub fn events(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/event-stream", body)
    }

    /// A status that is no success, with the usual error body.
    #[must_use]
    pub fn refusal(status: u16, message: &str) -> Self {
        let body =
            serde_json::json!({"error": {"message": message, "type": "invalid_request_error"}});
        Self::new(status, "application/json", body.to_string())
    }

    /// The same with one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same after a pause.
    #[must_use]
    pub const fn after(mut self, pause: Duration) -> Self {
        self.before = pause;
        self
    }

    /// The same with a pause between the pieces of the body.
    #[must_use]
    pub const fn slowly(mut self, pause: Duration) -> Self {
        self.between = pause;
        self
    }

    /// The same in pieces that end at the given offsets, each sent on its own.
    #[must_use]
    pub fn split_at(mut self, offsets: impl IntoIterator<Item = usize>) -> Self {
        self.splits = offsets.into_iter().collect();
        self
    }

    /// The same, but the connection breaks where the body would end.
    #[must_use]
    pub const fn broken(mut self) -> Self {
        self.ending = Ending::Broken;
        self
    }

    /// The same, but the body never ends.
    #[must_use]
    pub const fn hanging(mut self) -> Self {
        self.ending = Ending::Hanging;
        self
    }

    /// The bytes of the body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    #[expect(
        clippy::expect_used,
        reason = "a script that is no HTTP is a broken test"
    )]
    pub(super) async fn respond(self) -> Response<Body> {
        sleep(self.before).await;
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(name, value);
        }
        let body = if self.splits.is_empty() && self.ending == Ending::Whole {
            Body::from(self.body)
        } else {
            Body::new(self.in_pieces())
        };
        response.body(body).expect("the script is HTTP")
    }

    fn in_pieces(self) -> Pieces {
        // One place: a piece is written to the socket before the next one is made.
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
                // Time to write the piece to the socket, so that pieces do not become one.
                sleep(self.between.max(Duration::from_millis(1))).await;
            }
            match self.ending {
                Ending::Whole => {}
                Ending::Broken => {
                    // Whoever asked may be gone already.
                    let _gone = sender.send(Err(())).await;
                }
                Ending::Hanging => pending().await,
            }
        });
        Pieces(pieces)
    }
}
