//! Requests about features other than tools: authorized, recorded and settled like calls.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolwarden_guard::{Denial, Feature, FeatureKind, ReasonCode};
use toolwarden_live_guard::{Call, OpenCall};
use toolwarden_mcp::{Era, RawObject};
use toolwarden_settings::PrefixMode;

use super::error_replies::{denied_feature_reply, unavailable_reply};
use super::forward::ForwardOutcome;
use super::other_methods::not_an_object_reply;
use super::result_kind::{ResultKind, is_object, result_kind, with_cache_directives};
use super::{Gateway, RpcReply};
use crate::catalog::{ListKind, ServerCatalog};
use crate::metrics::CallStage;
use crate::pending_inputs::PendingInput;
use crate::request_context::{RequestContext, state_from_meta};

/// The feature that a request uses, as the guard decides it.
#[derive(Clone, Debug)]
pub(super) struct FeatureRequest<'u> {
    pub(super) kind: FeatureKind,
    pub(super) method: &'u str,
    /// The server's own address, or the name that agents know.
    pub(super) name: String,
    pub(super) aliases: Vec<String>,
    /// The server that offers it; `None` if no server does.
    pub(super) server: Option<Arc<str>>,
    /// Why it is withheld, if it is.
    pub(super) withheld: Option<&'static str>,
    /// The skills it belongs to.
    pub(super) skills: Vec<Arc<str>>,
}

/// Why a request is not forwarded.
pub(super) enum FeatureRefusal {
    /// It cannot be parsed.
    Invalid(RpcReply),
    /// The guard denies it.
    Denied(Denial),
}

impl<'u> FeatureRequest<'u> {
    pub(super) fn new(kind: FeatureKind, method: &'u str, name: &str) -> Self {
        Self {
            kind,
            method,
            name: name.to_owned(),
            aliases: Vec::new(),
            server: None,
            withheld: None,
            skills: Vec::new(),
        }
    }

    pub(super) fn on_server(self, catalog: &ServerCatalog) -> Self {
        Self {
            server: Some(catalog.upstream.name().into()),
            withheld: catalog.is_blocked().then_some(SERVER_BLOCKED),
            ..self
        }
    }

    /// Completes it from the lists of its server, under the server's own name or address.
    pub(super) fn with_listing(
        self,
        catalog: &ServerCatalog,
        kinds: &[ListKind],
        key: &str,
    ) -> Self {
        let used = self.on_server(catalog);
        let is_withheld = || kinds.iter().any(|kind| catalog.withholds_item(*kind, key));
        let withheld = used
            .withheld
            .or_else(|| is_withheld().then_some(AWAITS_APPROVAL));
        Self { withheld, ..used }
    }

    pub(super) fn feature(&self) -> Feature<'_> {
        Feature {
            kind: self.kind,
            name: &self.name,
            aliases: &self.aliases,
            server: self.server.as_deref(),
            quarantine_reason: self.withheld,
            skills: &self.skills,
            method: self.method,
        }
    }
}

/// Why an entry that a list withholds is not served.
const AWAITS_APPROVAL: &str = "its entry in the list of its server is pending approval";

/// Why nothing is served of a server whose tools drifted.
const SERVER_BLOCKED: &str = "its server is blocked until its changes are approved";

impl FeatureRefusal {
    /// The reply. It is the same for features that no server offers and for those that the policy hides.
    pub(super) fn into_reply(self, unknown: impl FnOnce() -> RpcReply) -> RpcReply {
        match self {
            Self::Invalid(reply) => reply,
            Self::Denied(denial) if denial.code == ReasonCode::NotOffered => unknown(),
            Self::Denied(denial) => denied_feature_reply(&denial),
        }
    }
}

impl Gateway {
    /// Decides a request, and waits until the decision is as durable as the policy requires.
    pub(super) async fn permit_feature(
        &self,
        context: &RequestContext,
        params: &RawObject<'_>,
        used: &FeatureRequest<'_>,
        arguments: Value,
    ) -> Result<OpenCall, FeatureRefusal> {
        let meta = params.object("_meta");
        let attributes = self.attributes(context, meta.as_ref());
        let state = meta.as_ref().and_then(state_from_meta);
        let mut call = Call {
            feature: Some(used.feature()),
            principal: &context.conversation.principal,
            session: context.session(),
            state: state.as_ref(),
            arguments: Arc::new(arguments),
            attributes: attributes.map_err(FeatureRefusal::Invalid)?,
            claims: context.claims.as_deref(),
            ..Call::default()
        };
        self.apply_groups(context, meta.as_ref(), &mut call, denied_feature_reply)
            .map_err(FeatureRefusal::Invalid)?;
        self.report_load();
        let began = self.now();
        let deciding = self.shared.guard.decide_async(&call);
        let decision = self.now();
        self.count_stage(CallStage::Decide, decision.saturating_sub(began));
        let decided = deciding.decided().await;
        self.count_stage(CallStage::Record, self.now().saturating_sub(decision));
        decided.map_err(FeatureRefusal::Denied)
    }

    /// Which of these features an agent sees.
    ///
    /// # Errors
    /// It requests groups that it may not request.
    pub(super) fn feature_visibility<'u>(
        &self,
        context: &RequestContext,
        params: &RawObject<'_>,
        used: impl IntoIterator<Item = &'u FeatureRequest<'u>>,
    ) -> Result<Vec<bool>, RpcReply> {
        let meta = params.object("_meta");
        let state = meta.as_ref().and_then(state_from_meta);
        let mut call = Call {
            principal: &context.conversation.principal,
            session: context.session(),
            state: state.as_ref(),
            attributes: self.attributes(context, meta.as_ref())?,
            claims: context.claims.as_deref(),
            ..Call::default()
        };
        self.apply_groups(context, meta.as_ref(), &mut call, denied_feature_reply)?;
        self.report_load();
        let features = used.into_iter().map(FeatureRequest::feature);
        let seen = self.shared.guard.visible_features(&call, features);
        seen.map_err(|denial| denied_feature_reply(&denial))
    }

    /// Sends a permitted request to its server, and records its outcome. `check` turns the result into what the
    /// agent gets, or withholds it.
    pub(super) async fn forward_permitted(
        &self,
        context: &Arc<RequestContext>,
        (catalog, method): (&Arc<ServerCatalog>, &str),
        params: Option<Box<RawValue>>,
        open: OpenCall,
        check: impl FnOnce(String) -> Result<String, RpcReply>,
    ) -> RpcReply {
        let outgoing = match self.outgoing_request(context, catalog, method, None).await {
            Ok(outgoing) => outgoing.with_params(params),
            Err(reply) => return record_failure(open, reply).await,
        };
        let began = self.now();
        let (open, exchanged) = self.forward_call(context, outgoing, open).await;
        self.count_stage(CallStage::Upstream, self.now().saturating_sub(began));
        self.finish_feature(context, method, (open, exchanged), check)
            .await
    }

    /// Continues a request that waited for input from the agent, if the agent refers to it and the waiting request is
    /// the same. It was decided when it began.
    pub(super) async fn resume_feature(
        &self,
        context: &Arc<RequestContext>,
        (method, params): (&str, Option<&RawValue>),
        state: &str,
        is_same: impl Fn(&PendingInput) -> bool,
        check: impl FnOnce(String) -> Result<String, RpcReply>,
    ) -> RpcReply {
        let resumed = self.resume(context, method, params, state, is_same).await;
        match resumed {
            Ok(resumed) => {
                let end = (resumed.open, resumed.outcome);
                self.finish_feature(context, method, end, check).await
            }
            Err(reply) => reply,
        }
    }

    async fn finish_feature(
        &self,
        context: &RequestContext,
        method: &str,
        end: (Option<OpenCall>, ForwardOutcome),
        check: impl FnOnce(String) -> Result<String, RpcReply>,
    ) -> RpcReply {
        let (open, exchanged) = match end {
            (Some(open), exchanged) => (open, exchanged),
            (None, ForwardOutcome::InputRequired(reply)) => return reply,
            (None, _) => return RpcReply::NoReply,
        };
        let result = match exchanged {
            ForwardOutcome::Response(Ok(result)) => result,
            ForwardOutcome::Response(Err(error)) => {
                return record_failure(open, RpcReply::Error(error)).await;
            }
            ForwardOutcome::Failed(error) => {
                return record_failure(open, unavailable_reply(&error)).await;
            }
            ForwardOutcome::InputRequired(reply) => {
                open.report_suspended_async().wait().await.ok();
                return reply;
            }
        };
        if !is_object(result.get()) {
            return record_failure(open, not_an_object_reply(method)).await;
        }
        if result_kind(&result) == ResultKind::InputRequired {
            open.report_suspended_async().wait().await.ok();
            return RpcReply::from_raw(result);
        }
        match check(String::from(Box::<str>::from(result))) {
            Ok(result) => {
                open.report_success_unchecked_async().wait().await.ok();
                RpcReply::Result(match context.agent.era {
                    Era::Stateless if method == "resources/read" => with_cache_directives(result),
                    Era::Stateless | Era::Handshake => result,
                })
            }
            Err(reply) => record_failure(open, reply).await,
        }
    }

    /// Other names by which rules may know a named feature of a server.
    pub(super) fn alias_names(&self, server: &str, own: &str) -> Vec<String> {
        let settings = self.settings();
        let prefixed = format!("{server}{}{own}", settings.separator);
        match settings.prefix {
            PrefixMode::Always => vec![prefixed],
            PrefixMode::Conflict | PrefixMode::Never => vec![prefixed, own.to_owned()],
        }
    }
}

/// Records that a permitted request failed, and returns the reply.
pub(super) async fn record_failure(open: OpenCall, reply: RpcReply) -> RpcReply {
    let words = match &reply {
        RpcReply::Error(error) => format!("{} ({})", error.message, error.code),
        RpcReply::Result(_) | RpcReply::NoReply => "it was not made".to_owned(),
    };
    open.report_failure_async(&words).wait().await.ok();
    reply
}

/// The given members of the parameters, as they are recorded.
pub(super) fn recorded_params(params: &RawObject<'_>, keys: &[&str]) -> Value {
    let said = keys.iter().filter_map(|key| {
        let value = serde_json::from_str(params.get(key)?).unwrap_or("unreadable".into());
        Some(((*key).to_owned(), value))
    });
    Value::Object(said.collect::<Map<String, Value>>())
}
