//! Calls as spans of a trace.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;
use toolwarden_mcp::RawObject;
use toolwarden_model::ExposedName;

use super::result_kind::{ResultKind, text_result_kind};
use super::{Gateway, RpcReply};
use crate::request_context::RequestContext;
use crate::traces::{CallSpanEnd, TraceContext};

impl Gateway {
    /// Calls a tool and propagates the trace context to the server.
    pub(super) async fn call_tool_traced(
        &self,
        context: &Arc<RequestContext>,
        params: Option<&RawValue>,
    ) -> RpcReply {
        let tracer = &self.shared.tracer;
        let span = tracer.begin(context.trace.as_deref());
        let reply = self.call_tool(context, params, span.header()).await;
        if span.is_open() {
            let members = RawObject::parse_optional(params);
            let tool = members.text("name").unwrap_or_default();
            let named = self.named(&ExposedName::new(&*tool));
            let ended = CallSpanEnd {
                tool: &tool,
                server: named.as_ref().map(|named| named.server.as_str()),
                principal: &context.conversation.principal,
                error: reply_error(&reply),
            };
            tracer.end(&span, &ended);
        }
        reply
    }
}

fn reply_error(reply: &RpcReply) -> Option<Cow<'_, str>> {
    match reply {
        RpcReply::Error(error) => Some(Cow::Borrowed(&error.message)),
        RpcReply::Result(result) if text_result_kind(result) == ResultKind::ToolError => {
            Some(Cow::Borrowed("the tool failed or was refused"))
        }
        RpcReply::Result(_) => None,
        RpcReply::NoReply => Some(Cow::Borrowed("given up")),
    }
}

/// The trace context that an agent sent, for a server.
pub(super) fn trace_header(context: &RequestContext) -> Option<(String, String)> {
    let http_context = context.trace.as_deref().and_then(TraceContext::parse)?;
    Some((
        crate::traces::TRACEPARENT.to_owned(),
        http_context.to_string(),
    ))
}
