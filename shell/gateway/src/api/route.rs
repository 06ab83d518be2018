//! One endpoint of the API.

use std::pin::Pin;

use axum::http::StatusCode;
use axum::routing::MethodFilter;

use super::answer::Answer;
use super::asking::Asking;
use super::error::{ApiError, ErrorKind};
use super::field::Field;

/// What becomes of a request.
pub(super) type Handled = Result<Answer, ApiError>;

/// What answers a request.
pub(super) type Handler = fn(Asking) -> Pin<Box<dyn Future<Output = Handled> + Send>>;

/// One endpoint of the API.
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) access: Access,
    pub(super) summary: &'static str,
    /// What the path names.
    pub(super) named: &'static [Field],
    /// What the query may say.
    pub(super) query: &'static [Field],
    /// What the body may say; none where there is no body.
    pub(super) body: Option<&'static [Field]>,
    pub(super) answer: Shape,
    /// Another status that comes with the same document.
    pub(super) also: Option<StatusCode>,
    /// Errors beside those that every endpoint has.
    pub(super) errors: &'static [ErrorKind],
    pub(super) handler: Handler,
}

/// The methods of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
    Delete,
}

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Everybody, also who is not known.
    Open,
    /// Who is known.
    Caller,
    /// Who administers the gateway.
    Admin,
}

/// What an answer looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A document of this name among the schemas.
    Json(&'static str),
    /// A text of this media type.
    Text(&'static str),
}

impl Route {
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
            access: Access::Caller,
            summary: "",
            named: &[],
            query: &[],
            body: None,
            answer: Shape::Json(answer),
            also: None,
            errors: &[],
            handler,
        }
    }

    pub(super) const fn about(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    pub(super) const fn named(self, named: &'static [Field]) -> Self {
        Self { named, ..self }
    }

    pub(super) const fn query(self, query: &'static [Field]) -> Self {
        Self { query, ..self }
    }

    pub(super) const fn body(self, body: &'static [Field]) -> Self {
        Self {
            body: Some(body),
            ..self
        }
    }

    pub(super) const fn errors(self, errors: &'static [ErrorKind]) -> Self {
        Self { errors, ..self }
    }

    pub(super) const fn text(self, media_type: &'static str) -> Self {
        Self {
            answer: Shape::Text(media_type),
            ..self
        }
    }

    pub(super) const fn also(self, status: StatusCode) -> Self {
        Self {
            also: Some(status),
            ..self
        }
    }

    pub(super) const fn open(self) -> Self {
        Self {
            access: Access::Open,
            ..self
        }
    }

    pub(super) const fn admin(self) -> Self {
        Self {
            access: Access::Admin,
            ..self
        }
    }

    /// Every error it may answer with.
    pub(super) fn all_errors(&self) -> Vec<ErrorKind> {
        let mut errors = self.errors.to_vec();
        if self.access != Access::Open {
            errors.extend([ErrorKind::Unauthenticated, ErrorKind::Forbidden]);
        }
        errors.push(ErrorKind::Invalid);
        if self.body.is_some() {
            errors.extend([ErrorKind::TooLarge, ErrorKind::MediaType]);
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
