//! How the gateway sees a server on behalf of a client: over which connection, in which era, as which variant.

use std::sync::Arc;

use toolwarden_mcp::{ClientInfo, Era};
use toolwarden_settings::SessionSharing;

use super::client_variant::ClientVariant;
use super::server_catalog::{GATEWAY_SCOPE, ServerCatalog};
use super::server_list::ListError;
use crate::agent_info::Agent;
use crate::upstream::LinkKey;

/// A client on whose behalf the gateway queries servers.
#[derive(Clone, Copy, Debug)]
pub struct CatalogClient<'c> {
    /// Its conversation.
    pub conversation: &'c Arc<str>,
    /// Its variant, which determines what servers offer it.
    pub variant: &'c ClientVariant,
    /// Its protocol version and capabilities.
    pub agent: &'c Agent,
}

/// A client's view of a server.
#[derive(Clone, Debug)]
pub struct ServerView {
    /// The connection.
    pub key: LinkKey,
    /// How the client describes itself to the server.
    pub client_info: ClientInfo,
    /// Identifies lists that are the same for all clients with this view.
    pub scope: Box<str>,
    /// The variant of clients under which the tools are pinned; `None` is the gateway itself.
    pub variant: Option<Arc<str>>,
    /// The era the server speaks over that connection.
    pub era: Era,
}

impl ServerCatalog {
    /// The gateway's own view of the server.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn gateway_view(&self) -> Result<ServerView, ListError> {
        let client_info = (*self.upstream.client_info()).clone();
        let era = self.main_era(&client_info).await?;
        Ok(ServerView {
            key: LinkKey::Main,
            client_info,
            scope: GATEWAY_SCOPE.into(),
            variant: None,
            era,
        })
    }

    /// The view for calls of a conversation: in the era of its agent if the server speaks it.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn call_view(&self, client: CatalogClient<'_>) -> Result<ServerView, ListError> {
        let own = (*self.upstream.client_info()).clone();
        let main_era = self.main_era(&own).await?;
        let handshake = needs_handshake(client, main_era)
            && self
                .speaks_handshake(client.variant, &own, client.agent)
                .await?;
        Ok(self.view_in_era(client, own, main_era, handshake))
    }

    /// The view for calls of a conversation, if the server need not be asked for it.
    pub(crate) fn known_call_view(&self, client: CatalogClient<'_>) -> Option<ServerView> {
        let main_era = self.upstream.description()?.era;
        let handshake = needs_handshake(client, main_era) && self.upstream.handshake_support()?;
        let own = (*self.upstream.client_info()).clone();
        Some(self.view_in_era(client, own, main_era, handshake))
    }

    /// The view for calls, by the era of the main link and whether the server speaks the handshake era as well.
    fn view_in_era(
        &self,
        client: CatalogClient<'_>,
        own: ClientInfo,
        main_era: Era,
        handshake: bool,
    ) -> ServerView {
        let CatalogClient {
            conversation,
            variant: client,
            agent,
        } = client;
        let shared = self.is_shared();
        if main_era == Era::Stateless && !handshake {
            // The gateway presents the only agent to the server as itself.
            let is_own = agent.client_info.capabilities.get() == own.capabilities.get();
            let variant = client.capabilities.clone().filter(|_| !is_own);
            return stateless_view(variant, &agent.client_info);
        }
        let variant = match main_era {
            Era::Stateless if shared => Some(HANDSHAKE_VARIANT.into()),
            Era::Stateless => Some(Arc::clone(&client.handshake)),
            Era::Handshake if shared => None,
            Era::Handshake => client.capabilities.clone(),
        };
        if shared {
            return ServerView {
                key: list_link(variant.as_ref()),
                client_info: own,
                scope: variant_scope(variant.as_ref()),
                variant,
                era: Era::Handshake,
            };
        }
        ServerView {
            key: LinkKey::Conversation(Arc::clone(conversation)),
            client_info: agent.client_info.clone(),
            scope: conversation_scope(conversation),
            variant,
            era: Era::Handshake,
        }
    }

    fn is_shared(&self) -> bool {
        self.upstream.settings().sessions == SessionSharing::Shared
    }

    /// The view for lists of a conversation. A conversation with a session at the server sees what that session is
    /// offered. One without a session sees what the gateway is offered with the same capabilities, so that no session
    /// is opened for a list.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn list_view(&self, client: CatalogClient<'_>) -> Result<ServerView, ListError> {
        let view = self.call_view(client).await?;
        if !matches!(view.key, LinkKey::Conversation(_)) || self.upstream.is_open(&view.key) {
            return Ok(view);
        }
        Ok(ServerView {
            key: list_link(view.variant.as_ref()),
            scope: variant_scope(view.variant.as_ref()),
            ..view
        })
    }

    /// Forgets the lists that only one conversation saw.
    pub(crate) fn forget_conversation(&self, conversation: &str) {
        self.forget_scope(&conversation_scope(conversation));
    }

    async fn main_era(&self, own: &ClientInfo) -> Result<Era, ListError> {
        if let Some(description) = self.upstream.description() {
            return Ok(description.era);
        }
        let link = self.upstream.link(&LinkKey::Main, own).await?;
        Ok(link.server().era)
    }

    async fn speaks_handshake(
        &self,
        client: &ClientVariant,
        own: &ClientInfo,
        agent: &Agent,
    ) -> Result<bool, ListError> {
        let (name, client_info) = match self.is_shared() {
            true => (HANDSHAKE_VARIANT.into(), own),
            false => (Arc::clone(&client.handshake), &agent.client_info),
        };
        let key = LinkKey::Variant(name);
        Ok(self.upstream.speaks_handshake(&key, client_info).await?)
    }
}

/// Whether a client of the handshake era meets a server whose main link is stateless.
fn needs_handshake(client: CatalogClient<'_>, main_era: Era) -> bool {
    main_era == Era::Stateless && client.agent.era == Era::Handshake
}

/// The variant of the gateway itself in the handshake era, if the main link is stateless.
pub(crate) const HANDSHAKE_VARIANT: &str = "handshake";

fn stateless_view(variant: Option<Arc<str>>, client_info: &ClientInfo) -> ServerView {
    ServerView {
        key: LinkKey::Main,
        client_info: client_info.clone(),
        scope: variant_scope(variant.as_ref()),
        variant,
        era: Era::Stateless,
    }
}

/// The connection over which lists of a variant are requested.
fn list_link(variant: Option<&Arc<str>>) -> LinkKey {
    variant.map_or(LinkKey::Main, |variant| {
        LinkKey::Variant(Arc::clone(variant))
    })
}

fn variant_scope(variant: Option<&Arc<str>>) -> Box<str> {
    variant.map_or(GATEWAY_SCOPE, |variant| variant).into()
}

/// The conversation that owns a view; `None` if several clients share it.
pub(super) fn scope_conversation(sight: &str) -> Option<&str> {
    sight.strip_prefix("session\u{0}")
}

/// The view of a session, which only its conversation has.
pub(super) fn conversation_scope(conversation: &str) -> Box<str> {
    format!("session\u{0}{conversation}").into()
}
