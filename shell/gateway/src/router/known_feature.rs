//! What is known of a feature other than a tool without a request to any server.

use std::sync::Arc;

use toolwarden_guard::FeatureKind;
use toolwarden_model::ExposedName;

use super::Gateway;
use super::features::FeatureRequest;
use super::resources::split_qualified_uri;
use crate::catalog::{ListKind, ServerCatalog, ServerList};
use crate::uri_template;

/// A feature other than a tool, as far as the lists of servers are known.
#[derive(Debug)]
pub(crate) struct KnownFeature {
    /// The server that offers it; `None` if no list or several lists contain it.
    pub(crate) catalog: Option<Arc<ServerCatalog>>,
    request: FeatureRequest<'static>,
}

impl KnownFeature {
    /// The feature as the guard decides it.
    pub(crate) fn feature(&self) -> toolwarden_guard::Feature<'_> {
        self.request.feature()
    }
}

impl Gateway {
    /// Finds a resource or skill by its address, a prompt by the name agents know, or a method as `server/method`.
    pub(crate) fn known_feature(&self, kind: FeatureKind, name: &str) -> KnownFeature {
        let found = match kind {
            FeatureKind::Tool => None,
            FeatureKind::Prompt => self.known_prompt(name),
            FeatureKind::Skill => self.known_resource(&[ListKind::Skills], kind, name),
            FeatureKind::Resource => {
                self.known_resource(&[ListKind::Resources, ListKind::Templates], kind, name)
            }
            FeatureKind::Method => name.split_once('/').and_then(|(server, _)| {
                let catalog = self.server_catalog(server)?;
                let used = FeatureRequest::new(kind, "", name).on_server(&catalog);
                Some((catalog, used))
            }),
        };
        match found {
            Some((catalog, used)) => KnownFeature {
                catalog: Some(catalog),
                request: used,
            },
            None => KnownFeature {
                catalog: None,
                request: FeatureRequest::new(kind, "", name),
            },
        }
    }

    fn known_prompt(&self, shown: &str) -> Option<(Arc<ServerCatalog>, FeatureRequest<'static>)> {
        let catalogs = self.server_catalogs();
        let lists = catalogs.iter().flat_map(|catalog| {
            let lists = catalog.known_feature_lists(ListKind::Prompts).into_iter();
            lists.map(|list| (Arc::clone(catalog), list))
        });
        let lists: Vec<(Arc<ServerCatalog>, Arc<ServerList>)> = lists.collect();
        let names = self.shown_names(ListKind::Prompts, &lists);
        let named = names.find(&ExposedName::new(shown))?;
        let catalog = self.server_catalog(named.server.as_str())?;
        let used = self.prompt_request("", &catalog, (shown, named.name.as_str()));
        let used = used.with_listing(&catalog, &[ListKind::Prompts], named.name.as_str());
        Some((catalog, used))
    }

    fn known_resource(
        &self,
        kinds: &[ListKind],
        of: FeatureKind,
        shown: &str,
    ) -> Option<(Arc<ServerCatalog>, FeatureRequest<'static>)> {
        let (server, own) = match split_qualified_uri(shown) {
            Some((server, own)) => (Some(server), own),
            None => (None, shown),
        };
        let catalogs = self.server_catalogs();
        let mut owners = catalogs.iter().filter(|catalog| {
            let is_meant = server.is_none_or(|it| catalog.upstream.name() == it);
            is_meant && kinds.iter().any(|kind| lists_uri(catalog, *kind, own))
        });
        let (catalog, None) = (owners.next()?, owners.next()) else {
            return None;
        };
        let used = FeatureRequest::new(of, "", own).with_listing(catalog, kinds, own);
        Some((Arc::clone(catalog), used))
    }
}

/// Whether a list of a server contains an address, or a template that matches it.
fn lists_uri(catalog: &ServerCatalog, kind: ListKind, uri: &str) -> bool {
    let lists = catalog.known_feature_lists(kind);
    let mut items = lists
        .iter()
        .flat_map(|it| it.items.iter().chain(&it.withheld));
    items.any(|item| {
        let fits = kind == ListKind::Templates && uri_template::matches_template(&item.key, uri);
        *item.key == *uri || fits
    })
}
