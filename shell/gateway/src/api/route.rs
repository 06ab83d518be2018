//! One endpoint of the API.

use std::pin::Pin;

use axum::http::StatusCode;
use axum::routing::MethodFilter;

use super::error::{ApiError, ApiErrorKind};
use super::field::ApiField;
use super::request::ApiRequest;
use super::response::ApiResponse;

/// The outcome of a request.
pub(super) type HandlerResult = Result<ApiResponse, ApiError>;

/// The function that serves a request.
pub(super) type Handler = fn(ApiRequest) -> Pin<Box<dyn Future<Output = HandlerResult> + Send>>;

/// One endpoint of the API.
pub(super) struct ApiRoute {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) access: RouteAccess,
    pub(super) summary: &'static str,
    /// The parameters in the path.
    pub(super) path_params: &'static [ApiField],
    /// The parameters in the query.
    pub(super) query: &'static [ApiField],
    /// The parameters in the body; `None` if there is no body.
    pub(super) body: Option<&'static [ApiField]>,
    pub(super) response: ResponseType,
    /// A second status that returns the same document.
    pub(super) other_status: Option<StatusCode>,
    /// Errors in addition to those that every endpoint has.
    pub(super) errors: &'static [ApiErrorKind],
    pub(super) handler: Handler,
}

/// The methods of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
    Delete,
}

/// Who may call an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteAccess {
    /// Every caller, also unauthenticated ones.
    Open,
    /// Authenticated callers.
    Caller,
    /// Administrators of the gateway.
    Admin,
}

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseType {
    /// A document with this schema name.
    Json(&'static str),
    /// A text of this media type.
    Text(&'static str),
}

impl ApiRoute {
    pub(super) const fn get(path: &'static str, answer: &'static str, handler: Handler) -> Self {
        Self::new(Method::Get, path, answer, handler)
    }

    pub(super) const fn post(path: &'static str, answer: &'static str, handler: Handler) -> Self {
        Self::new(Method::Post, path, answer, handler)
    }

    pub(super) const fn delete(path: &'static str, answer: &'static str, handler: Handler) -> Self {
        Self::new(Method::Delete, path, answer, handler)
    }

    const fn new(
        method: Method,
        path: &'static str,
        answer: &'static str,
        handler: Handler,
    ) -> Self {
        Self {
            method,
            path,
            access: RouteAccess::Caller,
            summary: "",
            path_params: &[],
            query: &[],
            body: None,
            response: ResponseType::Json(answer),
            other_status: None,
            errors: &[],
            handler,
        }
    }

    pub(super) const fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    pub(super) const fn path_params(self, named: &'static [ApiField]) -> Self {
        Self {
            path_params: named,
            ..self
        }
    }

    pub(super) const fn query(self, query: &'static [ApiField]) -> Self {
        Self { query, ..self }
    }

    pub(super) const fn body(self, body: &'static [ApiField]) -> Self {
        Self {
            body: Some(body),
            ..self
        }
    }

    pub(super) const fn errors(self, errors: &'static [ApiErrorKind]) -> Self {
        Self { errors, ..self }
    }

    pub(super) const fn text(self, media_type: &'static str) -> Self {
        Self {
            response: ResponseType::Text(media_type),
            ..self
        }
    }

    pub(super) const fn other_status(self, status: StatusCode) -> Self {
        Self {
            other_status: Some(status),
            ..self
        }
    }

    pub(super) const fn open(self) -> Self {
        Self {
            access: RouteAccess::Open,
            ..self
        }
    }

    pub(super) const fn admin(self) -> Self {
        Self {
            access: RouteAccess::Admin,
            ..self
        }
    }

    /// Every error it may return.
    pub(super) fn all_errors(&self) -> Vec<ApiErrorKind> {
        let mut errors = self.errors.to_vec();
        if self.access != RouteAccess::Open {
            errors.extend([ApiErrorKind::Unauthenticated, ApiErrorKind::Forbidden]);
        }
        errors.push(ApiErrorKind::Invalid);
        if self.body.is_some() {
            errors.extend([ApiErrorKind::TooLarge, ApiErrorKind::MediaType]);
        }
        errors.sort_unstable();
        errors.dedup();
        errors
    }
}

impl Method {
    pub(super) const fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Delete => MethodFilter::DELETE,
        }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Delete => "delete",
        }
    }
}
