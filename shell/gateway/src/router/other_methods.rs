//! Prompts, completion, logging and methods that the gateway does not know.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolwarden_guard::FeatureKind;
use toolwarden_mcp::error_codes::{INTERNAL_ERROR, INVALID_PARAMS};
use toolwarden_mcp::{Era, RawObject};
use toolwarden_model::{ExposedName, OwnName};

use super::duplicate_members::parse_params;
use super::error_replies::unavailable_reply;
use super::features::{FeatureRequest, recorded_params};
use super::forward::{ForwardOutcome, OutgoingRequest, forwarded_params};
use super::resources::{empty_arguments, unknown_resource};
use super::result_kind::is_object;
use super::{EMPTY, Gateway, RpcReply, unknown_method};
use crate::catalog::{ListError, ListKind, ServerCatalog, collision_text};
use crate::in_flight::LOG_LEVELS;
use crate::pending_inputs::{PendingInput, PendingInputs};
use crate::request_context::RequestContext;
use crate::upstream::LinkKey;

impl Gateway {
    /// Sends a server a request that belongs to a permitted call.
    pub(super) async fn forward_for_call(
        &self,
        context: &Arc<RequestContext>,
        catalog: Arc<ServerCatalog>,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> RpcReply {
        match self.outgoing_request(context, &catalog, method, None).await {
            Ok(outgoing) => {
                let outgoing = outgoing.with_params(params);
                self.forward_without_permit(context, outgoing).await
            }
            Err(reply) => reply,
        }
    }

    /// Sends a server a request that needs no permit.
    pub(super) async fn forward_without_permit(
        &self,
        context: &Arc<RequestContext>,
        outgoing: OutgoingRequest,
    ) -> RpcReply {
        let method = outgoing.request.method().to_owned();
        match self.forward(context, outgoing).await {
            ForwardOutcome::Response(Ok(result)) if !is_object(result.get()) => {
                not_an_object_reply(&method)
            }
            ForwardOutcome::Response(Ok(result)) => RpcReply::from_raw(result),
            ForwardOutcome::Response(Err(error)) => RpcReply::Error(error),
            ForwardOutcome::Failed(error) => unavailable_reply(&error),
            ForwardOutcome::InputRequired(reply) => reply,
        }
    }

    pub(super) async fn get_prompt(
        &self,
        context: &Arc<RequestContext>,
        params: Option<&RawValue>,
    ) -> RpcReply {
        const METHOD: &str = "prompts/get";
        let members = RawObject::parse_optional(params);
        let Some(shown) = members.text("name") else {
            return RpcReply::error(INVALID_PARAMS, "params.name is not a string");
        };
        let (catalog, name) = match self.find_prompt(context, &shown).await {
            Ok(found) => found,
            Err(reply) => {
                let what = (FeatureKind::Prompt, METHOD);
                return self
                    .refuse_unknown(context, &members, what, &shown, reply)
                    .await;
            }
        };
        let check = |result: String| {
            self.record_references(context, &catalog, &result);
            Ok(result)
        };
        if let Some(state) = members
            .text("requestState")
            .filter(|it| PendingInputs::owns_state(it))
        {
            // The state is not bound to the name, because the server uses its own name.
            let own = OwnName::new(Arc::clone(&name));
            let is_same = |parked: &PendingInput| parked.is_for_item(&catalog, &own);
            let request = (METHOD, params);
            return self
                .resume_feature(context, request, &state, is_same, check)
                .await;
        }
        let used = self.prompt_request(METHOD, &catalog, (&shown, &name));
        let used = used.with_listing(&catalog, &[ListKind::Prompts], &name);
        let arguments = match recorded_params(&members, &["arguments"]) {
            Value::Object(mut said) => match said.remove("arguments") {
                Some(arguments @ Value::Object(_)) => arguments,
                Some(other) => json!({"arguments": other}),
                None => empty_arguments(),
            },
            other => other,
        };
        let open = match self
            .permit_feature(context, &members, &used, arguments)
            .await
        {
            Ok(open) => open,
            Err(refusal) => return refusal.into_reply(|| unknown_prompt(&shown)),
        };
        let change = (*name != *shown).then_some(("name", &*name));
        let params = forwarded_params(params, change).map(Cow::into_owned);
        let to = (&catalog, METHOD);
        self.forward_permitted(context, to, params, open, check)
            .await
    }

    /// A prompt of a server, as the guard decides it.
    pub(super) fn prompt_request<'u>(
        &self,
        method: &'u str,
        catalog: &ServerCatalog,
        (shown, own): (&str, &str),
    ) -> FeatureRequest<'u> {
        FeatureRequest {
            aliases: self.alias_names(catalog.upstream.name(), own),
            ..FeatureRequest::new(FeatureKind::Prompt, method, shown).on_server(catalog)
        }
    }

    async fn find_prompt(
        &self,
        context: &Arc<RequestContext>,
        shown: &str,
    ) -> Result<(Arc<ServerCatalog>, Arc<str>), RpcReply> {
        if let Some(only) = self.transparent_server() {
            return Ok((only, shown.into()));
        }
        let lists = self.feature_lists_for(context, ListKind::Prompts).await;
        let names = self.shown_names(ListKind::Prompts, &lists);
        let exposed = ExposedName::new(shown);
        if let Some(servers) = names.refused(&exposed) {
            let text = collision_text(&exposed, servers);
            return Err(RpcReply::error(INVALID_PARAMS, text));
        }
        let found = names.find(&exposed).and_then(|named| {
            let catalog = self.server_catalog(named.server.as_str())?;
            Some((catalog, Arc::clone(named.name.as_arc())))
        });
        found.ok_or_else(|| unknown_prompt(shown))
    }

    pub(super) async fn complete(
        &self,
        context: &Arc<RequestContext>,
        params: Option<&RawValue>,
    ) -> RpcReply {
        const METHOD: &str = "completion/complete";
        let members = RawObject::parse_optional(params);
        let reference = match members
            .get("ref")
            .map(|it| RawValue::from_string(it.to_owned()))
        {
            Some(Ok(reference)) => match parse_params(&reference) {
                Ok(reference) => reference.to_raw(),
                Err(reply) => return reply,
            },
            _ => return RpcReply::error(INVALID_PARAMS, "params.ref is missing"),
        };
        let reference = RawObject::parse_optional(Some(&reference));
        let arguments = recorded_params(&members, &["argument", "context"]);
        // The guard decides on what the server reads: the member that belongs to the type.
        let kind = reference.text("type").unwrap_or_default();
        let of_kind = |wanted: &str, key: &str| {
            reference
                .text(key)
                .filter(|_| *kind == *wanted && reference.get(other_reference_key(key)).is_none())
        };
        if let Some(uri) = of_kind("ref/resource", "uri") {
            let address = match self.find_template(context, &uri).await {
                Ok(address) => address,
                Err(reply) => {
                    let what = (FeatureKind::Resource, METHOD);
                    return self
                        .refuse_unknown(context, &members, what, &uri, reply)
                        .await;
                }
            };
            let used = address.feature_request(FeatureKind::Resource, METHOD);
            let open = match self
                .permit_feature(context, &members, &used, arguments)
                .await
            {
                Ok(open) => open,
                Err(refusal) => {
                    return refusal.into_reply(|| unknown_resource(&uri, context.agent.era));
                }
            };
            let renamed = with_reference(&members, &reference, ("uri", &address.uri));
            let params = forwarded_params(Some(&renamed), None).map(Cow::into_owned);
            let to = (&address.catalog, METHOD);
            return self.forward_permitted(context, to, params, open, Ok).await;
        }
        let Some(shown) = of_kind("ref/prompt", "name") else {
            return RpcReply::error(
                INVALID_PARAMS,
                "params.ref is neither {type: ref/prompt, name} nor {type: ref/resource, uri}",
            );
        };
        let (catalog, name) = match self.find_prompt(context, &shown).await {
            Ok(found) => found,
            Err(reply) => {
                let what = (FeatureKind::Prompt, METHOD);
                return self
                    .refuse_unknown(context, &members, what, &shown, reply)
                    .await;
            }
        };
        let used = self.prompt_request(METHOD, &catalog, (&shown, &name));
        let used = used.with_listing(&catalog, &[ListKind::Prompts], &name);
        let open = match self
            .permit_feature(context, &members, &used, arguments)
            .await
        {
            Ok(open) => open,
            Err(refusal) => return refusal.into_reply(|| unknown_prompt(&shown)),
        };
        let renamed = with_reference(&members, &reference, ("name", &name));
        let params = forwarded_params(Some(&renamed), None).map(Cow::into_owned);
        let to = (&catalog, METHOD);
        self.forward_permitted(context, to, params, open, Ok).await
    }

    pub(super) async fn set_log_level(
        &self,
        context: &Arc<RequestContext>,
        params: Option<&RawValue>,
    ) -> RpcReply {
        let members = RawObject::parse_optional(params);
        let Some(level) = members.text("level").map(Cow::into_owned) else {
            return RpcReply::error(INVALID_PARAMS, "params.level is not a string");
        };
        if !LOG_LEVELS.contains(&level.as_str()) {
            let text = format!("params.level is none of {}", LOG_LEVELS.join(", "));
            return RpcReply::error(INVALID_PARAMS, text);
        }
        let mut agent = (**context.conversation.agent.load()).clone();
        agent.log_level = Some(level);
        context.conversation.agent.store(Arc::new(agent));
        let mut refusal = None;
        let mut taken = false;
        for catalog in self
            .server_catalogs()
            .iter()
            .filter(|it| it.has_capability("logging") && !it.is_blocked())
            .filter(|it| self.may_reach_server(context, it))
        {
            let ready = self
                .outgoing_request(context, catalog, "logging/setLevel", params)
                .await;
            let ready = ready.map(|ready| self.with_shared_log_level(ready));
            // A stateless server gets the level with every request.
            match ready {
                Ok(ready) if ready.view.era == Era::Handshake => {
                    match self.forward_without_permit(context, ready).await {
                        RpcReply::Result(_) | RpcReply::NoReply => taken = true,
                        RpcReply::Error(error) => refusal = Some(error),
                    }
                }
                _ => taken = true,
            }
        }
        match refusal.filter(|_| !taken) {
            Some(error) => RpcReply::Error(error),
            None => RpcReply::Result(EMPTY.to_owned()),
        }
    }

    /// Over a connection that agents share, the server gets the most verbose level that any of them set.
    fn with_shared_log_level(&self, outgoing: OutgoingRequest) -> OutgoingRequest {
        if !self.is_shared_link(&outgoing.view.key) {
            return outgoing;
        }
        let wanted = self.conversations().all().into_iter().filter_map(|it| {
            let agent = it.agent.load();
            let level = agent.log_level.as_deref()?;
            LOG_LEVELS.iter().position(|known| *known == level)
        });
        let level = wanted.min().and_then(|at| LOG_LEVELS.get(at));
        let params = level.and_then(|level| {
            let params = json!({"level": level});
            serde_json::value::to_raw_value(&params).ok()
        });
        match params {
            Some(params) => outgoing.with_params(Some(params)),
            None => outgoing,
        }
    }

    /// Whether several agents use a connection.
    pub(super) fn is_shared_link(&self, key: &LinkKey) -> bool {
        !matches!(key, LinkKey::Conversation(_)) && self.transparent_server().is_none()
    }

    /// Forwards a method that the gateway does not know: to the only server if there is just one, otherwise to the
    /// only server that declares the extension it belongs to.
    pub(super) async fn forward_unknown_method(
        &self,
        context: &Arc<RequestContext>,
        method: &str,
        params: Option<&RawValue>,
    ) -> RpcReply {
        let server = self
            .transparent_server()
            .or_else(|| self.extension_server(method));
        let members = RawObject::parse_optional(params);
        let Some(server) = server else {
            // The name for rules: a method of no server.
            let (what, reply) = ((FeatureKind::Method, method), unknown_method(method));
            return self
                .refuse_unknown(context, &members, what, method, reply)
                .await;
        };
        let name = format!("{}/{method}", server.upstream.name());
        let used = FeatureRequest::new(FeatureKind::Method, method, &name).on_server(&server);
        let keys = members.iter().map(|(key, _)| key);
        let keys: Vec<&str> = keys.filter(|key| *key != "_meta").collect();
        let arguments = recorded_params(&members, &keys);
        let open = match self
            .permit_feature(context, &members, &used, arguments)
            .await
        {
            Ok(open) => open,
            Err(refusal) => return refusal.into_reply(|| unknown_method(method)),
        };
        let params = forwarded_params(params, None).map(Cow::into_owned);
        let to = (&server, method);
        self.forward_permitted(context, to, params, open, Ok).await
    }

    /// Forwards a notification of an agent to the servers to which it has its own connection: over a shared
    /// connection it would speak for other agents.
    pub(super) async fn forward_notification(
        &self,
        context: &Arc<RequestContext>,
        method: &str,
        params: Option<&RawValue>,
    ) {
        for catalog in self.server_catalogs().iter().filter(|it| !it.is_blocked()) {
            let Ok(view) = catalog.call_view(context.client()).await else {
                continue;
            };
            if view.era == Era::Handshake
                && !self.is_shared_link(&view.key)
                && self.may_reach_server(context, catalog)
            {
                let notified = catalog.upstream.notify(&view.key, method, params).await;
                // A server without a connection does not need the notification.
                drop(notified);
            }
        }
    }
}

fn unknown_prompt(shown: &str) -> RpcReply {
    RpcReply::error(INVALID_PARAMS, format!("unknown prompt `{shown}`"))
}

/// The member that the other kind of reference has.
fn other_reference_key(key: &str) -> &'static str {
    match key {
        "uri" => "name",
        _ => "uri",
    }
}

/// The parameters of a completion with the server's own name in the reference.
fn with_reference(
    params: &RawObject<'_>,
    reference: &RawObject<'_>,
    (key, own): (&str, &str),
) -> Box<RawValue> {
    let mut reference = reference.clone();
    reference.set(key, serde_json::Value::from(own).to_string());
    let reference = reference.to_string();
    let mut params = params.clone();
    params.set("ref", reference);
    params.to_raw()
}

/// The reply if the list of a server cannot be fetched.
pub(super) fn list_error_reply(error: &ListError) -> RpcReply {
    match error {
        ListError::Upstream(error) => unavailable_reply(error),
        error => RpcReply::error(
            toolwarden_mcp::error_codes::INTERNAL_ERROR,
            error.to_string(),
        ),
    }
}

/// The reply if a server's result is not an object, as the protocol requires.
pub(super) fn not_an_object_reply(method: &str) -> RpcReply {
    let text = format!("the server's answer to `{method}` was withheld: it is not a JSON object");
    RpcReply::error(INTERNAL_ERROR, text)
}
