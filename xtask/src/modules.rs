//! Cycles between the modules of a crate: what each top-level module uses of the others.

use std::collections::{BTreeMap, BTreeSet};

use crate::workspace::{SourceFile, Workspace};

/// Which modules a module uses, each with one file that does.
type Uses = BTreeMap<String, BTreeMap<String, String>>;

pub(crate) fn check(workspace: &Workspace) -> Vec<String> {
    let mut violations = Vec::new();
    for subject in &workspace.crates {
        let prefix = format!("{}/src/", subject.folder);
        let files: Vec<&SourceFile> = workspace
            .files
            .iter()
            .filter(|file| file.path.starts_with(&prefix))
            .collect();
        let uses = uses(&prefix, &files);
        for cycle in cycles(&uses) {
            violations.push(format!("{}: module cycle: {cycle}", subject.folder));
        }
    }
    violations
}

fn uses(prefix: &str, files: &[&SourceFile]) -> Uses {
    let path = |file: &SourceFile| file.path.strip_prefix(prefix).unwrap_or("").to_owned();
    let modules: BTreeSet<String> = files
        .iter()
        .map(|file| module_path(&path(file)))
        .filter_map(|parts| parts.into_iter().next())
        .collect();
    let root = files
        .iter()
        .find(|file| ["lib.rs", "main.rs"].contains(&path(file).as_str()));
    let exported = root.map(|root| reexports(&root.text, &modules));
    let exported = exported.unwrap_or_default();
    let mut uses = Uses::new();
    for file in files {
        let parts = module_path(&path(file));
        let Some(own) = parts.first() else { continue };
        if parts.iter().any(|part| part == "tests") {
            continue;
        }
        for name in names_at_root(&file.text, parts.len()) {
            let target = match modules.get(&name) {
                Some(module) => module,
                None => match exported.get(&name) {
                    Some(module) => module,
                    None => continue,
                },
            };
            if target != own {
                let targets = uses.entry(own.clone()).or_default();
                let used_in = file.path.clone();
                targets.entry(target.clone()).or_insert(used_in);
            }
        }
    }
    uses
}

/// `relay/call.rs` is `[relay, call]`; the root is empty.
fn module_path(path: &str) -> Vec<String> {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    match parts.as_slice() {
        [only] if only == "lib" || only == "main" => Vec::new(),
        _ => parts,
    }
}

/// Which module a name of the crate's root comes from.
fn reexports(root: &str, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut exported = BTreeMap::new();
    for statement in without_comments(root).split(';') {
        let Some((_, used)) = statement.split_once("use ") else {
            continue;
        };
        let used = used.trim().trim_start_matches("crate::");
        let Some((module, names)) = used.split_once("::") else {
            continue;
        };
        if !modules.contains(module) {
            continue;
        }
        for name in words(names) {
            exported.entry(name.to_owned()).or_insert(module.to_owned());
        }
    }
    exported
}

/// The names that a file takes from the root of its crate: `crate::name`, `crate::{a, b::c}`, and `super::name`
/// where that many `super` lead to the root.
fn names_at_root(text: &str, depth: usize) -> BTreeSet<String> {
    let text = without_comments(without_tests(text));
    let mut names = BTreeSet::new();
    let from_root = "super::".repeat(depth);
    for start in ["crate::", from_root.as_str()] {
        for (at, found) in text.match_indices(start) {
            let before = text.get(..at).and_then(|it| it.chars().next_back());
            if before.is_some_and(|it| it.is_alphanumeric() || it == '_' || it == ':') {
                continue;
            }
            let rest = text.get(at + found.len()..).unwrap_or_default();
            match rest.strip_prefix('{') {
                Some(group) => names.extend(first_names(group)),
                None => names.extend(words(rest).next().map(str::to_owned)),
            }
        }
    }
    names
}

/// The first name of each path in a group such as `a, b::{c, d}, e::f}`.
fn first_names(group: &str) -> Vec<String> {
    let mut names = Vec::new();
    let (mut depth, mut current) = (0_usize, String::new());
    for letter in group.chars() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(std::mem::take(&mut current)),
            letter if depth == 0 => current.push(letter),
            _ => {}
        }
    }
    names.push(current);
    names
        .iter()
        .filter_map(|path| words(path).next().map(str::to_owned))
        .collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

/// The text before the module with the tests of a file. A declaration of such a module (`mod tests;`) ends nothing.
fn without_tests(text: &str) -> &str {
    let start = "#[cfg(test)]\nmod ";
    let has_body = |at: &usize| {
        let rest = text.get(at + start.len()..).unwrap_or_default();
        rest.chars().find(|it| "{;".contains(*it)) == Some('{')
    };
    let at = text.match_indices(start).map(|(at, _)| at).find(has_body);
    at.and_then(|at| text.get(..at)).unwrap_or(text)
}

fn without_comments(text: &str) -> String {
    let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    text.lines().map(code).collect::<Vec<_>>().join("\n")
}

/// The groups of modules that use each other, each written as the shortest way round.
fn cycles(uses: &Uses) -> Vec<String> {
    let mut found = Vec::new();
    let mut reported: BTreeSet<&str> = BTreeSet::new();
    for start in uses.keys() {
        if reported.contains(start.as_str()) {
            continue;
        }
        if let Some(way) = way_back(uses, start) {
            reported.extend(way.iter().copied());
            let steps: Vec<String> = way
                .iter()
                .zip(way.iter().skip(1))
                .filter_map(|(from, to)| {
                    let file = uses.get(*from)?.get(*to)?;
                    Some(format!("{from} uses {to} ({file})"))
                })
                .collect();
            found.push(steps.join(", "));
        }
    }
    found
}

/// The shortest way from a module back to itself.
fn way_back<'u>(uses: &'u Uses, start: &'u str) -> Option<Vec<&'u str>> {
    let mut ways: Vec<Vec<&str>> = vec![vec![start]];
    let mut seen = BTreeSet::new();
    let mut next = 0;
    while let Some(way) = ways.get(next).cloned() {
        next += 1;
        let last = way.last()?;
        for target in uses.get(*last).into_iter().flat_map(BTreeMap::keys) {
            let longer = [way.as_slice(), &[target.as_str()]].concat();
            if target == start {
                return Some(longer);
            }
            if seen.insert(target) {
                ways.push(longer);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<SourceFile> = files
            .iter()
            .map(|(path, text)| SourceFile {
                path: format!("x/src/{path}"),
                text: (*text).to_owned(),
            })
            .collect();
        cycles(&uses("x/src/", &files.iter().collect::<Vec<_>>()))
    }

    #[test]
    fn modules_that_use_each_other_are_found_through_every_spelling() {
        let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use c::Third;\n");
        assert_eq!(
            check(&[
                lib,
                ("a/mod.rs", "use crate::{Third, other::X};\n"),
                ("a/deep.rs", "use super::super::b::Second;\n"),
                ("b.rs", "use super::c::Third;\n"),
                ("c.rs", "fn f() { crate::a::g(); }\n"),
            ]),
            [
                "a uses c (x/src/a/mod.rs), c uses a (x/src/c.rs)",
                "b uses c (x/src/b.rs), c uses a (x/src/c.rs), a uses b (x/src/a/deep.rs)",
            ]
        );
    }

    #[test]
    fn a_declaration_of_tests_hides_nothing_below_it() {
        let lib = ("lib.rs", "mod a;\nmod b;\n");
        let a = ("a.rs", "#[cfg(test)]\nmod tests;\nuse crate::b::B;\n");
        let b = ("b.rs", "use crate::a::A;\n");
        assert_eq!(
            check(&[lib, a, b]),
            ["a uses b (x/src/a.rs), b uses a (x/src/b.rs)"]
        );
    }

    #[test]
    fn a_module_may_use_what_is_below_it() {
        let lib = ("lib.rs", "mod a;\nmod b;\n");
        let a = (
            "a.rs",
            "use crate::b::B; // crate::a\n#[cfg(test)]\nmod tests;\n",
        );
        let b = (
            "b.rs",
            "struct B;\n#[cfg(test)]\nmod tests { use crate::a::A; }\n",
        );
        assert_eq!(check(&[lib, a, b]), Vec::<String>::new());
    }
}
