use std::fmt::Debug;
use std::sync::Arc;

use toolwarden_mcp::Audience;

use super::Upstream;

/// Whose connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkKey {
    /// The gateway's own: for lists, and for every agent where sessions are shared.
    Main,
    /// The gateway's own in the handshake era with the capabilities of one variant of clients: for lists,
    /// and for all agents of that variant where sessions are shared.
    Variant(Arc<str>),
    /// One conversation's.
    Of(Arc<str>),
}

/// Makes whoever hears what the server of a new link sends, and is told what becomes of links.
///
/// Both methods are called from the tasks that serve requests and must not block. An audience lives as
/// long as its link: one that held the [`Upstream`] itself, not a `Weak` of it, would keep it alive.
pub trait Hearing: Send + Sync + Debug {
    /// Who hears what the server sends by itself over the link that is about to be opened.
    fn audience(&self, upstream: &Arc<Upstream>, key: &LinkKey) -> Arc<dyn Audience>;

    /// Something happened in the life of the server.
    fn changed(&self, upstream: &Arc<Upstream>, what: UpstreamChange);
}

/// What happened in the life of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamChange {
    /// A link was opened, for the first time or anew: what the server was told before is forgotten.
    Connected {
        /// Whose.
        key: LinkKey,
    },
    /// A link is gone: what it had under way is lost. Links that are closed because their conversation
    /// ended or the server is taken away are not told.
    Lost {
        /// Whose.
        key: LinkKey,
        /// Why.
        reason: String,
        /// Whether the gateway closed it because it was not used, so that nothing is known to have changed.
        unused: bool,
    },
    /// [`super::UpstreamStatus::health`] is another.
    Health,
}
