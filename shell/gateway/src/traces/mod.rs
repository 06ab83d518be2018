//! Traces of calls, as part of the trace that the agent began.
//!
//! With the feature `otel`, spans are sent as OTLP over HTTP in JSON. Without it, the agent's trace context is
//! forwarded to servers unchanged.

mod context;
#[cfg(feature = "otel")]
mod export;

use std::borrow::Cow;

use toolwarden_settings::TraceSettings;

pub use context::TraceContext;

/// Whether this build can send traces.
pub const TRACES_BUILT: bool = cfg!(feature = "otel");

/// Creates spans.
#[derive(Debug, Default)]
pub struct Tracer {
    #[cfg(feature = "otel")]
    exporter: Option<export::Exporter>,
}

/// Why traces cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The feature is not built in.
    #[error(
        "`traces` needs a build with the feature `otel`: cargo install --path cli --features otel"
    )]
    NotBuilt,
    /// The URL is invalid.
    #[error("traces.otlp: `{0}` is not an http or https address")]
    Address(String),
}

/// One call in progress.
#[derive(Debug, Default)]
pub struct Span {
    #[cfg(feature = "otel")]
    open: Option<export::OpenSpan>,
    /// The trace context that the agent sent.
    parent_header: Option<String>,
}

/// The attributes of a call that has ended.
#[derive(Clone, Debug)]
pub struct CallSpanEnd<'e> {
    /// The tool by the name the agent uses.
    pub tool: &'e str,
    /// The server it went to.
    pub server: Option<&'e str>,
    /// The principal that called it.
    pub principal: &'e str,
    /// Why it failed or was denied; `None` if it succeeded.
    pub error: Option<Cow<'e, str>>,
}

impl Tracer {
    /// Creates a tracer from the settings. Needs a tokio runtime if spans are exported.
    ///
    /// # Errors
    /// Traces cannot be exported.
    pub fn new(settings: Option<&TraceSettings>) -> Result<Self, TraceError> {
        #[cfg(feature = "otel")]
        {
            let exporter = settings.map(export::Exporter::new).transpose()?;
            Ok(Self { exporter })
        }
        #[cfg(not(feature = "otel"))]
        match settings {
            Some(_) => Err(TraceError::NotBuilt),
            None => Ok(Self::default()),
        }
    }

    /// Begins a span as a child of the agent's trace context.
    #[must_use]
    pub fn begin(&self, http_context: Option<&str>) -> Span {
        Span {
            #[cfg(feature = "otel")]
            open: self.exporter.as_ref().and_then(|it| it.begin(http_context)),
            parent_header: http_context.map(str::to_owned),
        }
    }

    /// Ends a span.
    pub fn end(&self, span: &Span, ended: &CallSpanEnd<'_>) {
        #[cfg(feature = "otel")]
        if let (Some(exporter), Some(open)) = (&self.exporter, &span.open) {
            exporter.end(open, ended);
        }
        #[cfg(not(feature = "otel"))]
        let _ = (span, ended);
    }
}

impl Span {
    /// Whether the attributes of the call are needed when it ends.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        #[cfg(feature = "otel")]
        {
            self.open.is_some()
        }
        #[cfg(not(feature = "otel"))]
        false
    }

    /// The `traceparent` for the server.
    #[must_use]
    pub fn header(&self) -> Option<(String, String)> {
        #[cfg(feature = "otel")]
        if let Some(open) = &self.open {
            return Some((TRACEPARENT.to_owned(), open.context().to_string()));
        }
        let http_context = self
            .parent_header
            .as_deref()
            .and_then(TraceContext::parse)?;
        Some((TRACEPARENT.to_owned(), http_context.to_string()))
    }
}

/// The header of the W3C trace context.
pub const TRACEPARENT: &str = "traceparent";
