//! Type names that mean several things.

use std::collections::BTreeMap;

use crate::workspace::{SourceFile, Workspace};

/// Names that say the same in every module.
const IDIOMATIC: &[&str] = &[
    "Err", "Error", "Inner", "Item", "Options", "Output", "Value",
];

/// How many definitions of one name are reported.
const LISTED_FROM: usize = 3;

/// The visible types that are defined more than twice, with their files.
pub(crate) fn list(workspace: &Workspace) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in workspace.files.iter().filter(|file| is_product(file)) {
        for name in visible_types(&file.text) {
            places.entry(name).or_default().push(&file.path);
        }
    }
    places
        .into_iter()
        .filter(|(name, files)| files.len() >= LISTED_FROM && !IDIOMATIC.contains(name))
        .map(|(name, files)| {
            let count = files.len();
            format!("{name}: defined {count} times: {}", files.join(", "))
        })
        .collect()
}

fn is_product(file: &SourceFile) -> bool {
    file.path.contains("/src/") && !file.path.contains("/tests")
}

/// The types of a file that other files can name.
fn visible_types(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix("pub")?;
        let rest = match rest.strip_prefix('(') {
            Some(scope) => scope.split_once(')')?.1,
            None => rest,
        };
        let mut words = rest.split_whitespace();
        let keyword = words.next()?;
        if !["struct", "enum", "trait", "type"].contains(&keyword) {
            return None;
        }
        let name = words.next()?;
        name.split(|letter: char| !letter.is_alphanumeric()).next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_types_are_found_and_private_ones_are_not() {
        let text = "pub struct A;\npub(crate) enum B<T> {}\n    pub type C = u8;\nstruct D;\npub fn e() {}\npub(super) trait F: G {}\n";
        assert_eq!(
            visible_types(text).collect::<Vec<_>>(),
            ["A", "B", "C", "F"]
        );
    }
}
