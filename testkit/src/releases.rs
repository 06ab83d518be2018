use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::corpus::mcp_servers;

/// One version of a published server.
#[derive(Clone, Debug)]
pub struct Release {
    /// The package with its registry.
    pub package: String,
    /// The version.
    pub version: String,
    /// Its tools.
    pub tools: Vec<Value>,
}

/// Every two consecutive versions of each server of the corpus; `None` without a corpus.
///
/// # Panics
/// A file of the corpus cannot be read.
#[must_use]
pub fn consecutive_releases() -> Option<Vec<(Release, Release)>> {
    let mut packages: BTreeMap<String, Vec<(String, PathBuf)>> = BTreeMap::new();
    for file in mcp_servers()? {
        let name = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if let Some((package, version)) = name.rsplit_once('@') {
            let versions = packages.entry(package.to_owned()).or_default();
            versions.push((version.to_owned(), file.clone()));
        }
    }
    let mut pairs = Vec::new();
    for (package, mut versions) in packages {
        versions.sort_by(|(a, _), (b, _)| compare_versions(a, b));
        let releases = versions
            .iter()
            .map(|(version, file)| read(&package, version, file));
        let releases: Vec<Release> = releases.collect();
        let later = releases.iter().skip(1);
        pairs.extend(releases.iter().cloned().zip(later.cloned()));
    }
    Some(pairs)
}

#[expect(
    clippy::expect_used,
    reason = "a broken corpus must fail the test that reads it"
)]
fn read(package: &str, version: &str, file: &Path) -> Release {
    let text = std::fs::read_to_string(file).expect("corpus file is readable");
    let mut document: Value = serde_json::from_str(&text).expect("corpus file is JSON");
    let tools = match document.get_mut("tools").map(Value::take) {
        Some(Value::Array(tools)) => tools,
        _ => Vec::new(),
    };
    Release {
        package: package.to_owned(),
        version: version.to_owned(),
        tools,
    }
}

/// Sorts versions as semver and PEP 440 do: by number, with pre-releases before releases.
fn compare_versions(a: &str, b: &str) -> Ordering {
    let (a, b) = (version_parts(a), version_parts(b));
    let longest = a.len().max(b.len());
    let at =
        |parts: &[VersionPart], index: usize| parts.get(index).cloned().unwrap_or(VersionPart::End);
    (0..longest)
        .map(|index| at(&a, index).cmp(&at(&b, index)))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum VersionPart {
    /// `a`, `beta`, `rc`, `dev`: before the version without it.
    Early(String),
    End,
    Number(u64),
}

fn version_parts(version: &str) -> Vec<VersionPart> {
    let version = version
        .split_once('+')
        .map_or(version, |(version, _)| version);
    let mut parts = Vec::new();
    let mut rest = version.trim_start_matches('v');
    while let Some(first) = rest.chars().next() {
        let is_digit = first.is_ascii_digit();
        let same = |c: char| c.is_ascii_digit() == is_digit && c.is_alphanumeric();
        let length = rest.find(|c: char| !same(c)).unwrap_or(rest.len());
        let (part, after) = rest.split_at(length);
        if is_digit {
            parts.push(VersionPart::Number(part.parse().unwrap_or(u64::MAX)));
        } else if !part.is_empty() {
            parts.push(VersionPart::Early(part.to_lowercase()));
        }
        rest = if length == 0 {
            rest.get(first.len_utf8()..).unwrap_or_default()
        } else {
            after
        };
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_meaning() {
        let ordered = [
            "0.1.0a1",
            "0.1.0",
            "0.1.1-beta.2",
            "0.1.1-beta.10",
            "0.1.1",
            "0.10.0",
            "2025.1.14",
            "2025.9.25",
            "2026.1.14",
            "2026.10.19",
        ];
        for pair in ordered.windows(2) {
            assert_eq!(
                compare_versions(pair[0], pair[1]),
                Ordering::Less,
                "{pair:?}"
            );
        }
    }
}
