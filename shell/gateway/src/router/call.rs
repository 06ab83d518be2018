//! Calls of tools: decided, recorded, sent, settled.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use toolwarden_live_guard::{Call, CallDestination, CallParams, OpenCall};
use toolwarden_mcp::error_codes::{HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS};
use toolwarden_mcp::{Era, RawObject};
use toolwarden_settings::PrefixMode;
use toolwarden_watch::inline::strip_hidden;

use super::call_trace::trace_header;
use super::duplicate_members::readable_call;
use super::error_replies::{call_error_reply, denied_reply, upstream_failure_reply};
use super::forward::{ForwardOutcome, OutgoingMessage, OutgoingRequest};
use super::input_required::PendingInputs;
use super::request_context::{OWN_KEY_PREFIX, RequestContext, STATE_KEY};
use super::result_kind::{ResultKind, result_kind};
use super::{Gateway, RpcReply};
use crate::catalog::{ListError, OriginalName, ServerCatalog, ServerView, collision_text};
use crate::metrics::CallStage;

/// Where a call goes.
pub(super) struct CallRoute {
    pub(super) catalog: Arc<ServerCatalog>,
    pub(super) view: ServerView,
    /// What the server calls the tool.
    pub(super) tool: Arc<str>,
    /// Why this agent's own list does not serve it, whatever the guard decides by all lists.
    withheld: Option<ListError>,
}

impl CallRoute {
    fn ensure_served(mut self) -> Result<Self, ListError> {
        match self.withheld.take() {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }
}

impl Gateway {
    pub(super) async fn call_tool(
        &self,
        asked: &Arc<RequestContext>,
        params: Option<&RawValue>,
    ) -> RpcReply {
        let Some(params) = params else {
            return RpcReply::error(INVALID_PARAMS, "params is missing");
        };
        let called = match readable_call(params) {
            Ok(called) => called,
            Err(reply) => return reply,
        };
        if let Some(state) = called.members().text("requestState")
            && PendingInputs::owns_state(&state)
        {
            return Box::pin(self.resume_call(asked, &called, &state)).await;
        }
        // A list that is stale is looked at before anything is decided by it.
        let route = self.route_call(asked, called.name()).await;
        if let Some(Ok(route)) = &route
            && let Err(reply) = check_headers(asked, route, &called)
        {
            return reply;
        }
        let variant = match &route {
            Some(Ok(route)) => route.view.variant.as_deref(),
            Some(Err(_)) | None => None,
        };
        let open = match self.decide_call(asked, &called, variant).await {
            Ok(open) => open,
            Err(reply) => return reply,
        };
        let form = self.settings().denials;
        let route = route.map(|route| route.and_then(CallRoute::ensure_served));
        match route {
            Some(Ok(route)) => self.send_permitted_call(asked, &called, route, open).await,
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
                let reason = self.unknown_tool_text(called.name());
                let settling = open.report_not_sent_async(&reason);
                settling.wait().await.ok();
                call_error_reply(&reason, "no_server", form)
            }
        }
    }

    /// Where a tool is, its list looked at again where that is due.
    async fn route_call(
        &self,
        asked: &Arc<RequestContext>,
        name: &str,
    ) -> Option<Result<CallRoute, ListError>> {
        let named = match self.named(name) {
            Some(named) => named,
            None => {
                Box::pin(self.refresh_unknown_tool(asked, name)).await;
                self.named(name)?
            }
        };
        let shelf = self.server_catalog(&named.server)?;
        let looked = async {
            let looking = shelf.call_view(asked.client()).await?;
            let oldest = shelf.upstream.settings().watch.max_age_before_call;
            let mut list = self.checked_tools(&shelf, &looking, oldest).await?;
            let directory = self.shared.directory.load();
            let variant = looking.variant.as_deref();
            if *looking.scope != *"" && directory.withheld_from(name, variant).is_some() {
                // What the gateway saw itself withholds it, too, and may be as old.
                self.refresh_tools(&shelf, oldest).await?;
                list = self.checked_tools(&shelf, &looking, None).await?;
            }
            Ok((looking, list))
        };
        let (looking, list) = match looked.await {
            Ok(looked) => looked,
            Err(error) => return Some(Err(error)),
        };
        // The look may have changed what the name means.
        let now = self.named(name)?;
        if now.server != named.server {
            return None;
        }
        Some(Ok(CallRoute {
            catalog: shelf,
            view: looking,
            withheld: list.withheld_reason(&now),
            tool: now.name,
        }))
    }

    pub(crate) fn named(&self, name: &str) -> Option<OriginalName> {
        self.shared.directory.load().tools.find(name).cloned()
    }

    /// Looks for an agent at the servers that it has not seen yet and that may have a tool of this name: an
    /// agent need not have listed the tools before it calls one.
    async fn refresh_unknown_tool(&self, asked: &Arc<RequestContext>, name: &str) {
        let settings = self.settings();
        let mut looks = Vec::new();
        for shelf in self.server_catalogs().iter() {
            let server = shelf.upstream.name();
            let prefixed = || {
                let rest = name.strip_prefix(server);
                rest.is_some_and(|rest| rest.starts_with(&settings.separator))
            };
            let cannot = settings.prefix == PrefixMode::Always && !prefixed();
            if cannot || shelf.has_active_list(asked.client()) {
                continue;
            }
            let (gateway, asked) = (self.clone(), Arc::clone(asked));
            let looked = Arc::clone(shelf);
            let look = async move { gateway.tool_list_for(&looked, &asked).await };
            looks.push(shelf.with_list_timeout(look));
        }
        for look in looks {
            // What goes wrong shows in the health of the server.
            drop(look.await);
        }
    }

    async fn decide_call(
        &self,
        asked: &RequestContext,
        called: &CallParams<'_>,
        variant: Option<&str>,
    ) -> Result<OpenCall, RpcReply> {
        let meta = called.members().object("_meta");
        let attributes = self.attributes(asked, meta.as_ref())?;
        let state = meta.as_ref().and_then(|meta| meta.text(STATE_KEY));
        let mut call = Call {
            tool: called.name(),
            feature: None,
            principal: &asked.conversation.principal,
            session: asked.session(),
            groups: None,
            state: state.as_deref(),
            arguments: Arc::clone(called.arguments()),
            attributes,
            variant,
            claims: asked.claims.as_deref(),
        };
        let form = self.settings().denials;
        self.apply_groups(asked, meta.as_ref(), &mut call, |it| denied_reply(it, form))?;
        self.report_load();
        let began = self.now();
        let deciding = self.shared.guard.decide_async(&call);
        let weighed = self.now();
        self.count_stage(CallStage::Decide, weighed.saturating_sub(began));
        let decided = deciding.decided().await;
        self.count_stage(CallStage::Record, self.now().saturating_sub(weighed));
        decided.map_err(|denial| {
            let directory = self.shared.directory.load();
            match directory.tools.refused(called.name()) {
                Some(servers) => {
                    let text = format!("{}.", collision_text(called.name(), servers));
                    call_error_reply(&text, "collision", self.settings().denials)
                }
                None => denied_reply(&denial, self.settings().denials),
            }
        })
    }

    /// Makes a permitted call.
    async fn send_permitted_call(
        &self,
        asked: &Arc<RequestContext>,
        called: &CallParams<'_>,
        route: CallRoute,
        mut open: OpenCall,
    ) -> RpcReply {
        let CallRoute {
            catalog: shelf,
            view: looking,
            tool,
            withheld: _,
        } = route;
        let route = CallDestination {
            server: shelf.upstream.name(),
            tool: &tool,
            private_meta: OWN_KEY_PREFIX,
        };
        let permitted = match open.permitted_call(called, route) {
            Ok(permitted) => permitted,
            Err(error) => {
                open.report_not_sent_async(&error).wait().await.ok();
                return RpcReply::error(INTERNAL_ERROR, error.to_string());
            }
        };
        let mut headers = self.param_headers(&shelf, &looking, &tool, called);
        headers.extend(trace_header(asked));
        let outgoing = OutgoingRequest {
            catalog: Arc::clone(&shelf),
            view: looking,
            request: OutgoingMessage::Call(permitted),
            headers,
        };
        let began = self.now();
        let (open, exchanged) = self.forward_call(asked, outgoing, open).await;
        let took = self.now().saturating_sub(began);
        self.count_stage(CallStage::Upstream, took);
        match (open, exchanged) {
            (Some(open), exchanged) => {
                self.finish_call(asked, &shelf, &tool, open, exchanged)
                    .await
            }
            (None, ForwardOutcome::InputRequired(reply)) => reply,
            (None, _) => RpcReply::NoReply,
        }
    }

    /// Tells the guard how a call ended, and makes the answer of it.
    pub(super) async fn finish_call(
        &self,
        asked: &Arc<RequestContext>,
        shelf: &Arc<ServerCatalog>,
        tool: &str,
        open: OpenCall,
        exchanged: ForwardOutcome,
    ) -> RpcReply {
        let began = self.now();
        let reply = match exchanged {
            ForwardOutcome::Response(Ok(result)) => {
                let settled = self.finish_result(asked, shelf, tool, open, result).await;
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
        asked: &Arc<RequestContext>,
        shelf: &Arc<ServerCatalog>,
        tool: &str,
        open: OpenCall,
        mut result: Box<RawValue>,
    ) -> Result<RpcReply, RpcReply> {
        let server = shelf.upstream.name();
        match result_kind(&result) {
            ResultKind::ToolError => {
                // A model reads errors, too.
                self.shared
                    .watch
                    .observe_result(server, tool, result.get().into());
                let words = error_text(&result);
                open.report_failure_async(&words).wait().await.ok();
            }
            ResultKind::InputRequired => drop(open.report_suspended_async().wait().await),
            ResultKind::Task => {
                result = self.with_shown_task(shelf, Some(&result)).unwrap_or(result);
                self.track_task(asked, &result, open);
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
                    .observe_result(server, tool, result.get().into());
                let moves = open.next_state().is_some();
                let settling = if open.checks_output() {
                    open.report_success_async(&structured_content(&result))
                } else {
                    open.report_success_unchecked_async()
                };
                if let Err(rejected) = settling.wait().await {
                    return Err(self.withheld_reply(tool, &rejected));
                }
                self.record_references(asked, shelf, result.get());
                if moves {
                    self.notify_state_changed(asked);
                }
            }
        }
        Ok(strip_hidden_characters(shelf, result))
    }

    fn withheld_reply(&self, tool: &str, why: &dyn std::fmt::Display) -> RpcReply {
        let text = format!(
            "The answer of `{tool}` was withheld: {why}. Go on without it, or tell the person you work for."
        );
        call_error_reply(&text, "invalid_output", self.settings().denials)
    }

    /// The reply to a call of a tool that no server offers.
    fn unknown_tool_text(&self, name: &str) -> String {
        format!(
            "`{name}` is in the policy, but no server behind this gateway offers it. Go on without it."
        )
    }

    fn param_headers(
        &self,
        shelf: &ServerCatalog,
        looking: &ServerView,
        tool: &str,
        called: &CallParams<'_>,
    ) -> Vec<(String, String)> {
        if looking.era == Era::Handshake {
            return Vec::new();
        }
        let list = shelf.last_tools(&looking.scope);
        let item = list.as_ref().and_then(|list| list.tool(tool));
        let item = item.filter(|item| !item.headers.is_empty());
        item.map_or_else(Vec::new, |item| {
            item.headers.headers(called.raw_arguments().as_deref())
        })
    }
}

/// Holds the headers of a stateless call to its arguments.
fn check_headers(
    asked: &RequestContext,
    route: &CallRoute,
    called: &CallParams<'_>,
) -> Result<(), RpcReply> {
    if asked.agent.era == Era::Handshake || !asked.headers.are_present() {
        return Ok(());
    }
    let list = route.catalog.last_tools(&route.view.scope);
    let item = list.as_ref().and_then(|list| list.tool(&route.tool));
    let Some(item) = item.filter(|item| !item.headers.is_empty()) else {
        return Ok(());
    };
    let arguments = called.raw_arguments();
    let held = item
        .headers
        .check(arguments.as_deref(), |name| asked.headers.sent(name));
    held.map_err(|message| RpcReply::error(HEADER_MISMATCH, message))
}

/// A result without hidden characters, where its server's are not to be seen.
pub(super) fn strip_hidden_characters(shelf: &ServerCatalog, result: Box<RawValue>) -> RpcReply {
    if shelf.upstream.settings().watch.strip_hidden
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
