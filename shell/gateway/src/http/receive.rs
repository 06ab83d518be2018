//! The body of a request, with bounds on its size and its time.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use http_body::Body as _;
use thiserror::Error;
use tokio::time::timeout;
use toolwarden_warden::settings::Listen;

/// Why a body did not arrive.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum Unreceived {
    /// It is larger than the settings allow.
    #[error("the message is larger than {limit} bytes (`listen.max_body`)")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// It took longer than the settings allow.
    #[error("the message did not arrive within {limit:?} (`listen.limits.body_within`)")]
    Slow {
        /// The limit.
        limit: Duration,
    },
    /// It is not what HTTP lets a body be.
    #[error(
        "the body of the request is broken: its chunks or its length are wrong, or it ended early"
    )]
    Broken,
}

impl Unreceived {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads a body to its end. One that says it is too large is not read at all.
pub(crate) async fn receive(body: Body, listen: &Listen) -> Result<Bytes, Unreceived> {
    let limit = listen.body_bytes;
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(Unreceived::TooLarge { limit });
    }
    let patience = listen.limits.body_within;
    match timeout(patience, read(body, limit)).await {
        Ok(read) => read,
        Err(_late) => Err(Unreceived::Slow { limit: patience }),
    }
}

async fn read(mut body: Body, limit: usize) -> Result<Bytes, Unreceived> {
    let mut first = Bytes::new();
    let mut all: Vec<u8> = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(data) = frame.map_err(|_| Unreceived::Broken)?.into_data() else {
            continue;
        };
        if first.len() + all.len() + data.len() > limit {
            return Err(Unreceived::TooLarge { limit });
        }
        // Most bodies come in one piece, which is not copied.
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
