//! Checks the lock file against `deny.toml`, without a tool that must be compiled first.

use serde_json::Value;

use crate::workspace::Workspace;

pub(crate) fn check(workspace: &Workspace) -> Vec<String> {
    let text = std::fs::read_to_string(workspace.root.join("deny.toml")).unwrap_or_default();
    let Ok(deny) = text.parse::<toml::Table>() else {
        return vec!["deny.toml: not TOML".to_owned()];
    };
    let allowed: Vec<&str> = deny
        .get("licenses")
        .and_then(|licenses| licenses.get("allow")?.as_array())
        .into_iter()
        .flatten()
        .filter_map(toml::Value::as_str)
        .collect();
    let text = |package: &Value, key: &str| {
        package
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let mut violations = Vec::new();
    for package in &workspace.packages {
        let (name, licence) = (text(package, "name"), text(package, "license"));
        if !is_allowed(&licence, &allowed) {
            violations.push(format!("deny.toml: {name} has the licence `{licence}`"));
        }
        let source = text(package, "source");
        if source.starts_with("git+") {
            violations.push(format!("deny.toml: {name} comes from a git repository"));
        }
    }
    violations
}

/// Whether an SPDX expression can be satisfied: one side of every OR, both sides of every AND.
fn is_allowed(licence: &str, allowed: &[&str]) -> bool {
    let licence = licence.replace('/', " OR ").replace(['(', ')'], "");
    licence.split(" OR ").any(|choice| {
        choice
            .split(" AND ")
            .all(|part| allowed.contains(&part.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read() {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"];
        assert!(is_allowed("MIT OR Apache-2.0", &allowed));
        assert!(is_allowed("GPL-3.0/MIT", &allowed));
        assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0", &allowed));
        assert!(!is_allowed("GPL-3.0 AND MIT", &allowed));
        assert!(!is_allowed("", &allowed));
    }
}
