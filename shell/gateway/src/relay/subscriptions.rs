//! Subscriptions to resources: an agent is notified of changes of what it may read.

use std::sync::Arc;

use serde_json::value::RawValue;
use toolwarden_guard::FeatureKind;
use toolwarden_mcp::codes::{INVALID_PARAMS, INVALID_REQUEST};
use toolwarden_mcp::{Era, Members};
use toolwarden_warden::guard::Call;

use super::asked::Asked;
use super::exchange::Outgoing;
use super::features::{Used, failed};
use super::resources::{Address, no_arguments, unknown_resource};
use super::tell::UPDATED;
use super::{EMPTY, Gateway, Reply};
use crate::catalogue::{Kind, Shelf};
use crate::conversation::{Conversation, SubscribedWith};

impl Gateway {
    pub(super) async fn subscribe(
        &self,
        asked: &Arc<Asked>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Reply {
        let members = Members::of_optional(params);
        let Some(shown) = members.text("uri") else {
            return Reply::error(INVALID_PARAMS, "params.uri is no string");
        };
        if method == "resources/unsubscribe" {
            let gone = asked.conversation.unsubscribe(&shown);
            let gone = gone.and_then(|(server, uri)| Some((self.shelf(&server)?, uri)));
            let Some((shelf, uri)) = gone else {
                return Reply::Result(EMPTY.to_owned());
            };
            return self.unwatch_resource(asked, &shelf, &uri).await;
        }
        match self.watch_resource(asked, &members, method, &shown).await {
            Ok(()) => Reply::Result(EMPTY.to_owned()),
            Err(reply) => reply,
        }
    }

    /// Has the owner of a resource notify the agent of its changes, where the agent may read it.
    ///
    /// # Errors
    /// No server owns it, the guard refuses it, or its server does.
    pub(super) async fn watch_resource(
        &self,
        asked: &Arc<Asked>,
        params: &Members<'_>,
        method: &str,
        shown: &str,
    ) -> Result<(), Reply> {
        let most = self.settings().session_limits.subscriptions;
        if !asked.conversation.has_room_for(shown, most) {
            let text = format!(
                "this conversation has {most} subscriptions already (`sessions.max_subscriptions`); \
                 unsubscribe from some"
            );
            return Err(Reply::error(INVALID_REQUEST, text));
        }
        let kind = FeatureKind::Resource;
        let address = match self.resource_at(asked, shown).await {
            Ok(address) => address,
            Err(reply) => {
                let unknown = self.refuse_unknown(asked, params, (kind, method), shown, reply);
                return Err(unknown.await);
            }
        };
        let used = address.used(kind, method);
        let permitted = self.permit(asked, params, &used, no_arguments()).await;
        let unknown = || unknown_resource(shown, asked.agent.era);
        let open = permitted.map_err(|refusal| refusal.into_reply(unknown))?;
        let meta = params.object("_meta");
        let with = SubscribedWith {
            groups: asked.groups(meta.as_ref()).ok().flatten(),
            claims: asked.claims.clone(),
            skills: used.skills.clone(),
        };
        match self.watch_permitted(asked, &address, shown, with).await {
            Ok(()) => {
                open.succeeded_unseen_soon().settled().await.ok();
                Ok(())
            }
            Err(reply) => Err(failed(open, reply).await),
        }
    }

    async fn watch_permitted(
        &self,
        asked: &Arc<Asked>,
        Address { shelf, uri, .. }: &Address,
        shown: &str,
        with: SubscribedWith,
    ) -> Result<(), Reply> {
        let ready = self
            .outgoing(asked, shelf, "resources/subscribe", None)
            .await?;
        let server: Arc<str> = shelf.upstream.name().into();
        let conversation = &asked.conversation;
        if ready.looking.era == Era::Stateless {
            if !conversation.is_subscribed(uri, &server) {
                let stream = self.listen_for_resource(shelf, ready.looking, uri).await;
                let stream = stream.ok_or_else(|| unknown_resource(shown, asked.agent.era))?;
                conversation.subscribe(shown, (server, uri), with, Some(stream));
            } else {
                conversation.renew_subscription(shown, with);
            }
            return Ok(());
        }
        let params = serde_json::value::to_raw_value(&serde_json::json!({"uri": uri})).ok();
        let outgoing = Outgoing { params, ..ready };
        match self.exchange_direct(asked, &outgoing, None).await {
            Ok(Ok(_)) => {
                conversation.subscribe(shown, (server, uri), with, None);
                Ok(())
            }
            Ok(Err(error)) => Err(Reply::Error(error)),
            Err(error) => Err(super::denial::unavailable(&error)),
        }
    }

    /// The conversations that want to hear of a resource.
    pub(super) fn subscribers(&self, server: &str, uri: &str) -> Vec<Arc<Conversation>> {
        self.conversations()
            .matching(|it| it.is_subscribed(uri, server))
    }

    /// Whether an agent may still read a resource that it is to be notified of: its permissions, its state
    /// or the resource may have changed since it subscribed.
    pub(super) fn may_still_read(
        &self,
        conversation: &Conversation,
        shelf: &Shelf,
        uri: &str,
        with: SubscribedWith,
    ) -> bool {
        let lists = [Kind::Resources, Kind::Templates];
        let used = Used {
            skills: with.skills,
            ..Used::new(FeatureKind::Resource, UPDATED, uri).listed(shelf, &lists, uri)
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

    /// Has a server notify no more of a resource that is unsubscribed already, whose stream has ended.
    pub(super) async fn unwatch_resource(
        &self,
        asked: &Arc<Asked>,
        shelf: &Arc<Shelf>,
        uri: &str,
    ) -> Reply {
        const METHOD: &str = "resources/unsubscribe";
        let params = serde_json::value::to_raw_value(&serde_json::json!({"uri": uri})).ok();
        let ready = self.outgoing(asked, shelf, METHOD, params.as_deref());
        match ready.await {
            Ok(ready) if ready.looking.era == Era::Stateless => Reply::Result(EMPTY.to_owned()),
            // Others go on wanting to hear of it over the same connection.
            Ok(ready)
                if self.is_shared_link(&ready.looking.key)
                    && !self.subscribers(shelf.upstream.name(), uri).is_empty() =>
            {
                Reply::Result(EMPTY.to_owned())
            }
            Ok(ready) => self.answer_of(asked, ready).await,
            Err(reply) => reply,
        }
    }
}
