//! One request and its response, byte for byte.

mod decompress;
mod provider_client;
mod replay_headers;

use serde_json::Value;
use toolwarden_model::reply::NotMeasured;

pub(crate) use provider_client::{ProviderClient, ProviderRequest};
pub(crate) use replay_headers::{RECORDED_HEADER, RecordedMeasurement, TRIAL_HEADER};

/// Headers that authorize a request. They are never stored.
pub(crate) const AUTH_HEADERS: [&str; 7] = [
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "x-goog-api-key",
    "api-key",
    "cookie",
    "set-cookie",
];

/// One HTTP request and its response. All keys in it are masked.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// What was sent.
    pub request: SentRequest,
    /// The status, if one arrived.
    pub status: Option<u16>,
    /// The headers of the response, without those that authorize.
    pub headers: Vec<(String, String)>,
    /// The body as received; only its beginning if it is too large or was cut off.
    pub body: Vec<u8>,
    /// The time until the headers arrived.
    pub headers_ms: Option<f64>,
    /// The time until the first bytes of the body arrived.
    pub first_event_ms: Option<f64>,
    /// The total time.
    pub total_ms: f64,
    /// Why the response is incomplete or a redirect.
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

/// A request as sent, without the headers that authorize it.
#[derive(Clone, Debug, PartialEq)]
pub struct SentRequest {
    /// The verb.
    pub method: String,
    /// The path below the base address, with its query.
    pub url_path: String,
    /// The headers, without those that authorize.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
}
