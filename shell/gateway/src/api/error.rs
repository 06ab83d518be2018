//! The errors of the API, in one format.

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};
use toolwarden_guard::Denial;
use toolwarden_notify::NotifyError;
use toolwarden_store::StoreError;
use toolwarden_watch::ApproveError;
use toolwarden_watch::inline::WatchError;

use super::response::SCHEMA;
use crate::http::json as answer;

/// The largest refusal of the gateway that is parsed again.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// The kind of an error. Its code is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ApiErrorKind {
    /// The request is invalid.
    Invalid,
    /// The caller is not authenticated.
    Unauthenticated,
    /// The caller is not authorized.
    Forbidden,
    /// The endpoint or object does not exist.
    NotFound,
    /// The endpoint exists, but not with this method.
    MethodNotAllowed,
    /// The request conflicts with the current state.
    Conflict,
    /// The body is too large.
    TooLarge,
    /// The body is not declared as JSON.
    MediaType,
    /// Too many requests of this kind are in progress.
    TooMany,
    /// The gateway failed.
    Internal,
    /// Something that the request needs is unavailable.
    Unavailable,
}

/// An error as callers see it.
#[derive(Debug)]
pub(super) struct ApiError {
    kind: ApiErrorKind,
    message: String,
    remedy: String,
    /// After how many seconds a retry makes sense.
    retry_after: Option<u64>,
}

impl ApiErrorKind {
    pub(super) const ALL: [Self; 11] = [
        Self::Invalid,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::Conflict,
        Self::TooLarge,
        Self::MediaType,
        Self::TooMany,
        Self::Internal,
        Self::Unavailable,
    ];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::Conflict => "conflict",
            Self::TooLarge => "too_large",
            Self::MediaType => "media_type",
            Self::TooMany => "too_many",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
        }
    }

    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::Invalid => StatusCode::BAD_REQUEST,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Conflict => StatusCode::CONFLICT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn from_status(status: StatusCode) -> Self {
        let mut kinds = Self::ALL.into_iter();
        let known = kinds.find(|kind| kind.status() == status);
        known.unwrap_or(Self::Unauthenticated)
    }
}

impl ApiError {
    pub(super) fn new(
        kind: ApiErrorKind,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            message: message.into(),
            remedy: remedy.into(),
            retry_after: None,
        }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        let remedy = "Correct the request; `GET /api/v1/openapi.json` describes its parameters.";
        Self::new(ApiErrorKind::Invalid, message, remedy)
    }

    pub(super) fn not_found(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(ApiErrorKind::NotFound, message, remedy)
    }

    pub(super) fn admins_only(what: &str) -> Self {
        Self::new(
            ApiErrorKind::Forbidden,
            format!("only administrators of the gateway may {what}"),
            "Ask an administrator named under `identity.admins` in the settings.",
        )
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::new(
            ApiErrorKind::MethodNotAllowed,
            "this endpoint does not have this method",
            "`GET /api/v1/openapi.json` lists its methods.",
        )
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        let remedy = "Try again; if that does not help, see the error output of the gateway.";
        Self::new(ApiErrorKind::Internal, message, remedy)
    }

    pub(super) fn retry_after(self, seconds: u64) -> Self {
        Self {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// The HTTP response.
    pub(super) fn response(self) -> Response {
        let mut response = answer(
            self.kind.status(),
            toolwarden_mcp::mask_secrets(&self.document().to_string()).into_owned(),
        );
        if let Some(seconds) = self.retry_after {
            let seconds = HeaderValue::from(seconds);
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }

    fn document(&self) -> Value {
        json!({
            "schema": format!("{SCHEMA}/error/v1"),
            "error": {
                "code": self.kind.as_str(),
                "message": self.message,
                "remedy": self.remedy,
            },
        })
    }
}

/// The refusal of an unauthenticated caller in the format of the API, with the same status and headers.
pub(super) async fn convert_refusal(refused: Response) -> Response {
    let (mut parts, body) = refused.into_parts();
    let body = axum::body::to_bytes(body, MAX_REFUSAL_BYTES).await;
    let told: Value = body
        .ok()
        .and_then(|body| serde_json::from_slice(&body).ok())
        .unwrap_or_default();
    let words = told.pointer("/error/message").and_then(Value::as_str);
    let remedy = "Send a key or token of this gateway as `Authorization: Bearer …`, to one of its host names.";
    let error = ApiError::new(
        ApiErrorKind::from_status(parts.status),
        words.unwrap_or("the request was refused"),
        remedy,
    );
    parts.headers.remove(CONTENT_LENGTH);
    let json = HeaderValue::from_static("application/json");
    parts.headers.insert(CONTENT_TYPE, json);
    Response::from_parts(parts, Body::from(error.document().to_string()))
}

impl From<WatchError> for ApiError {
    fn from(error: WatchError) -> Self {
        let message = error_chain(&error);
        match error {
            WatchError::UnknownServer { .. } => {
                Self::not_found(message, "`GET /api/v1/servers` lists the servers.")
            }
            WatchError::UnknownTool { .. } => {
                Self::not_found(message, "`GET /api/v1/baselines` lists what is pinned.")
            }
            WatchError::Approve(ApproveError::NotPending { .. }) => {
                Self::not_found(message, "`GET /api/v1/changes` lists pending changes.")
            }
            WatchError::Approve(ApproveError::SeveralServers { .. }) => Self::new(
                ApiErrorKind::Conflict,
                message,
                "Name the `server` and the `scope`, too.",
            ),
            WatchError::Busy { .. } => Self::new(
                ApiErrorKind::Unavailable,
                message,
                "Ask again in a few seconds.",
            ),
            WatchError::Approve(_)
            | WatchError::Pins(_)
            | WatchError::Start(_)
            | WatchError::TooManyVariants { .. }
            | WatchError::NoReply => Self::unusable_store(message),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::unusable_store(error_chain(&error))
    }
}

impl From<NotifyError> for ApiError {
    fn from(error: NotifyError) -> Self {
        Self::unusable_store(error_chain(&error))
    }
}

impl From<Denial> for ApiError {
    fn from(denial: Denial) -> Self {
        let remedy = denial.advice();
        Self::new(ApiErrorKind::Forbidden, denial.reason, remedy)
    }
}

impl ApiError {
    fn unusable_store(message: String) -> Self {
        let remedy = "Check the store of the gateway: its disk, its file and its permissions.";
        Self::new(ApiErrorKind::Unavailable, message, remedy)
    }
}

/// An error with its causes.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text = format!("{text}: {source}");
        cause = source.source();
    }
    text
}
