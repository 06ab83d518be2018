//! Resource subscriptions: an agent is notified of changes to resources that it may read.

use std::sync::Arc;

use serde_json::value::RawValue;
use toolwarden_guard::FeatureKind;
use toolwarden_live_guard::Call;
use toolwarden_mcp::error_codes::{INVALID_PARAMS, INVALID_REQUEST};
use toolwarden_mcp::{Era, RawObject};

use super::features::{FeatureRequest, record_failure};
use super::notify_agent::RESOURCE_UPDATED;
use super::resources::{ResourceAddress, empty_arguments, unknown_resource};
use super::{EMPTY, Gateway, RpcReply};
use crate::catalog::{ListKind, ServerCatalog};
use crate::conversation::{Conversation, SubscriptionContext};
use crate::request_context::RequestContext;

impl Gateway {
    pub(super) async fn subscribe(
        &self,
        context: &Arc<RequestContext>,
        method: &str,
        params: Option<&RawValue>,
    ) -> RpcReply {
        let members = RawObject::parse_optional(params);
        let Some(shown) = members.text("uri") else {
            return RpcReply::error(INVALID_PARAMS, "params.uri is not a string");
        };
        if method == "resources/unsubscribe" {
            let gone = context.conversation.unsubscribe(&shown);
            let gone = gone.and_then(|(server, uri)| Some((self.server_catalog(&server)?, uri)));
            let Some((catalog, uri)) = gone else {
                return RpcReply::Result(EMPTY.to_owned());
            };
            return self.unsubscribe_resource(context, &catalog, &uri).await;
        }
        match self
            .subscribe_resource(context, &members, method, &shown)
            .await
        {
            Ok(()) => RpcReply::Result(EMPTY.to_owned()),
            Err(reply) => reply,
        }
    }

    /// Subscribes an agent to a resource at the server that owns it, if the agent may read it.
    ///
    /// # Errors
    /// No server owns it, the guard denies it, or its server refuses.
    pub(super) async fn subscribe_resource(
        &self,
        context: &Arc<RequestContext>,
        params: &RawObject<'_>,
        method: &str,
        shown: &str,
    ) -> Result<(), RpcReply> {
        let most = self.settings().session_limits.subscriptions;
        if !context.conversation.has_room_for(shown, most) {
            let text = format!(
                "this conversation has {most} subscriptions already (`sessions.max_subscriptions`); \
                 unsubscribe from some"
            );
            return Err(RpcReply::error(INVALID_REQUEST, text));
        }
        let kind = FeatureKind::Resource;
        let address = match self.find_resource(context, shown).await {
            Ok(address) => address,
            Err(reply) => {
                let unknown = self.refuse_unknown(context, params, (kind, method), shown, reply);
                return Err(unknown.await);
            }
        };
        let used = address.feature_request(kind, method);
        let permitted = self
            .permit_feature(context, params, &used, empty_arguments())
            .await;
        let unknown = || unknown_resource(shown, context.agent.era);
        let open = permitted.map_err(|refusal| refusal.into_reply(unknown))?;
        let meta = params.object("_meta");
        let with = SubscriptionContext {
            groups: context.groups(meta.as_ref()).ok().flatten(),
            claims: context.claims.clone(),
            skills: used.skills.clone(),
        };
        match self
            .subscribe_permitted(context, &address, shown, with)
            .await
        {
            Ok(()) => {
                open.report_success_unchecked_async().wait().await.ok();
                Ok(())
            }
            Err(reply) => Err(record_failure(open, reply).await),
        }
    }

    async fn subscribe_permitted(
        &self,
        context: &Arc<RequestContext>,
        ResourceAddress { catalog, uri, .. }: &ResourceAddress,
        shown: &str,
        with: SubscriptionContext,
    ) -> Result<(), RpcReply> {
        let ready = self
            .outgoing_request(context, catalog, "resources/subscribe", None)
            .await?;
        let server: Arc<str> = catalog.upstream.name().into();
        let conversation = &context.conversation;
        if ready.view.era == Era::Stateless {
            if !conversation.is_subscribed(uri, &server) {
                let stream = self.open_resource_stream(catalog, ready.view, uri).await;
                let stream = stream.ok_or_else(|| unknown_resource(shown, context.agent.era))?;
                conversation.subscribe(shown, (server, uri), with, Some(stream));
            } else {
                conversation.renew_subscription(shown, with);
            }
            return Ok(());
        }
        let params = serde_json::value::to_raw_value(&serde_json::json!({"uri": uri})).ok();
        let outgoing = ready.with_params(params);
        match self.forward_direct(context, outgoing).await {
            Ok(Ok(_)) => {
                conversation.subscribe(shown, (server, uri), with, None);
                Ok(())
            }
            Ok(Err(error)) => Err(RpcReply::Error(error)),
            Err(error) => Err(super::error_replies::unavailable_reply(&error)),
        }
    }

    /// The conversations that are subscribed to a resource.
    pub(super) fn subscribers(&self, server: &str, uri: &str) -> Vec<Arc<Conversation>> {
        self.conversations()
            .matching(|it| it.is_subscribed(uri, server))
    }

    /// Whether an agent may still read a resource before it is notified of a change: its permissions, its state or
    /// the resource may have changed since it subscribed.
    pub(super) fn may_still_read(
        &self,
        conversation: &Conversation,
        catalog: &ServerCatalog,
        uri: &str,
        with: SubscriptionContext,
    ) -> bool {
        let lists = [ListKind::Resources, ListKind::Templates];
        let used = FeatureRequest {
            skills: with.skills,
            ..FeatureRequest::new(FeatureKind::Resource, RESOURCE_UPDATED, uri)
                .with_listing(catalog, &lists, uri)
        };
        let call = Call {
            feature: Some(used.feature()),
            principal: &conversation.principal,
            session: conversation.session.as_deref(),
            groups: with.groups,
            claims: with.claims.as_deref(),
            ..Call::default()
        };
        self.shared.guard.may_see(&call)
    }

    /// Unsubscribes at the server from a resource whose subscription is already removed here and whose stream has
    /// ended.
    pub(super) async fn unsubscribe_resource(
        &self,
        context: &Arc<RequestContext>,
        catalog: &Arc<ServerCatalog>,
        uri: &str,
    ) -> RpcReply {
        const METHOD: &str = "resources/unsubscribe";
        let params = serde_json::value::to_raw_value(&serde_json::json!({"uri": uri})).ok();
        let ready = self.outgoing_request(context, catalog, METHOD, params.as_deref());
        match ready.await {
            Ok(ready) if ready.view.era == Era::Stateless => RpcReply::Result(EMPTY.to_owned()),
            // Other agents are still subscribed over the same connection.
            Ok(ready)
                if self.is_shared_link(&ready.view.key)
                    && !self.subscribers(catalog.upstream.name(), uri).is_empty() =>
            {
                RpcReply::Result(EMPTY.to_owned())
            }
            Ok(ready) => self.forward_without_permit(context, ready).await,
            Err(reply) => reply,
        }
    }
}
