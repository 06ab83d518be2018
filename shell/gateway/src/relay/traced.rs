//! Calls as spans of a trace.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;
use toolwarden_mcp::Members;

use super::asked::Asked;
use super::result::{Looked, look_at};
use super::{Gateway, Reply};
use crate::traces::{Ended, TraceContext};

tokio::task_local! {
    /// The trace context of the call under way, for servers.
    static HEADER: Option<(String, String)>;
}

impl Gateway {
    /// Calls a tool; the server is told to which trace the call belongs.
    pub(super) async fn traced_call(&self, asked: &Arc<Asked>, params: Option<&RawValue>) -> Reply {
        let tracer = &self.shared.tracer;
        let span = tracer.begin(asked.trace.as_deref());
        let call = self.call_tool(asked, params);
        let reply = HEADER.scope(span.header(), call).await;
        if span.is_open() {
            let members = Members::of_optional(params);
            let tool = members.text("name").unwrap_or_default();
            let named = self.shared.directory.load().tools.find(&tool).cloned();
            let ended = Ended {
                tool: &tool,
                server: named.as_ref().map(|named| &*named.server),
                principal: &asked.conversation.principal,
                error: error_of(&reply),
            };
            tracer.end(&span, &ended);
        }
        reply
    }
}

fn error_of(reply: &Reply) -> Option<Cow<'_, str>> {
    match reply {
        Reply::Error(error) => Some(Cow::Borrowed(&error.message)),
        Reply::Result(result) if look_at(result) == Looked::ToolError => {
            Some(Cow::Borrowed("the tool failed or was refused"))
        }
        Reply::Result(_) => None,
        Reply::Nothing => Some(Cow::Borrowed("given up")),
    }
}

/// The trace context for the server: of the call under way, else as the agent sent it.
pub(super) fn trace_header(asked: &Asked) -> Option<(String, String)> {
    HEADER.try_with(Clone::clone).unwrap_or_else(|_| {
        let came = asked.trace.as_deref().and_then(TraceContext::read)?;
        Some((crate::traces::TRACEPARENT.to_owned(), came.to_string()))
    })
}
