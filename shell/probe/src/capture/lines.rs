use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolwarden_model::reply::{NotMeasured, StreamMode, TrialFailure};

use super::{Capture, CaptureError, MAX_BYTES, SCHEMA};
use crate::exchange::{Exchange, SentRequest};
use crate::run::TrialKey;

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaptureHead {
    schema: String,
    provider: String,
    model_id: String,
    wire: String,
    suite: String,
}

/// Every other line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaptureLine {
    case: String,
    mode: String,
    repetition: u32,
    attempt: u32,
    request: RequestLine,
    status: Option<u16>,
    headers: Vec<(String, String)>,
    body: BodyText,
    headers_ms: Option<f64>,
    first_event_ms: Option<f64>,
    total_ms: f64,
    failure: Option<FailureLine>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestLine {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Value,
}

/// Raw bytes; stored as text if they are UTF-8.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BodyText {
    Text(String),
    Base64(String),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FailureLine {
    failure: String,
    detail: String,
}

impl CaptureHead {
    pub(super) fn of(capture: &Capture) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            provider: capture.provider.clone(),
            model_id: capture.model_id.clone(),
            wire: capture.wire.as_str().to_owned(),
            suite: capture.suite.clone(),
        }
    }
}

impl CaptureLine {
    pub(super) fn of(key: &TrialKey, exchange: &Exchange) -> Self {
        let body = match std::str::from_utf8(&exchange.body) {
            Ok(text) => BodyText::Text(text.to_owned()),
            Err(_binary) => BodyText::Base64(STANDARD.encode(&exchange.body)),
        };
        let request = &exchange.request;
        Self {
            case: key.case.clone(),
            mode: key.mode.as_str().to_owned(),
            repetition: key.repetition,
            attempt: key.attempt,
            request: RequestLine {
                method: request.method.clone(),
                path: request.url_path.clone(),
                headers: request.headers.clone(),
                body: request.body.clone(),
            },
            status: exchange.status,
            headers: exchange.headers.clone(),
            body,
            headers_ms: exchange.headers_ms,
            first_event_ms: exchange.first_event_ms,
            total_ms: exchange.total_ms,
            failure: exchange.failure.as_ref().map(|it| FailureLine {
                failure: it.failure.as_str().to_owned(),
                detail: it.detail.clone(),
            }),
        }
    }

    /// Restores the exchange; on error, returns the unknown word in the line.
    fn exchange(self) -> Result<(TrialKey, Exchange), (&'static str, String)> {
        let Self {
            case,
            mode,
            repetition,
            attempt,
            request,
            status,
            headers,
            body,
            headers_ms,
            first_event_ms,
            total_ms,
            failure,
        } = self;
        let found = StreamMode::ALL.into_iter().find(|it| it.as_str() == mode);
        let key = TrialKey {
            case,
            mode: found.ok_or(("mode", mode))?,
            repetition,
            attempt,
        };
        let failure = match failure {
            Some(FailureLine { failure, detail }) => Some(NotMeasured {
                failure: TrialFailure::from_word(&failure).ok_or(("failure", failure))?,
                detail,
            }),
            None => None,
        };
        let body = match body {
            BodyText::Text(text) => text.into_bytes(),
            BodyText::Base64(text) => STANDARD.decode(&text).map_err(|_| ("base64", text))?,
        };
        let exchange = Exchange {
            request: SentRequest {
                method: request.method,
                url_path: request.path,
                headers: request.headers,
                body: request.body,
            },
            status,
            headers,
            body,
            headers_ms,
            first_event_ms,
            total_ms,
            failure,
        };
        Ok((key, exchange))
    }
}

/// Reads one file.
pub(super) fn read_file(path: &Path) -> Result<Capture, CaptureError> {
    let failed = |source| CaptureError::Io {
        path: path.to_owned(),
        source,
    };
    if std::fs::metadata(path).map_err(failed)?.len() > MAX_BYTES {
        return Err(CaptureError::TooLarge {
            path: path.to_owned(),
        });
    }
    let text = toolwarden_files::read_to_string(path).map_err(failed)?;
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, it)| !it.trim().is_empty());
    let head = lines
        .next()
        .and_then(|(_, it)| serde_json::from_str(it).ok());
    let head = head.filter(|it: &CaptureHead| it.schema == SCHEMA);
    let CaptureHead {
        schema: _,
        provider,
        model_id,
        wire,
        suite,
    } = head.ok_or_else(|| CaptureError::NoCapture {
        path: path.to_owned(),
    })?;
    let exchanges = lines.map(|(index, text)| {
        let line: CaptureLine =
            serde_json::from_str(text).map_err(|source| CaptureError::Line {
                path: path.to_owned(),
                line: index + 1,
                source,
            })?;
        line.exchange().map_err(|(what, word)| CaptureError::Word {
            path: path.to_owned(),
            line: index + 1,
            what,
            word,
        })
    });
    Ok(Capture {
        exchanges: exchanges.collect::<Result<_, _>>()?,
        provider,
        model_id,
        wire: wire.parse().map_err(|source| CaptureError::Wire {
            path: path.to_owned(),
            source,
        })?,
        suite,
    })
}
