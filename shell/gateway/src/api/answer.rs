//! What the API answers.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use jiff::Timestamp;
use serde_json::{Map, Value};
use toolwarden_mcp::masked;

/// What the schemas of all documents begin with.
pub(super) const SCHEMA: &str = "toolwarden/api";

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    status: StatusCode,
    media_type: &'static str,
    text: String,
}

impl Answer {
    /// A document of the API, which says of which version it is.
    pub(super) fn document(name: &str, members: Value) -> Self {
        let mut document = Map::new();
        document.insert("schema".to_owned(), format!("{SCHEMA}/{name}/v1").into());
        if let Value::Object(members) = members {
            document.extend(members);
        }
        Self::json(&Value::Object(document))
    }

    /// A document as it is.
    pub(super) fn json(document: &Value) -> Self {
        Self {
            status: StatusCode::OK,
            media_type: "application/json",
            text: document.to_string(),
        }
    }

    /// A text.
    pub(super) const fn text(media_type: &'static str, text: String) -> Self {
        Self {
            status: StatusCode::OK,
            media_type,
            text,
        }
    }

    pub(super) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(super) fn response(self) -> Response {
        let text = match masked(&self.text) {
            Cow::Owned(masked) => masked,
            Cow::Borrowed(_) => self.text,
        };
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// A time as it is written everywhere.
pub(super) fn time(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// Seconds with milliseconds.
pub(super) fn seconds(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1_000.0).ceil() / 1_000.0
}
