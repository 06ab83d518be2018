//! Which servers an agent has anything to do with.

use toolwarden_guard::{Feature, FeatureKind};
use toolwarden_warden::guard::Call;

use super::Gateway;
use super::asked::Asked;
use crate::catalogue::Shelf;

impl Gateway {
    /// Whether an agent may use anything of a server. One that may not is told nothing of it, and nothing it
    /// sends reaches the server.
    pub(super) fn reaches(&self, asked: &Asked, shelf: &Shelf) -> bool {
        self.may_use_any(
            &Call {
                principal: &asked.conversation.principal,
                session: asked.session(),
                groups: asked.conversation.groups.clone(),
                claims: asked.claims.as_deref(),
                ..Call::default()
            },
            shelf,
        )
    }

    /// As [`Self::reaches`], by whose call it would be.
    pub(super) fn may_use_any(&self, call: &Call<'_>, shelf: &Shelf) -> bool {
        let server = shelf.upstream.name();
        let guard = &self.shared.guard;
        // What no rule names follows the defaults of the server.
        let unnamed = Feature {
            kind: FeatureKind::Method,
            name: server,
            server: Some(server),
            ..Feature::default()
        };
        let unnamed = Call {
            feature: Some(unnamed),
            ..call.clone()
        };
        let directory = self.shared.directory.load();
        let mut tools = directory.tools.shown_of(server);
        guard.may_see(&unnamed)
            || tools.any(|tool| {
                let tool = Call {
                    tool,
                    ..call.clone()
                };
                guard.may_see(&tool)
            })
    }
}
