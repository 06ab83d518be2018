//! The official suite gives the gateway the same results as the server behind it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use toolwarden_mcp::Era;
use toolwarden_testkit::conformance::{
    CheckStatus, ConformanceOutcome, ConformanceServer, ConformanceSuite,
};

use crate::support::{Agent, TestGateway, shop_of};

/// The only version of the stateless era.
const STATELESS: &str = "2026-07-28";
/// What the scenarios of extensions are compared as.
const EXTENSION: &str = "extension";

/// A check that differs, and why it may.
struct Difference {
    version: &'static str,
    check: &'static str,
    why: &'static str,
}

const fn differs(version: &'static str, check: &'static str, why: &'static str) -> Difference {
    Difference {
        version,
        check,
        why,
    }
}

const NAMELESS: &str = "a question of the handshake era has no name, so that the gateway gives it one; \
    the scenario wants a certain name";

/// The same whatever the eras of the server are.
const DIFFERENCES: &[Difference] = &[];

/// Where an agent of the stateless era meets a server of the handshake era.
const ACROSS: &[Difference] = &[
    differs(
        STATELESS,
        "input-required-result-basic-elicitation/sep-2322-elicitation-complete",
        NAMELESS,
    ),
    differs(
        STATELESS,
        "input-required-result-basic-elicitation/sep-2322-elicitation-incomplete",
        NAMELESS,
    ),
    differs(
        STATELESS,
        "input-required-result-ignore-extra-params/sep-2322-ignore-unexpected-params",
        NAMELESS,
    ),
];

type Checks = BTreeMap<String, CheckStatus>;

/// Two addresses that one version is put to.
struct Pair<'u> {
    version: String,
    alone: &'u str,
    behind: &'u str,
    expected: &'static [Difference],
}

impl Pair<'_> {
    /// The unexpected differences as text. An expected difference that is gone is unexpected, too.
    fn surprises(&self, suite: &ConformanceSuite) -> Vec<String> {
        let run = |url| match &*self.version {
            EXTENSION => suite.run_extensions(url),
            version => suite.run(url, version),
        };
        let (alone, behind) = (run(self.alone), run(self.behind));
        let messages = behind.messages.join("\n");
        let (alone, behind) = (flat(&alone), flat(&behind));
        let names: BTreeSet<&String> = alone.keys().chain(behind.keys()).collect();
        let mut surprises = Vec::new();
        for name in names {
            let (alone, behind) = (alone.get(name), behind.get(name));
            let mut known = self.expected.iter();
            let known = known.find(|it| it.version == self.version && it.check == name);
            match (alone == behind, known) {
                // The gateway may do better, as it offers streams that can be resumed.
                (false, None) if behind == Some(&CheckStatus::Success) => {}
                (false, None) => surprises.push(format!(
                    "{} {name}: {alone:?} alone, {behind:?} behind",
                    self.version
                )),
                (true, Some(known)) => surprises.push(format!(
                    "{} {name}: no longer differs because {}",
                    self.version, known.why
                )),
                _ => {}
            }
        }
        if !surprises.is_empty() {
            surprises.push(messages);
        }
        surprises
    }
}

fn flat(outcome: &ConformanceOutcome) -> Checks {
    let scenarios = outcome.checks.iter();
    let checks = scenarios.flat_map(|(scenario, checks)| {
        checks
            .iter()
            .map(move |(check, status)| (format!("{scenario}/{check}"), *status))
    });
    checks.collect()
}

async fn gateway_before(server: &ConformanceServer) -> TestGateway {
    TestGateway::start(&json!({
        "prefix": "never",
        "servers": {"fixture": {"url": server.url}},
        // A tool of the fixture comes and goes.
        "watch": {"on_drift": "serve", "on_new": "serve"},
    }))
    .await
}

/// Puts everything a suite has to a server of both eras and to a gateway before it.
async fn compare(suite: ConformanceSuite) {
    let Some(server) = started(ConformanceServer::start).await else {
        return;
    };
    let gateway = gateway_before(&server).await;
    let (alone, behind) = (server.url.clone(), gateway.url.clone());
    assert_as_expected(move || {
        let mut versions = suite.spec_versions();
        versions.push(EXTENSION.to_owned());
        let pairs = versions.into_iter().map(|version| Pair {
            version,
            alone: &alone,
            behind: &behind,
            expected: DIFFERENCES,
        });
        pairs.flat_map(|pair| pair.surprises(&suite)).collect()
    })
    .await;
    gateway.stop().await;
}

async fn started(start: fn() -> Option<ConformanceServer>) -> Option<ConformanceServer> {
    tokio::task::spawn_blocking(start).await.unwrap()
}

async fn assert_as_expected(surprises: impl FnOnce() -> Vec<String> + Send + 'static) {
    let surprises = tokio::task::spawn_blocking(surprises).await.unwrap();
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_suite_sees_no_gateway() {
    if let Some(suite) = ConformanceSuite::newest() {
        compare(suite).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stable_suite_sees_no_gateway() {
    if let Some(suite) = ConformanceSuite::stable() {
        compare(suite).await;
    }
}

/// Before a server of the handshake era the gateway is as good as that server, and for agents of the
/// stateless era as good as one that speaks theirs.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_server_is_as_good_as_a_new_one() {
    let Some(suite) = ConformanceSuite::newest() else {
        return;
    };
    let (Some(new), Some(old)) = (
        started(ConformanceServer::start).await,
        started(ConformanceServer::start_handshake_only).await,
    ) else {
        return;
    };
    let gateway = gateway_before(&old).await;
    let (new, old, behind) = (new, old.url.clone(), gateway.url.clone());
    assert_as_expected(move || {
        let versions = suite.spec_versions().into_iter();
        let pairs = versions.map(|version| {
            let across = version == STATELESS;
            Pair {
                alone: if across { &new.url } else { &old },
                behind: &behind,
                expected: if across { ACROSS } else { DIFFERENCES },
                version,
            }
        });
        pairs.flat_map(|pair| pair.surprises(&suite)).collect()
    })
    .await;
    gateway.stop().await;
}

/// A server behind the gateway would answer them.
#[tokio::test(flavor = "multi_thread")]
async fn methods_that_the_stateless_era_took_away() {
    let server = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &server)]).await;
    let agent = Agent::stateless(&gateway.url, &json!({}));
    for method in [
        "initialize",
        "logging/setLevel",
        "ping",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/list",
        "tasks/result",
    ] {
        let mut exchange = agent.begin(method, json!({"uri": "orders://today"})).await;
        let answer = exchange.message().await;
        let told = (exchange.status, answer["error"]["code"].as_i64());
        assert_eq!(told, (404, Some(-32601)), "{method}");
    }
    gateway.stop().await;
}
