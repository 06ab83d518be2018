//! Type names that mean several things.

use std::collections::BTreeMap;

use crate::workspace::{SourceFile, Workspace};

/// Names that say the same in every module.
const IDIOMATIC: &[&str] = &[
    "Err", "Error", "Inner", "Item", "Options", "Output", "Value",
];

/// How many definitions a name may have.
const MAX_DEFINITIONS: usize = 2;

/// The visible types that are defined more than twice, with their files.
pub(crate) fn check(workspace: &Workspace) -> Vec<String> {
    duplicates(&workspace.files)
}

fn duplicates(files: &[SourceFile]) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in files.iter().filter(|file| is_product(file)) {
        for name in visible_types(&file.text) {
            places.entry(name).or_default().push(&file.path);
        }
    }
    places
        .into_iter()
        .filter(|(name, files)| files.len() > MAX_DEFINITIONS && !IDIOMATIC.contains(name))
        .map(|(name, files)| {
            let count = files.len();
            format!("type {name} is defined {count} times: {}", files.join(", "))
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

    fn check_files(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| SourceFile {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        });
        duplicates(&files.collect::<Vec<_>>())
    }

    #[test]
    fn a_third_definition_is_a_violation() {
        let two = [
            ("a/src/x.rs", "pub struct A;\n"),
            ("a/src/y.rs", "pub enum A {}\n"),
        ];
        assert_eq!(check_files(&two), [""; 0]);
        let third = (
            "b/src/z.rs",
            "pub(crate) type A = u8;\npub struct Options;\n",
        );
        let [one, other] = two;
        assert_eq!(
            check_files(&[one, other, third]),
            ["type A is defined 3 times: a/src/x.rs, a/src/y.rs, b/src/z.rs"]
        );
        let private = ("b/src/z.rs", "struct A;\n");
        assert_eq!(check_files(&[one, other, private]), [""; 0]);
    }

    #[test]
    fn visible_types_are_found_and_private_ones_are_not() {
        let text = "pub struct A;\npub(crate) enum B<T> {}\n    pub type C = u8;\nstruct D;\npub fn e() {}\npub(super) trait F: G {}\n";
        assert_eq!(
            visible_types(text).collect::<Vec<_>>(),
            ["A", "B", "C", "F"]
        );
    }
}
