//! What a program builds that embeds only the guard.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::process::Command;

/// Crates that a guard without a durable log does not need, and what each is.
const UNWANTED: &[(&str, &str)] = &[
    ("rusqlite", "SQLite"),
    ("libsqlite3-sys", "SQLite"),
    ("toolwarden-store", "SQLite"),
    ("reqwest", "an HTTP client"),
    ("hyper", "HTTP"),
    ("toolwarden-http", "an HTTP client"),
    ("lettre", "SMTP"),
    ("toolwarden-notify", "SMTP"),
    ("toolwarden-mcp", "MCP"),
];

/// The crates that the library builds with its feature `guard` alone.
pub(crate) fn read(root: &Path) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let tree = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["tree", "--locked", "--package", "toolwarden"])
        .args(["--no-default-features", "--features", "guard"])
        .args([
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .output()?;
    if !tree.status.success() {
        return Err(String::from_utf8_lossy(&tree.stderr).into_owned().into());
    }
    Ok(crates(&String::from_utf8(tree.stdout)?))
}

/// Names with versions, from the lines of `cargo tree`.
fn crates(tree: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?))
    };
    tree.lines().filter_map(name).collect()
}

pub(crate) fn check(crates: &BTreeSet<String>) -> Vec<String> {
    let has = |name: &str| crates.iter().any(|it| it.split(' ').next() == Some(name));
    let mut violations = Vec::new();
    if !has("toolwarden-live-guard") {
        violations.push("lib: the feature `guard` does not build the guard".to_owned());
    }
    for (name, what) in UNWANTED.iter().filter(|(name, _)| has(name)) {
        violations.push(format!(
            "lib: the feature `guard` alone builds {name} ({what})"
        ));
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwanted_crates_are_named() {
        let tree = "toolwarden v0.1.0 (/x/lib)\n\
                    toolwarden-live-guard v0.1.0 (/x/shell/live_guard)\n\
                    hyper v1.2.0\nhyper v1.2.0 (*)\nserde v1.0.0\n";
        let crates = crates(tree);
        assert_eq!(crates.len(), 4);
        assert_eq!(
            check(&crates),
            ["lib: the feature `guard` alone builds hyper (HTTP)"]
        );
        assert_eq!(
            check(&BTreeSet::new()),
            ["lib: the feature `guard` does not build the guard"]
        );
    }
}
