//! One request and what came back, byte for byte.

mod caller;
mod loopback;

use serde_json::Value;
use toolwarden_model::reply::NotMeasured;

pub(crate) use caller::{Asking, Caller};
pub(crate) use loopback::{RECORDED_HEADER, Recorded, TRIAL_HEADER};

/// Headers that authorize. They are never kept.
pub(crate) const AUTHORIZING: [&str; 7] = [
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "x-goog-api-key",
    "api-key",
    "cookie",
    "set-cookie",
];

/// One request over HTTP and what came back. Keys are masked in all of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// What was sent.
    pub request: SentRequest,
    /// The status, if one came.
    pub status: Option<u16>,
    /// The headers of the response, those that authorize left out.
    pub headers: Vec<(String, String)>,
    /// The body as it came; the beginning of it where it is too large or broke off.
    pub body: Vec<u8>,
    /// How long the headers took.
    pub headers_ms: Option<f64>,
    /// How long the first bytes of the body took.
    pub first_event_ms: Option<f64>,
    /// How long all of it took.
    pub total_ms: f64,
    /// Why the response is not whole, or leads elsewhere.
    pub failure: Option<NotMeasured>,
}

impl Exchange {
    /// The value of a header of the response.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A request as it was sent, but for what authorizes it.
#[derive(Clone, Debug, PartialEq)]
pub struct SentRequest {
    /// The verb.
    pub method: String,
    /// The path below the base address, with its query.
    pub url_path: String,
    /// The headers, those that authorize left out.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
}
