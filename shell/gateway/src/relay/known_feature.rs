//! What is known of something besides a tool without asking any server.

use std::sync::Arc;

use toolwarden_guard::FeatureKind;

use super::Gateway;
use super::features::Used;
use super::resources::qualified_parts;
use crate::catalogue::{Kind, List, Shelf};
use crate::uri_template;

/// Something besides a tool, as far as the lists of servers are known.
#[derive(Debug)]
pub(crate) struct KnownFeature {
    /// The server that has it; none where no list says so, or several do.
    pub(crate) shelf: Option<Arc<Shelf>>,
    used: Used<'static>,
}

impl KnownFeature {
    /// As the guard decides it.
    pub(crate) fn feature(&self) -> toolwarden_guard::Feature<'_> {
        self.used.feature()
    }
}

impl Gateway {
    /// A resource or skill by its address, a prompt by the name agents see, or a method as `server/method`.
    pub(crate) fn known_feature(&self, kind: FeatureKind, name: &str) -> KnownFeature {
        let found = match kind {
            FeatureKind::Tool => None,
            FeatureKind::Prompt => self.known_prompt(name),
            FeatureKind::Skill => self.known_address(&[Kind::Skills], kind, name),
            FeatureKind::Resource => {
                self.known_address(&[Kind::Resources, Kind::Templates], kind, name)
            }
            FeatureKind::Method => name.split_once('/').and_then(|(server, _)| {
                let shelf = self.shelf(server)?;
                let used = Used::new(kind, "", name).at(&shelf);
                Some((shelf, used))
            }),
        };
        match found {
            Some((shelf, used)) => KnownFeature {
                shelf: Some(shelf),
                used,
            },
            None => KnownFeature {
                shelf: None,
                used: Used::new(kind, "", name),
            },
        }
    }

    fn known_prompt(&self, shown: &str) -> Option<(Arc<Shelf>, Used<'static>)> {
        let shelves = self.shelves();
        let lists = shelves.iter().flat_map(|shelf| {
            let lists = shelf.known_others(Kind::Prompts).into_iter();
            lists.map(|list| (Arc::clone(shelf), list))
        });
        let lists: Vec<(Arc<Shelf>, Arc<List>)> = lists.collect();
        let names = self.names_of(Kind::Prompts, &lists);
        let named = names.find(shown)?;
        let shelf = self.shelf(&named.server)?;
        let used = self.prompt_used("", &shelf, (shown, &named.name));
        let used = used.listed(&shelf, &[Kind::Prompts], &named.name);
        Some((shelf, used))
    }

    fn known_address(
        &self,
        kinds: &[Kind],
        of: FeatureKind,
        shown: &str,
    ) -> Option<(Arc<Shelf>, Used<'static>)> {
        let (server, own) = match qualified_parts(shown) {
            Some((server, own)) => (Some(server), own),
            None => (None, shown),
        };
        let shelves = self.shelves();
        let mut owners = shelves.iter().filter(|shelf| {
            let is_meant = server.is_none_or(|it| shelf.upstream.name() == it);
            is_meant && kinds.iter().any(|kind| has(shelf, *kind, own))
        });
        let (shelf, None) = (owners.next()?, owners.next()) else {
            return None;
        };
        let used = Used::new(of, "", own).listed(shelf, kinds, own);
        Some((Arc::clone(shelf), used))
    }
}

/// Whether a list of a server has an address, or a template that it fits.
fn has(shelf: &Shelf, kind: Kind, uri: &str) -> bool {
    let lists = shelf.known_others(kind);
    let mut items = lists
        .iter()
        .flat_map(|it| it.items.iter().chain(&it.withheld));
    items.any(|item| {
        let fits = kind == Kind::Templates && uri_template::fits(&item.key, uri);
        *item.key == *uri || fits
    })
}
