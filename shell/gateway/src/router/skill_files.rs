//! Addresses that belong to skills: files and folders, with the digests that skills promise.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use toolwarden_guard::normalize_address;

use super::Gateway;
use crate::catalog::{ListKind, ServerCatalog};
use crate::request_context::RequestContext;

/// The files of all skills that an agent may be offered.
#[derive(Debug, Default)]
pub(super) struct SkillFiles(Vec<SkillEntry>);

#[derive(Debug)]
struct SkillEntry {
    catalog: Arc<ServerCatalog>,
    key: Arc<str>,
    /// The addresses of its files and of itself, with the digests it promises.
    files: Vec<(String, Option<String>)>,
    is_withheld: bool,
}

/// What the skills of one server say about an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SkillMembership {
    /// The skills it belongs to.
    pub(super) skills: Vec<Arc<str>>,
    /// The digest that the file must have.
    pub(super) digest: Option<String>,
    /// Whether it belongs to a skill that differs from its pin.
    pub(super) is_withheld: bool,
}

/// Why files of a skill that differs from its pin are not served.
pub(super) const SKILL_WITHHELD: &str =
    "it belongs to a skill that changed since it was pinned; it is withheld until it is approved";

impl SkillMembership {
    pub(super) fn withheld_reason(&self) -> Option<&'static str> {
        self.is_withheld.then_some(SKILL_WITHHELD)
    }
}

impl Gateway {
    /// The files of the skills of all servers.
    pub(super) async fn skill_files(&self, context: &Arc<RequestContext>) -> SkillFiles {
        if !self
            .server_catalogs()
            .iter()
            .any(|catalog| catalog.has_kind(ListKind::Skills))
        {
            return SkillFiles::default();
        }
        let lists = self.feature_lists_for(context, ListKind::Skills).await;
        let mut skills = Vec::new();
        for (catalog, list) in &lists {
            let served = list.items.iter().map(|item| (item, false));
            let withheld = list.withheld.iter().map(|item| (item, true));
            for (item, is_withheld) in served.chain(withheld) {
                skills.push(SkillEntry {
                    catalog: Arc::clone(catalog),
                    key: Arc::clone(&item.key),
                    files: skill_file_digests(&item.text),
                    is_withheld,
                });
            }
        }
        SkillFiles(skills)
    }
}

impl SkillFiles {
    /// The servers with a skill that an address belongs to.
    pub(super) fn owners(&self, uri: &str) -> Vec<Arc<ServerCatalog>> {
        let mut owners: Vec<Arc<ServerCatalog>> = Vec::new();
        for skill in self.0.iter().filter(|skill| skill.has(uri)) {
            if !owners.iter().any(|it| Arc::ptr_eq(it, &skill.catalog)) {
                owners.push(Arc::clone(&skill.catalog));
            }
        }
        owners
    }

    /// What the skills of a server say about an address.
    pub(super) fn membership(&self, catalog: &Arc<ServerCatalog>, uri: &str) -> SkillMembership {
        let mut belonging = SkillMembership::default();
        let of_server = self.0.iter().filter(|it| Arc::ptr_eq(&it.catalog, catalog));
        for skill in of_server.filter(|skill| skill.has(uri)) {
            belonging.skills.push(Arc::clone(&skill.key));
            belonging.is_withheld |= skill.is_withheld;
            let uri = normalize_address(uri);
            let file = skill.files.iter().find(|(own, _)| *own == uri);
            let digest = file.and_then(|(_, digest)| digest.clone());
            belonging.digest = belonging.digest.or(digest);
        }
        belonging
    }
}

impl SkillEntry {
    fn has(&self, uri: &str) -> bool {
        let uri = normalize_address(uri);
        let folder = uri.trim_end_matches('/');
        self.files.iter().any(|(own, _)| {
            let inside = own.strip_prefix(folder);
            *own == uri || inside.is_some_and(|rest| rest.starts_with('/'))
        })
    }
}

/// The files of a skill by their normalized addresses, those with a digest first, then the skill itself.
fn skill_file_digests(skill: &RawValue) -> Vec<(String, Option<String>)> {
    let skill: Value = serde_json::from_str(skill.get()).unwrap_or_default();
    let files = skill.get("resources").and_then(Value::as_array);
    let all = files.into_iter().flatten().chain([&skill]);
    let mut files: Vec<(String, Option<String>)> = all
        .filter_map(|file| {
            let digest = file.get("digest").and_then(Value::as_str);
            let uri = file.get("uri")?.as_str()?;
            Some((
                normalize_address(uri).into_owned(),
                digest.map(str::to_owned),
            ))
        })
        .collect();
    files.sort_by_key(|(_, digest)| digest.is_none());
    files
}
