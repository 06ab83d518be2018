//! How a server is looked at for one client: over which connection, in which era, as which variant.

use std::sync::Arc;

use toolwarden_mcp::{Era, Face};
use toolwarden_warden::settings::SessionSharing;

use super::list::ListError;
use super::shelf::{OWN, Shelf};
use super::variant::ClientVariant;
use crate::agent::Agent;
use crate::upstream::LinkKey;

/// A client, as far as servers are looked at for it.
#[derive(Clone, Copy, Debug)]
pub struct Client<'c> {
    /// Its conversation.
    pub conversation: &'c Arc<str>,
    /// What servers may offer it by its capabilities.
    pub variant: &'c ClientVariant,
    /// How it speaks.
    pub agent: &'c Agent,
}

/// Through whose eyes a server is looked at.
#[derive(Clone, Debug)]
pub struct Looking {
    /// Over which connection.
    pub key: LinkKey,
    /// What the client says of itself to the server.
    pub face: Face,
    /// Names lists that are the same for all who look like this.
    pub sight: Box<str>,
    /// Under which variant of clients the tools are pinned; none is the gateway's own.
    pub variant: Option<Arc<str>>,
    /// The era the server speaks over that connection.
    pub era: Era,
}

impl Shelf {
    /// How the gateway itself looks at the server.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn own_sight(&self) -> Result<Looking, ListError> {
        let face = (*self.upstream.face()).clone();
        let era = self.main_era(&face).await?;
        Ok(Looking {
            key: LinkKey::Main,
            face,
            sight: OWN.into(),
            variant: None,
            era,
        })
    }

    /// How the server is called for a conversation: in the era of its agent where the server speaks it.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn sight(&self, client: Client<'_>) -> Result<Looking, ListError> {
        let Client {
            conversation,
            variant: client,
            agent,
        } = client;
        let own = (*self.upstream.face()).clone();
        let main_era = self.main_era(&own).await?;
        let shared = self.upstream.settings().sessions == SessionSharing::Shared;
        if main_era == Era::Stateless {
            let handshake = agent.era == Era::Handshake
                && self.speaks_handshake(client, &own, shared, agent).await?;
            if !handshake {
                // The only agent there is is presented to the server as the gateway itself.
                let is_own = agent.face.capabilities.get() == own.capabilities.get();
                let variant = client.capabilities.clone().filter(|_| !is_own);
                return Ok(stateless(variant, &agent.face));
            }
        }
        let variant = match main_era {
            Era::Stateless if shared => Some(HANDSHAKE.into()),
            Era::Stateless => Some(Arc::clone(&client.handshake)),
            Era::Handshake if shared => None,
            Era::Handshake => client.capabilities.clone(),
        };
        if shared {
            return Ok(Looking {
                key: listing_key(variant.as_ref()),
                face: own,
                sight: sight_of(variant.as_ref()),
                variant,
                era: Era::Handshake,
            });
        }
        Ok(Looking {
            key: LinkKey::Of(Arc::clone(conversation)),
            face: agent.face.clone(),
            sight: session_sight(conversation),
            variant,
            era: Era::Handshake,
        })
    }

    /// How lists of the server are asked for on behalf of a conversation. One that has a session with
    /// the server sees what that session is offered; one that has none yet sees what the gateway is
    /// offered with the same capabilities, so that no session is opened for a list.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn list_sight(&self, client: Client<'_>) -> Result<Looking, ListError> {
        let looking = self.sight(client).await?;
        if !matches!(looking.key, LinkKey::Of(_)) || self.upstream.is_open(&looking.key) {
            return Ok(looking);
        }
        Ok(Looking {
            key: listing_key(looking.variant.as_ref()),
            sight: sight_of(looking.variant.as_ref()),
            ..looking
        })
    }

    /// Forgets the lists that only one conversation saw.
    pub(crate) fn forget_session(&self, conversation: &str) {
        self.forget_sight(&session_sight(conversation));
    }

    async fn main_era(&self, own: &Face) -> Result<Era, ListError> {
        if let Some(description) = self.upstream.description() {
            return Ok(description.era);
        }
        let link = self.upstream.link(&LinkKey::Main, own).await?;
        Ok(link.server().era)
    }

    async fn speaks_handshake(
        &self,
        client: &ClientVariant,
        own: &Face,
        shared: bool,
        agent: &Agent,
    ) -> Result<bool, ListError> {
        let (name, face) = match shared {
            true => (HANDSHAKE.into(), own),
            false => (Arc::clone(&client.handshake), &agent.face),
        };
        let key = LinkKey::Variant(name);
        Ok(self.upstream.speaks_handshake(&key, face).await?)
    }
}

/// The variant of the gateway itself in the handshake era, beside a stateless main link.
pub(crate) const HANDSHAKE: &str = "handshake";

fn stateless(variant: Option<Arc<str>>, face: &Face) -> Looking {
    Looking {
        key: LinkKey::Main,
        face: face.clone(),
        sight: sight_of(variant.as_ref()),
        variant,
        era: Era::Stateless,
    }
}

/// The connection over which lists of a variant are asked for.
fn listing_key(variant: Option<&Arc<str>>) -> LinkKey {
    variant.map_or(LinkKey::Main, |variant| {
        LinkKey::Variant(Arc::clone(variant))
    })
}

fn sight_of(variant: Option<&Arc<str>>) -> Box<str> {
    variant.map_or(OWN, |variant| variant).into()
}

/// The conversation whose sight it is; none where it is that of many.
pub(super) fn session_of(sight: &str) -> Option<&str> {
    sight.strip_prefix("session\u{0}")
}

/// Lists of a session are for its conversation alone.
pub(super) fn session_sight(conversation: &str) -> Box<str> {
    format!("session\u{0}{conversation}").into()
}
