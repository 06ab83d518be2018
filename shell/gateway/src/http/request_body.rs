//! Reads the body of a request, with limits on its size and duration.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use http_body::Body as _;
use thiserror::Error;
use tokio::time::timeout;
use toolwarden_settings::ListenSettings;

/// Why a body was not received.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum RequestBodyError {
    /// It is larger than the settings allow.
    #[error("the message is larger than {limit} bytes (`listen.max_body`)")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// It took longer than the settings allow.
    #[error("the message did not arrive within {limit:?} (`listen.limits.body_within`)")]
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// It violates HTTP.
    #[error(
        "the body of the request is broken: its chunks or its length are wrong, or it ended early"
    )]
    Incomplete,
}

impl RequestBodyError {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Timeout { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::Incomplete => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads a body to its end. A body whose declared length is too large is not read at all.
pub(crate) async fn receive_body(
    body: Body,
    listen: &ListenSettings,
) -> Result<Bytes, RequestBodyError> {
    let limit = listen.body_bytes;
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(RequestBodyError::TooLarge { limit });
    }
    let patience = listen.limits.body_within;
    match timeout(patience, read_chunks(body, limit)).await {
        Ok(read) => read,
        Err(_late) => Err(RequestBodyError::Timeout { limit: patience }),
    }
}

async fn read_chunks(mut body: Body, limit: usize) -> Result<Bytes, RequestBodyError> {
    let mut first = Bytes::new();
    let mut all: Vec<u8> = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(data) = frame.map_err(|_| RequestBodyError::Incomplete)?.into_data() else {
            continue;
        };
        if first.len() + all.len() + data.len() > limit {
            return Err(RequestBodyError::TooLarge { limit });
        }
        // Most bodies arrive in one piece, which is not copied.
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&first);
            first = Bytes::new();
        }
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.into() })
}
