//! Every error of the API, in one shape.

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};
use toolwarden_guard::Denial;
use toolwarden_store::StoreError;
use toolwarden_warden::ApproveError;
use toolwarden_warden::inline::WatchError;
use toolwarden_warden::notify::NotifyError;

use super::answer::SCHEMA;
use crate::http::json as answer;

/// The largest refusal of ours that is read again.
const MOST_REFUSAL: usize = 64 * 1024;

/// What kind of error it is. The words are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ErrorKind {
    /// What was sent does not fit.
    Invalid,
    /// Nobody knows who asks.
    Unauthenticated,
    /// Whoever asks may not.
    Forbidden,
    /// There is no such thing.
    NotFound,
    /// There is, but not with this method.
    MethodNotAllowed,
    /// It does not go with how things are.
    Conflict,
    /// The body is too large.
    TooLarge,
    /// The body is no JSON by what it says of itself.
    MediaType,
    /// Too much of it is under way.
    TooMany,
    /// Something here does not work.
    Internal,
    /// Something that is needed is away.
    Unavailable,
}

/// An error as callers are told.
#[derive(Debug)]
pub(super) struct ApiError {
    kind: ErrorKind,
    message: String,
    remedy: String,
    /// In how many seconds it makes sense to try again.
    retry_after: Option<u64>,
}

impl ErrorKind {
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

    fn of_status(status: StatusCode) -> Self {
        let mut kinds = Self::ALL.into_iter();
        let known = kinds.find(|kind| kind.status() == status);
        known.unwrap_or(Self::Unauthenticated)
    }
}

impl ApiError {
    pub(super) fn new(
        kind: ErrorKind,
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
        let remedy = "Correct the request; `GET /api/v1/openapi.json` says what it may hold.";
        Self::new(ErrorKind::Invalid, message, remedy)
    }

    pub(super) fn not_found(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message, remedy)
    }

    pub(super) fn admins_only(what: &str) -> Self {
        Self::new(
            ErrorKind::Forbidden,
            format!("only administrators of the gateway may {what}"),
            "Ask somebody who is named under `identity.admins` in the settings.",
        )
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::new(
            ErrorKind::MethodNotAllowed,
            "this endpoint does not have this method",
            "`GET /api/v1/openapi.json` says which it has.",
        )
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        let remedy =
            "Try again; if that does not help, see what the gateway says on its error output.";
        Self::new(ErrorKind::Internal, message, remedy)
    }

    pub(super) fn retry_after(self, seconds: u64) -> Self {
        Self {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// The whole answer.
    pub(super) fn response(self) -> Response {
        let mut response = answer(
            self.kind.status(),
            toolwarden_mcp::masked(&self.document().to_string()).into_owned(),
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

/// The refusal of somebody who is not known, in the shape of the API: status and headers stay.
pub(super) async fn refusal(refused: Response) -> Response {
    let (mut parts, body) = refused.into_parts();
    let body = axum::body::to_bytes(body, MOST_REFUSAL).await;
    let told: Value = body
        .ok()
        .and_then(|body| serde_json::from_slice(&body).ok())
        .unwrap_or_default();
    let words = told.pointer("/error/message").and_then(Value::as_str);
    let remedy = "Send a key or token of this gateway as `Authorization: Bearer …`, to a name it is known by.";
    let error = ApiError::new(
        ErrorKind::of_status(parts.status),
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
        let message = causes(&error);
        match error {
            WatchError::NoSuchServer { .. } => {
                Self::not_found(message, "`GET /api/v1/servers` lists the servers.")
            }
            WatchError::NoSuchTool { .. } => {
                Self::not_found(message, "`GET /api/v1/baselines` lists what is pinned.")
            }
            WatchError::Approve(ApproveError::NotWaiting { .. }) => Self::not_found(
                message,
                "`GET /api/v1/changes` lists what waits for approval.",
            ),
            WatchError::Approve(ApproveError::SeveralServers { .. }) => Self::new(
                ErrorKind::Conflict,
                message,
                "Name the `server` and the `scope`, too.",
            ),
            WatchError::Busy { .. } => Self::new(
                ErrorKind::Unavailable,
                message,
                "Ask again in a few seconds.",
            ),
            WatchError::Approve(_)
            | WatchError::Pins(_)
            | WatchError::Start(_)
            | WatchError::TooManyVariants { .. }
            | WatchError::Unanswered => Self::unusable_store(message),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::unusable_store(causes(&error))
    }
}

impl From<NotifyError> for ApiError {
    fn from(error: NotifyError) -> Self {
        Self::unusable_store(causes(&error))
    }
}

impl From<Denial> for ApiError {
    fn from(denial: Denial) -> Self {
        let remedy = denial.advice();
        Self::new(ErrorKind::Forbidden, denial.reason, remedy)
    }
}

impl ApiError {
    fn unusable_store(message: String) -> Self {
        let remedy = "See to the store of the gateway: its disk, its file and its permissions.";
        Self::new(ErrorKind::Unavailable, message, remedy)
    }
}

/// An error with what caused it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text = format!("{text}: {source}");
        cause = source.source();
    }
    text
}
