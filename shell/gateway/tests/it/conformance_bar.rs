//! Through the gateway no server passes fewer checks of the official suite than directly, and the
//! documentation says how many.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use toolwarden_testkit::conformance::{
    CheckStatus, ConformanceOutcome, ConformanceServer, ConformanceSuite,
};

use crate::support::TestGateway;

/// The revisions that the suite has requirements for.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

type Start = fn() -> Option<ConformanceServer>;

const SERVERS: [(&str, Start); 3] = [
    ("Python SDK 2.3.0, both eras", ConformanceServer::start),
    (
        "Python SDK 2.3.0, handshake only",
        ConformanceServer::start_handshake_only,
    ),
    (
        "TypeScript SDK 2.4.0, both eras",
        ConformanceServer::start_typescript,
    ),
];

/// What rewrites the table in the documentation.
const REWRITE: &str = "TOOLWARDEN_WRITE_CONFORMANCE_TABLE";
const BEGIN: &str = "<!-- conformance -->\n";
const END: &str = "<!-- /conformance -->";

/// What the suite found in one revision.
struct CheckCounts {
    server: &'static str,
    revision: &'static str,
    direct: ConformanceOutcome,
    through: ConformanceOutcome,
}

impl CheckCounts {
    /// The checks that succeed directly and do not through the gateway.
    fn lost(&self) -> Vec<String> {
        let mut lost = Vec::new();
        for (scenario, checks) in &self.direct.checks {
            let through = self.through.checks.get(scenario);
            let through = |check| {
                through
                    .and_then(|it: &BTreeMap<_, _>| it.get(check))
                    .copied()
            };
            for (check, status) in checks {
                let found = through(check);
                if *status == CheckStatus::Success && found != Some(CheckStatus::Success) {
                    let found = found.map_or("not made".to_owned(), |it| format!("{it:?}"));
                    let (server, revision) = (self.server, self.revision);
                    lost.push(format!("{server} {revision} {scenario}/{check}: {found}"));
                }
            }
        }
        if self.through.passed < self.direct.passed {
            lost.push(format!(
                "{} {}: {} passed through, {} directly",
                self.server, self.revision, self.through.passed, self.direct.passed
            ));
        }
        lost
    }
}

/// Measures one server; none if it cannot be had here.
async fn measured(
    suite: &ConformanceSuite,
    name: &'static str,
    start: Start,
) -> Option<Vec<CheckCounts>> {
    let server = tokio::task::spawn_blocking(start).await.unwrap()?;
    let gateway = TestGateway::start(&json!({
        "prefix": "never",
        "servers": {"fixture": {"url": server.url}},
        // A tool of the fixture comes and goes.
        "watch": {"on_drift": "serve", "on_new": "serve"},
    }))
    .await;
    let (suite, direct, through) = (suite.clone(), server.url.clone(), gateway.url.clone());
    let measured = tokio::task::spawn_blocking(move || {
        let each = |revision| CheckCounts {
            server: name,
            revision,
            direct: suite.run_requirements(&direct, revision),
            through: suite.run_requirements(&through, revision),
        };
        REVISIONS.map(each).into()
    })
    .await
    .unwrap();
    gateway.stop().await;
    Some(measured)
}

fn table(all: &[CheckCounts]) -> String {
    let mut table =
        "| server | revision | direct | through the gateway |\n|---|---|---|---|\n".to_owned();
    for it in all {
        let (direct, through) = (&it.direct, &it.through);
        writeln!(
            table,
            "| {} | {} | {} / {} | {} / {} |",
            it.server, it.revision, direct.passed, direct.failed, through.passed, through.failed
        )
        .unwrap();
    }
    table
}

/// Compares the table in the documentation with the right one, or rewrites it.
fn check_document(right: &str) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gateway.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    if written == right {
        return Ok(());
    }
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{right}{END}{after}")).unwrap();
        return Ok(());
    }
    Err(format!(
        "the table in docs/gateway.md is out of date; set {REWRITE} to rewrite it as\n{right}"
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_check_is_lost_through_the_gateway() {
    let Some(suite) = ConformanceSuite::newest() else {
        return;
    };
    let [one, two, three] = SERVERS.map(|(name, start)| measured(&suite, name, start));
    let (Some(one), Some(two), Some(three)) = tokio::join!(one, two, three) else {
        return;
    };
    let all: Vec<CheckCounts> = [one, two, three].into_iter().flatten().collect();
    let mut faults: Vec<String> = all.iter().flat_map(CheckCounts::lost).collect();
    faults.extend(check_document(&table(&all)).err());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
