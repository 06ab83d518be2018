//! Calls of tools: decided, recorded, sent, settled.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use toolwarden_guard::{Gate, ReasonCode};
use toolwarden_live_guard::{Call, CallParams, OpenCall, PermitError};
use toolwarden_mcp::error_codes::{HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS};
use toolwarden_mcp::{Era, RawObject};
use toolwarden_model::StateName;
use toolwarden_model::{ExposedName, OwnName};
use toolwarden_watch::inline::strip_hidden;

use super::call_route::CallRoute;
use super::duplicate_members::parse_call;
use super::error_replies::{call_error_reply, denied_reply, upstream_failure_reply};
use super::forward::{ForwardOutcome, OutgoingMessage, OutgoingRequest};
use super::result_kind::{ResultKind, result_kind};
use super::{Gateway, RpcReply};
use crate::catalog::{ListError, ServerCatalog, collision_text};
use crate::metrics::CallStage;
use crate::pending_inputs::PendingInputs;
use crate::request_context::{OWN_KEY_PREFIX, RequestContext, state_from_meta};

impl Gateway {
    /// Calls a tool. `trace` is the header with the trace context for the server.
    pub(super) async fn call_tool(
        &self,
        context: &Arc<RequestContext>,
        params: Option<&RawValue>,
        trace: Option<(String, String)>,
    ) -> RpcReply {
        let Some(params) = params else {
            return RpcReply::error(INVALID_PARAMS, "params is missing");
        };
        let call_params = match parse_call(params) {
            Ok(call_params) => call_params,
            Err(reply) => return reply,
        };
        if let Some(state) = call_params.members().text("requestState")
            && PendingInputs::owns_state(&state)
        {
            return Box::pin(self.resume_call(context, &call_params, &state)).await;
        }
        let state = call_params.meta().and_then(state_from_meta);
        let mut call = match self.guard_call(context, &call_params, state.as_ref()) {
            Ok(call) => call,
            Err(reply) => return reply,
        };
        let route = match self.known_route(context, call_params.name()) {
            Some(route) => Some(Ok(route)),
            None => {
                if let Err(reply) = Box::pin(self.deny_before_listing(&call_params, &call)).await {
                    return reply;
                }
                // A stale list is refreshed before it decides anything.
                self.route_call(context, &call_params, &call).await
            }
        };
        if let Some(Ok(route)) = &route {
            if let Err(reply) = check_headers(context, route, &call_params) {
                return reply;
            }
            call.variant = route.view.variant.as_deref();
        }
        let open = match self.decide_call(&call_params, &call).await {
            Ok(open) => open,
            Err(reply) => return reply,
        };
        drop(call);
        let form = self.settings().denials;
        let route = route.map(|route| route.and_then(CallRoute::ensure_served));
        match route {
            Some(Ok(route)) => {
                self.send_permitted_call(context, &call_params, route, open, trace)
                    .await
            }
            Some(Err(error)) => {
                let settling = open.report_not_sent_async(&error);
                settling.wait().await.ok();
                match error {
                    ListError::Upstream(error) => upstream_failure_reply(&error, form),
                    error => call_error_reply(&format!("{error}."), "unchecked", form),
                }
            }
            None => {
                // A policy may name a tool that no server has.
                let reason = self.unknown_tool_text(call_params.name());
                let settling = open.report_not_sent_async(&reason);
                settling.wait().await.ok();
                call_error_reply(&reason, "no_server", form)
            }
        }
    }

    /// The call as the guard decides it, but for the variant of its agent.
    fn guard_call<'c>(
        &self,
        context: &'c RequestContext,
        call_params: &'c CallParams<'_>,
        state: Option<&'c StateName>,
    ) -> Result<Call<'c>, RpcReply> {
        let mut call = Call {
            tool: call_params.name().as_str(),
            feature: None,
            principal: &context.conversation.principal,
            session: context.session(),
            groups: None,
            state,
            arguments: Arc::clone(call_params.arguments()),
            attributes: self.attributes(context, call_params.meta())?,
            variant: None,
            claims: context.claims.as_deref(),
        };
        let form = self.settings().denials;
        self.apply_groups(context, call_params.meta(), &mut call, |it| {
            denied_reply(it, form)
        })?;
        Ok(call)
    }

    /// Denies a call that is not allowed whatever the lists of the servers say, before a list is fetched or a server
    /// is started for it.
    async fn deny_before_listing(
        &self,
        call_params: &CallParams<'_>,
        call: &Call<'_>,
    ) -> Result<(), RpcReply> {
        if !self.is_denied_by_policy(call) {
            return Ok(());
        }
        let open = self.decide_call(call_params, call).await?;
        // The session or a window changed in between. The call is decided again by current lists.
        let reason = "the call is decided again";
        open.report_not_sent_async(&reason).wait().await.ok();
        Ok(())
    }

    /// Whether the policy denies a call for a reason that no list of a server changes: the caller's groups, state,
    /// permissions and rate. A tool that the guard does not know may be on a list that was not fetched yet.
    pub(crate) fn is_denied_by_policy(&self, call: &Call<'_>) -> bool {
        self.report_load();
        self.shared.guard.explain(call).iter().any(|step| {
            let Some(Err(denial)) = &step.outcome else {
                return false;
            };
            match step.gate {
                Gate::Known => denial.code != ReasonCode::UnknownTool,
                Gate::Group | Gate::State | Gate::Permission | Gate::Rate => true,
                Gate::Quarantine | Gate::Input | Gate::Audit => false,
            }
        })
    }

    async fn decide_call(
        &self,
        call_params: &CallParams<'_>,
        call: &Call<'_>,
    ) -> Result<OpenCall, RpcReply> {
        self.report_load();
        let began = self.now();
        let deciding = self.shared.guard.decide_async(call);
        let decision = self.now();
        self.count_stage(CallStage::Decide, decision.saturating_sub(began));
        let decided = deciding.decided().await;
        self.count_stage(CallStage::Record, self.now().saturating_sub(decision));
        decided.map_err(|denial| {
            let directory = self.shared.directory.load();
            match directory.tools.refused(call_params.name()) {
                Some(servers) => {
                    let text = format!("{}.", collision_text(call_params.name(), servers));
                    call_error_reply(&text, "collision", self.settings().denials)
                }
                None => denied_reply(&denial, self.settings().denials),
            }
        })
    }

    /// Makes a permitted call.
    async fn send_permitted_call(
        &self,
        context: &Arc<RequestContext>,
        call_params: &CallParams<'_>,
        route: CallRoute,
        mut open: OpenCall,
        trace: Option<(String, String)>,
    ) -> RpcReply {
        let permitted = open.permitted_call(call_params, OWN_KEY_PREFIX);
        // The name may mean another tool since the route was found.
        let permitted = permitted.and_then(|permitted| {
            let is_routed = *permitted.tool() == route.tool;
            is_routed.then_some(permitted).ok_or(PermitError::OtherCall)
        });
        let permitted = match permitted {
            Ok(permitted) => permitted,
            Err(error) => {
                open.report_not_sent_async(&error).wait().await.ok();
                return RpcReply::error(INTERNAL_ERROR, error.to_string());
            }
        };
        let mut headers = match route.param_headers() {
            Some(wanted) if route.view.era == Era::Stateless => {
                wanted.headers(call_params.raw_arguments().as_deref())
            }
            _ => Vec::new(),
        };
        headers.extend(trace);
        let CallRoute {
            catalog,
            view,
            tool,
            ..
        } = route;
        let outgoing = OutgoingRequest {
            catalog: Arc::clone(&catalog),
            view,
            request: OutgoingMessage::Call(permitted),
            headers,
        };
        let began = self.now();
        let (open, exchanged) = self.forward_call(context, outgoing, open).await;
        let took = self.now().saturating_sub(began);
        self.count_stage(CallStage::Upstream, took);
        match (open, exchanged) {
            (Some(open), exchanged) => {
                self.finish_call(context, &catalog, &tool, open, exchanged)
                    .await
            }
            (None, ForwardOutcome::InputRequired(reply)) => reply,
            (None, _) => RpcReply::NoReply,
        }
    }

    /// Tells the guard how a call ended, and makes the answer of it.
    pub(super) async fn finish_call(
        &self,
        context: &Arc<RequestContext>,
        catalog: &Arc<ServerCatalog>,
        tool: &OwnName,
        open: OpenCall,
        exchanged: ForwardOutcome,
    ) -> RpcReply {
        let began = self.now();
        let reply = match exchanged {
            ForwardOutcome::Response(Ok(result)) => {
                let settled = self
                    .finish_result(context, catalog, tool, open, result)
                    .await;
                settled.unwrap_or_else(|withheld| withheld)
            }
            ForwardOutcome::Response(Err(error)) => {
                let words = format!("{} ({})", error.message, error.code);
                open.report_failure_async(&words).wait().await.ok();
                RpcReply::Error(error)
            }
            ForwardOutcome::Failed(error) => {
                let settling = match error.may_have_been_sent() {
                    true => open.report_failure_async(&error),
                    false => open.report_not_sent_async(&error),
                };
                settling.wait().await.ok();
                upstream_failure_reply(&error, self.settings().denials)
            }
            ForwardOutcome::InputRequired(reply) => {
                open.report_suspended_async().wait().await.ok();
                reply
            }
        };
        self.count_stage(CallStage::Settle, self.now().saturating_sub(began));
        reply
    }

    /// Tells the guard what a result says of the end of a call, and makes the answer of it.
    ///
    /// # Errors
    /// The result is withheld.
    pub(super) async fn finish_result(
        &self,
        context: &Arc<RequestContext>,
        catalog: &Arc<ServerCatalog>,
        tool: &OwnName,
        open: OpenCall,
        mut result: Box<RawValue>,
    ) -> Result<RpcReply, RpcReply> {
        let server = catalog.upstream.name();
        match result_kind(&result) {
            ResultKind::ToolError => {
                // A model reads errors, too.
                self.shared
                    .watch
                    .observe_result(server, tool.as_str(), result.get().into());
                let words = error_text(&result);
                open.report_failure_async(&words).wait().await.ok();
            }
            ResultKind::InputRequired => drop(open.report_suspended_async().wait().await),
            ResultKind::Task => {
                result = self
                    .with_shown_task(catalog, Some(&result))
                    .unwrap_or(result);
                self.track_task(context, &result, open);
            }
            ResultKind::NotObject => {
                let why = "it is not a JSON object";
                open.report_failure_async(&why).wait().await.ok();
                return Err(self.withheld_reply(tool, &why));
            }
            ResultKind::Contradictory => {
                let why = "it asks for more input and contains an answer";
                open.report_failure_async(&why).wait().await.ok();
                return Err(self.withheld_reply(tool, &why));
            }
            ResultKind::Complete => {
                self.shared
                    .watch
                    .observe_result(server, tool.as_str(), result.get().into());
                let moves = open.next_state().is_some();
                let settling = if open.checks_output() {
                    open.report_success_async(&structured_content(&result))
                } else {
                    open.report_success_unchecked_async()
                };
                if let Err(rejected) = settling.wait().await {
                    return Err(self.withheld_reply(tool, &rejected));
                }
                self.record_references(context, catalog, result.get());
                if moves {
                    self.notify_state_changed(context);
                }
            }
        }
        Ok(strip_hidden_characters(catalog, result))
    }

    fn withheld_reply(&self, tool: &OwnName, why: &dyn std::fmt::Display) -> RpcReply {
        let text = format!(
            "The answer of `{tool}` was withheld: {why}. Go on without it, or tell the person you work for."
        );
        call_error_reply(&text, "invalid_output", self.settings().denials)
    }

    /// The reply to a call of a tool that no server offers.
    fn unknown_tool_text(&self, name: &ExposedName) -> String {
        format!(
            "`{name}` is in the policy, but no server behind this gateway offers it. Go on without it."
        )
    }
}

/// Holds the headers of a stateless call to its arguments.
fn check_headers(
    context: &RequestContext,
    route: &CallRoute,
    call_params: &CallParams<'_>,
) -> Result<(), RpcReply> {
    if context.agent.era == Era::Handshake || !context.headers.are_present() {
        return Ok(());
    }
    let Some(wanted) = route.param_headers() else {
        return Ok(());
    };
    let arguments = call_params.raw_arguments();
    let open_link = wanted.check(arguments.as_deref(), |name| context.headers.sent(name));
    open_link.map_err(|message| RpcReply::error(HEADER_MISMATCH, message))
}

/// A result without hidden characters, where its server's are not to be seen.
pub(super) fn strip_hidden_characters(catalog: &ServerCatalog, result: Box<RawValue>) -> RpcReply {
    if catalog.upstream.settings().watch.strip_hidden
        && let Cow::Owned(stripped) = strip_hidden(result.get())
    {
        return RpcReply::Result(stripped);
    }
    RpcReply::from_raw(result)
}

/// The text of a tool's error, for the log.
fn error_text(result: &RawValue) -> String {
    let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let content = result.get("content").and_then(Value::as_array);
    let mut texts = content
        .into_iter()
        .flatten()
        .filter_map(|part| part.get("text").and_then(Value::as_str));
    texts.next().unwrap_or("the tool failed").to_owned()
}

/// What a result promises to satisfy the output schema.
fn structured_content(result: &RawValue) -> Value {
    let members = RawObject::parse_optional(Some(result));
    let structured = members.get("structuredContent");
    serde_json::from_str(structured.unwrap_or("null")).unwrap_or_default()
}
