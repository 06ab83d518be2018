//! Which crates may depend on which.

use crate::workspace::{Crate, Workspace};

/// Each crate and its allowed dependencies, lowest layer first. A crate that is missing here is a
/// violation, so that placing a crate is a decision.
const LAYERS: &[(&str, &[&str])] = &[
    ("core/model", &[]),
    ("core/canon", &["toolwarden-model"]),
    ("core/schema", &["toolwarden-model"]),
    ("core/drift", &["toolwarden-model", "toolwarden-schema"]),
    ("core/trials", &["toolwarden-model", "toolwarden-drift"]),
    ("core/guard", &["toolwarden-model", "toolwarden-schema"]),
    ("shell/store", &["toolwarden-model"]),
    ("shell/files", &["toolwarden-model"]),
    ("shell/http", &[]),
    ("shell/secrets", &[]),
    (
        "shell/mcp",
        &["toolwarden-model", "toolwarden-http", "toolwarden-secrets"],
    ),
    (
        "shell/probe",
        &[
            "toolwarden-model",
            "toolwarden-canon",
            "toolwarden-schema",
            "toolwarden-trials",
            "toolwarden-files",
            "toolwarden-http",
        ],
    ),
    (
        "shell/live_guard",
        &[
            "toolwarden-model",
            "toolwarden-canon",
            "toolwarden-guard",
            "toolwarden-store",
            "toolwarden-secrets",
            "toolwarden-files",
        ],
    ),
    (
        "shell/settings",
        &[
            "toolwarden-model",
            "toolwarden-schema",
            "toolwarden-drift",
            "toolwarden-guard",
            "toolwarden-mcp",
            "toolwarden-files",
            "toolwarden-live-guard",
        ],
    ),
    (
        "shell/notify",
        &[
            "toolwarden-model",
            "toolwarden-drift",
            "toolwarden-store",
            "toolwarden-secrets",
            "toolwarden-http",
            "toolwarden-live-guard",
            "toolwarden-settings",
        ],
    ),
    (
        "shell/watch",
        &[
            "toolwarden-model",
            "toolwarden-canon",
            "toolwarden-schema",
            "toolwarden-drift",
            "toolwarden-guard",
            "toolwarden-store",
            "toolwarden-mcp",
            "toolwarden-files",
            "toolwarden-live-guard",
            "toolwarden-settings",
        ],
    ),
    (
        "shell/gateway",
        &[
            "toolwarden-model",
            "toolwarden-drift",
            "toolwarden-guard",
            "toolwarden-store",
            "toolwarden-mcp",
            "toolwarden-http",
            "toolwarden-live-guard",
            "toolwarden-settings",
            "toolwarden-notify",
            "toolwarden-watch",
        ],
    ),
    ("demo", &["toolwarden-mcp"]),
    (
        "cli",
        &[
            "toolwarden-model",
            "toolwarden-canon",
            "toolwarden-schema",
            "toolwarden-drift",
            "toolwarden-trials",
            "toolwarden-guard",
            "toolwarden-store",
            "toolwarden-mcp",
            "toolwarden-files",
            "toolwarden-http",
            "toolwarden-probe",
            "toolwarden-live-guard",
            "toolwarden-settings",
            "toolwarden-notify",
            "toolwarden-watch",
            "toolwarden-gateway",
            "toolwarden-demo",
        ],
    ),
    (
        "lib",
        &[
            "toolwarden-model",
            "toolwarden-canon",
            "toolwarden-schema",
            "toolwarden-drift",
            "toolwarden-trials",
            "toolwarden-guard",
            "toolwarden-store",
            "toolwarden-mcp",
            "toolwarden-probe",
            "toolwarden-live-guard",
            "toolwarden-settings",
            "toolwarden-watch",
            "toolwarden-gateway",
        ],
    ),
    ("examples", &["toolwarden"]),
    (
        "fuzz",
        &[
            "toolwarden-model",
            "toolwarden-canon",
            "toolwarden-schema",
            "toolwarden-drift",
            "toolwarden-trials",
            "toolwarden-guard",
            "toolwarden-mcp",
            "toolwarden-http",
            "toolwarden-probe",
            "toolwarden-settings",
            "toolwarden-watch",
            "toolwarden-gateway",
        ],
    ),
    ("testkit", &[]),
    ("xtask", &[]),
];

/// Crates that `core/` must not depend on, because they bring clocks, randomness, threads or I/O.
const IMPURE: &[&str] = &[
    "anstream",
    "anyhow",
    "chrono",
    "clap",
    "fastrand",
    "futures",
    "getrandom",
    "hyper",
    "rand",
    "reqwest",
    "rusqlite",
    "tempfile",
    "time",
    "tokio",
    "uuid",
];

pub(crate) fn check(workspace: &Workspace) -> Vec<String> {
    workspace.crates.iter().flat_map(check_crate).collect()
}

fn check_crate(subject: &Crate) -> Vec<String> {
    let folder = &subject.folder;
    let mut violations = Vec::new();
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| name == folder) else {
        return vec![format!(
            "{folder}: not in the layer table of xtask/src/layers.rs"
        )];
    };
    for dependency in dependency_names(subject, "dependencies") {
        let ours = dependency == "toolwarden" || dependency.starts_with("toolwarden-");
        if ours && !allowed.contains(&dependency.as_str()) {
            violations.push(format!("{folder}: must not depend on {dependency}"));
        }
        if folder.starts_with("core/") && IMPURE.contains(&dependency.as_str()) {
            violations.push(format!(
                "{folder}: core is pure and must not depend on {dependency}"
            ));
        }
    }
    let inherits = subject
        .manifest
        .get("lints")
        .and_then(|lints| lints.get("workspace"));
    if inherits.and_then(toml::Value::as_bool) != Some(true) {
        violations.push(format!(
            "{folder}: Cargo.toml must say `[lints] workspace = true`"
        ));
    }
    for table in ["dependencies", "dev-dependencies"] {
        for (name, value) in subject
            .manifest
            .get(table)
            .and_then(toml::Value::as_table)
            .into_iter()
            .flatten()
        {
            if value.get("workspace").and_then(toml::Value::as_bool) != Some(true) {
                violations.push(format!(
                    "{folder}: {name} must come from [workspace.dependencies]"
                ));
            }
        }
    }
    violations
}

fn dependency_names(subject: &Crate, table: &str) -> Vec<String> {
    let table = subject.manifest.get(table).and_then(toml::Value::as_table);
    table
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(folder: &str, manifest: &str) -> Vec<String> {
        check_crate(&Crate {
            folder: folder.to_owned(),
            manifest: manifest.parse().unwrap(),
        })
    }

    #[test]
    fn a_crate_may_only_look_down() {
        let manifest =
            "[dependencies]\ntoolwarden-canon.workspace = true\n[lints]\nworkspace = true";
        assert_eq!(
            check("core/model", manifest),
            ["core/model: must not depend on toolwarden-canon"]
        );
        assert_eq!(check("cli", manifest), Vec::<String>::new());
    }

    #[test]
    fn core_stays_pure_and_new_crates_need_a_place() {
        let manifest = "[dependencies]\nrand.workspace = true\n[lints]\nworkspace = true";
        assert_eq!(
            check("core/canon", manifest),
            ["core/canon: core is pure and must not depend on rand"]
        );
        assert_eq!(
            check("core/new", manifest),
            ["core/new: not in the layer table of xtask/src/layers.rs"]
        );
    }

    #[test]
    fn lints_and_versions_come_from_the_workspace() {
        assert_eq!(
            check("testkit", "[dependencies]\nserde = \"1\""),
            [
                "testkit: Cargo.toml must say `[lints] workspace = true`",
                "testkit: serde must come from [workspace.dependencies]"
            ]
        );
    }
}
