//! Traces of calls: what each took, as part of the trace its agent began.
//!
//! Spans go out as OTLP over HTTP in JSON, with the feature `otel`. Without it the context of the agent is
//! passed on to servers as it came.

mod context;
#[cfg(feature = "otel")]
mod export;

use std::borrow::Cow;

use toolwarden_warden::settings::TraceSettings;

pub use context::TraceContext;

/// Whether this build can send traces.
pub const TRACES_BUILT: bool = cfg!(feature = "otel");

/// Makes spans.
#[derive(Debug, Default)]
pub struct Tracer {
    #[cfg(feature = "otel")]
    exporter: Option<export::Exporter>,
}

/// Why traces cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The feature is not built in.
    #[error(
        "`traces` needs a build with the feature `otel`: cargo install --path cli --features otel"
    )]
    NotBuilt,
    /// The address is none.
    #[error("traces.otlp: `{0}` is not an http or https address")]
    Address(String),
}

/// One call on its way.
#[derive(Debug, Default)]
pub struct Span {
    #[cfg(feature = "otel")]
    open: Option<export::Open>,
    /// What the agent sent.
    came: Option<String>,
}

/// What is said of a call when it is over.
#[derive(Clone, Debug)]
pub struct Ended<'e> {
    /// The tool as the agent calls it.
    pub tool: &'e str,
    /// The server it went to.
    pub server: Option<&'e str>,
    /// Who called.
    pub principal: &'e str,
    /// Why it failed or was refused; none if it did not.
    pub error: Option<Cow<'e, str>>,
}

impl Tracer {
    /// As the settings say. Needs a runtime where there is somewhere to send spans to.
    ///
    /// # Errors
    /// Traces cannot be made.
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

    /// Begins a span under what the agent sent.
    #[must_use]
    pub fn begin(&self, came: Option<&str>) -> Span {
        Span {
            #[cfg(feature = "otel")]
            open: self.exporter.as_ref().and_then(|it| it.begin(came)),
            came: came.map(str::to_owned),
        }
    }

    /// Ends a span.
    pub fn end(&self, span: &Span, ended: &Ended<'_>) {
        #[cfg(feature = "otel")]
        if let (Some(exporter), Some(open)) = (&self.exporter, &span.open) {
            exporter.end(open, ended);
        }
        #[cfg(not(feature = "otel"))]
        let _ = (span, ended);
    }
}

impl Span {
    /// Whether something is to be said of the call when it is over.
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
        let came = self.came.as_deref().and_then(TraceContext::read)?;
        Some((TRACEPARENT.to_owned(), came.to_string()))
    }
}

/// The header of the W3C trace context.
pub const TRACEPARENT: &str = "traceparent";
