//! Which addresses belong to skills: files and folders, with the digests that skills promise.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use toolwarden_guard::normalized_address;

use super::Gateway;
use super::asked::Asked;
use crate::catalogue::{Kind, Shelf};

/// The files of all skills that an agent may be offered.
#[derive(Debug, Default)]
pub(super) struct SkillFiles(Vec<SkillOf>);

#[derive(Debug)]
struct SkillOf {
    shelf: Arc<Shelf>,
    key: Arc<str>,
    /// The addresses of its files and of itself, with the digests it promises.
    files: Vec<(String, Option<String>)>,
    is_withheld: bool,
}

/// What the skills of one server say of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Belonging {
    /// The skills it belongs to.
    pub(super) skills: Vec<Arc<str>>,
    /// What the file digests to.
    pub(super) digest: Option<String>,
    /// Whether a skill that it belongs to differs from its pin.
    pub(super) is_withheld: bool,
}

/// Why what belongs to a skill that differs from its pin is not served.
pub(super) const WITHHELD: &str =
    "it belongs to a skill that changed since it was pinned; it is withheld until it is approved";

impl Belonging {
    pub(super) fn withheld(&self) -> Option<&'static str> {
        self.is_withheld.then_some(WITHHELD)
    }
}

impl Gateway {
    /// The files of the skills of all servers.
    pub(super) async fn skill_files(&self, asked: &Arc<Asked>) -> SkillFiles {
        if !self.shelves().iter().any(|shelf| shelf.has(Kind::Skills)) {
            return SkillFiles::default();
        }
        let lists = self.others_for(asked, Kind::Skills).await;
        let mut skills = Vec::new();
        for (shelf, list) in &lists {
            let served = list.items.iter().map(|item| (item, false));
            let withheld = list.withheld.iter().map(|item| (item, true));
            for (item, is_withheld) in served.chain(withheld) {
                skills.push(SkillOf {
                    shelf: Arc::clone(shelf),
                    key: Arc::clone(&item.key),
                    files: files_of(&item.text),
                    is_withheld,
                });
            }
        }
        SkillFiles(skills)
    }
}

impl SkillFiles {
    /// The servers with a skill that an address belongs to.
    pub(super) fn owners(&self, uri: &str) -> Vec<Arc<Shelf>> {
        let mut owners: Vec<Arc<Shelf>> = Vec::new();
        for skill in self.0.iter().filter(|skill| skill.has(uri)) {
            if !owners.iter().any(|it| Arc::ptr_eq(it, &skill.shelf)) {
                owners.push(Arc::clone(&skill.shelf));
            }
        }
        owners
    }

    /// What the skills of a server say of an address.
    pub(super) fn belonging(&self, shelf: &Arc<Shelf>, uri: &str) -> Belonging {
        let mut belonging = Belonging::default();
        let of_server = self.0.iter().filter(|it| Arc::ptr_eq(&it.shelf, shelf));
        for skill in of_server.filter(|skill| skill.has(uri)) {
            belonging.skills.push(Arc::clone(&skill.key));
            belonging.is_withheld |= skill.is_withheld;
            let uri = normalized_address(uri);
            let file = skill.files.iter().find(|(own, _)| *own == uri);
            let digest = file.and_then(|(_, digest)| digest.clone());
            belonging.digest = belonging.digest.or(digest);
        }
        belonging
    }
}

impl SkillOf {
    fn has(&self, uri: &str) -> bool {
        let uri = normalized_address(uri);
        let folder = uri.trim_end_matches('/');
        self.files.iter().any(|(own, _)| {
            let inside = own.strip_prefix(folder);
            *own == uri || inside.is_some_and(|rest| rest.starts_with('/'))
        })
    }
}

/// The files of a skill by their normalized addresses, those with a digest first, then the skill itself.
fn files_of(skill: &RawValue) -> Vec<(String, Option<String>)> {
    let skill: Value = serde_json::from_str(skill.get()).unwrap_or_default();
    let files = skill.get("resources").and_then(Value::as_array);
    let all = files.into_iter().flatten().chain([&skill]);
    let mut files: Vec<(String, Option<String>)> = all
        .filter_map(|file| {
            let digest = file.get("digest").and_then(Value::as_str);
            let uri = file.get("uri")?.as_str()?;
            Some((
                normalized_address(uri).into_owned(),
                digest.map(str::to_owned),
            ))
        })
        .collect();
    files.sort_by_key(|(_, digest)| digest.is_none());
    files
}
