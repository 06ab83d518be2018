//! Which servers an agent may use.

use toolwarden_guard::{Feature, FeatureKind};
use toolwarden_live_guard::Call;

use super::Gateway;
use super::features::FeatureRequest;
use crate::catalog::{ListKind, ServerCatalog};
use crate::request_context::RequestContext;

/// The lists besides tools, with the kind of feature they contain.
const FEATURE_LISTS: [(ListKind, FeatureKind); 4] = [
    (ListKind::Prompts, FeatureKind::Prompt),
    (ListKind::Resources, FeatureKind::Resource),
    (ListKind::Templates, FeatureKind::Resource),
    (ListKind::Skills, FeatureKind::Skill),
];

/// The most entries of each list that are checked.
const MAX_CHECKED_ITEMS: usize = 1_000;

impl Gateway {
    /// Whether an agent may use any feature of a server. An agent that may not gets no messages of the server, and
    /// none of its messages reach the server.
    pub(super) fn may_reach_server(
        &self,
        context: &RequestContext,
        catalog: &ServerCatalog,
    ) -> bool {
        self.may_use_any(
            &Call {
                principal: &context.conversation.principal,
                session: context.session(),
                groups: context
                    .groups
                    .clone()
                    .or(context.conversation.groups.clone()),
                claims: context.claims.as_deref(),
                ..Call::default()
            },
            catalog,
        )
    }

    /// Like [`Self::reaches`], for a call.
    pub(super) fn may_use_any(&self, call: &Call<'_>, catalog: &ServerCatalog) -> bool {
        let server = catalog.upstream.name();
        let guard = &self.shared.guard;
        // Features that no rule names follow the defaults of the server.
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
        let mut tools = directory.tools.shown_names(catalog.upstream.server_name());
        guard.may_see(&unnamed)
            || tools.any(|tool| {
                let tool = Call {
                    tool: tool.as_str(),
                    ..call.clone()
                };
                guard.may_see(&tool)
            })
            || FEATURE_LISTS
                .iter()
                .any(|(list, kind)| self.may_use_listed(call, catalog, (*list, *kind)))
    }

    /// Whether the call may use any entry of a known list.
    fn may_use_listed(
        &self,
        call: &Call<'_>,
        catalog: &ServerCatalog,
        (list, kind): (ListKind, FeatureKind),
    ) -> bool {
        let lists = catalog.known_feature_lists(list);
        let mut items = lists
            .iter()
            .flat_map(|it| &it.items)
            .take(MAX_CHECKED_ITEMS);
        items.any(|item| {
            let used = FeatureRequest::new(kind, "", &item.key).on_server(catalog);
            let aliases = match kind {
                FeatureKind::Prompt => self.alias_names(catalog.upstream.name(), &item.key),
                _ => Vec::new(),
            };
            let used = FeatureRequest { aliases, ..used };
            self.shared.guard.may_see(&Call {
                feature: Some(used.feature()),
                ..call.clone()
            })
        })
    }
}
