//! Which servers an agent has anything to do with.

use toolwarden_guard::{Feature, FeatureKind};
use toolwarden_warden::guard::Call;

use super::Gateway;
use super::asked::Asked;
use super::features::Used;
use crate::catalogue::{Kind, Shelf};

/// The lists besides tools, and what they have.
const LISTED: [(Kind, FeatureKind); 4] = [
    (Kind::Prompts, FeatureKind::Prompt),
    (Kind::Resources, FeatureKind::Resource),
    (Kind::Templates, FeatureKind::Resource),
    (Kind::Skills, FeatureKind::Skill),
];

/// The most entries of each that are asked about.
const MOST_ASKED: usize = 1_000;

impl Gateway {
    /// Whether an agent may use anything of a server. One that may not is told nothing of it, and nothing it
    /// sends reaches the server.
    pub(super) fn reaches(&self, asked: &Asked, shelf: &Shelf) -> bool {
        self.may_use_any(
            &Call {
                principal: &asked.conversation.principal,
                session: asked.session(),
                groups: asked.groups.clone().or(asked.conversation.groups.clone()),
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
            || LISTED
                .iter()
                .any(|(list, kind)| self.may_use_listed(call, shelf, (*list, *kind)))
    }

    /// Whether anything may be used that a list is known to have.
    fn may_use_listed(
        &self,
        call: &Call<'_>,
        shelf: &Shelf,
        (list, kind): (Kind, FeatureKind),
    ) -> bool {
        let lists = shelf.known_others(list);
        let mut items = lists.iter().flat_map(|it| &it.items).take(MOST_ASKED);
        items.any(|item| {
            let used = Used::new(kind, "", &item.key).at(shelf);
            let aliases = match kind {
                FeatureKind::Prompt => self.other_names(shelf.upstream.name(), &item.key),
                _ => Vec::new(),
            };
            let used = Used { aliases, ..used };
            self.shared.guard.may_see(&Call {
                feature: Some(used.feature()),
                ..call.clone()
            })
        })
    }
}
