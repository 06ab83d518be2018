use std::fmt::Debug;
use std::sync::Arc;

use toolwarden_mcp::MessageHandler;

use super::Upstream;

/// Identifies the owner of a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkKey {
    /// The gateway itself: for lists, and for every agent where sessions are shared.
    Main,
    /// The gateway in the handshake era, with the capabilities of one variant of clients: for lists, and for all
    /// agents of that variant where sessions are shared.
    Variant(Arc<str>),
    /// One conversation.
    Conversation(Arc<str>),
}

/// Creates the audience for each new link, and is notified when the status of links changes.
///
/// Both methods are called from the tasks that serve requests and must not block. An audience lives as long
/// as its link: one that held the [`Upstream`] itself, and not a `Weak` of it, would keep it alive.
pub trait UpstreamObserver: Send + Sync + Debug {
    /// Creates the receiver of unsolicited server messages for a link that is about to be opened.
    fn audience(&self, upstream: &Arc<Upstream>, key: &LinkKey) -> Arc<dyn MessageHandler>;

    /// The status of the server or of one of its links changed.
    fn changed(&self, upstream: &Arc<Upstream>, what: UpstreamChange);
}

/// A change in the status of a server or of one of its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamChange {
    /// A link was opened, for the first time or again: the server has forgotten what it received before.
    Connected {
        /// The owner of the link.
        key: LinkKey,
    },
    /// A link is gone, and its requests in flight are lost. Not reported for links that are closed because their
    /// conversation ended or the server is removed.
    Lost {
        /// The owner of the link.
        key: LinkKey,
        /// The cause.
        reason: String,
        /// Whether the gateway closed it because it was idle, so that nothing is known to have changed.
        unused: bool,
    },
    /// [`super::UpstreamStatus::health`] changed.
    Health,
}
