//! The responses of the API.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use jiff::Timestamp;
use serde_json::{Map, Value};
use toolwarden_mcp::mask_secrets;

/// The prefix of the schemas of all documents.
pub(super) const SCHEMA: &str = "toolwarden/api";

/// A response.
#[derive(Debug)]
pub(super) struct ApiResponse {
    status: StatusCode,
    media_type: &'static str,
    text: String,
}

impl ApiResponse {
    /// A document of the API, which names its version.
    pub(super) fn document(name: &str, members: Value) -> Self {
        let mut document = Map::new();
        document.insert("schema".to_owned(), format!("{SCHEMA}/{name}/v1").into());
        if let Value::Object(members) = members {
            document.extend(members);
        }
        Self::json(&Value::Object(document))
    }

    /// A JSON document as given.
    pub(super) fn json(document: &Value) -> Self {
        Self {
            status: StatusCode::OK,
            media_type: "application/json",
            text: document.to_string(),
        }
    }

    /// A text response.
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
        let text = match mask_secrets(&self.text) {
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

/// A time in the format of all documents.
pub(super) fn time_text(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// Seconds, with milliseconds as the fraction.
pub(super) fn rounded_seconds(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1_000.0).ceil() / 1_000.0
}
