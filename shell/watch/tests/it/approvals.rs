use serde_json::Value;
use toolwarden_store::{AlertFilter, AlertStatus};
use toolwarden_watch::{ApprovalSelection, ApprovedItem, approve, pending_approvals};

use super::{StoreFixture, approval, drift_summary, tool};

fn select(words: &[&str]) -> ApprovalSelection {
    ApprovalSelection {
        ids: words.iter().map(|it| (*it).to_owned()).collect(),
        ..ApprovalSelection::default()
    }
}

/// Two changes of one tool: a new description and a further argument.
fn fixture_with_two_changes() -> (StoreFixture, Value, Vec<String>) {
    let bench = StoreFixture::new();
    bench.pin(&[tool("click", "Click", &["ref"])]);
    let drifted = tool("click", "Click an element", &["ref", "element"]);
    bench.check(std::slice::from_ref(&drifted));
    let servers = bench.store.servers().unwrap();
    let pending_approvals = pending_approvals(&bench.store, &servers).unwrap();
    let ids: Vec<String> = pending_approvals[0]
        .changes
        .iter()
        .map(|it| it.id.to_string())
        .collect();
    (bench, drifted, ids)
}

#[test]
fn an_approved_tool_is_pinned_to_its_observation() {
    let (bench, drifted, _) = fixture_with_two_changes();
    let servers = bench.store.servers().unwrap();
    let all = ApprovalSelection {
        all: true,
        ..ApprovalSelection::default()
    };
    let approved = approve(&bench.store, &servers, &all, &approval()).unwrap();
    assert_eq!(approved.len(), 1);
    let (outcome, _) = bench.check(&[drifted]);
    assert_eq!(drift_summary(&outcome), []);
    let alerts = bench.store.alerts(&AlertFilter::default()).unwrap();
    assert_eq!(alerts[0].status, AlertStatus::Approved);
    let (outcome, _) = bench.check(&[tool("click", "Click", &["ref"])]);
    assert_eq!(
        drift_summary(&outcome),
        [("click".to_owned(), "breaking")],
        "the old one is drift now"
    );
}

#[test]
fn an_approved_change_stays_approved_only_while_the_tool_means_the_same() {
    let (bench, mut drifted, ids) = fixture_with_two_changes();
    assert!(ids.len() > 1, "{ids:?}");
    let servers = bench.store.servers().unwrap();
    let approved = approve(&bench.store, &servers, &select(&[&ids[0]]), &approval()).unwrap();
    assert!(matches!(&approved[0], ApprovedItem::Change { left, .. } if *left == ids.len() - 1));
    let left = |tool: &Value| {
        let (outcome, _) = bench.check(std::slice::from_ref(tool));
        let toolwarden_drift::ToolDrift::Changed(drift) = &outcome.drift.tools[0] else {
            panic!("it changed");
        };
        drift
            .changes
            .iter()
            .map(|it| it.id.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(left(&drifted), ids[1..]);
    // The same contract in other words: the approval still applies.
    drifted["inputSchema"]["minProperties"] = 0.into();
    assert!(!left(&drifted).contains(&ids[0]));
    // A different contract: everything needs approval again.
    drifted["inputSchema"]["properties"]["ref"]["maxLength"] = 5.into();
    assert!(left(&drifted).contains(&ids[0]));
}

#[test]
fn the_last_change_approves_the_tool() {
    let (bench, drifted, ids) = fixture_with_two_changes();
    let servers = bench.store.servers().unwrap();
    let words: Vec<&str> = ids.iter().map(String::as_str).collect();
    let approved = approve(&bench.store, &servers, &select(&words), &approval()).unwrap();
    assert!(matches!(&approved[..], [ApprovedItem::Tool { tool, .. }] if tool == "click"));
    assert_eq!(drift_summary(&bench.check(&[drifted]).0), []);
}

#[test]
fn an_unknown_word_approves_nothing() {
    let (bench, drifted, ids) = fixture_with_two_changes();
    let servers = bench.store.servers().unwrap();
    let error = approve(
        &bench.store,
        &servers,
        &select(&[&ids[0], "nonsense"]),
        &approval(),
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "no pending change, alert or tool is called `nonsense`"
    );
    let (outcome, _) = bench.check(&[drifted]);
    assert_eq!(outcome.approved, [], "the known id was not approved either");
}

#[test]
fn tools_that_went_and_came_are_approved_too() {
    let bench = StoreFixture::new();
    let (click, wait) = (
        tool("click", "Click an element", &["ref"]),
        tool("wait", "Wait for a while", &["seconds"]),
    );
    bench.pin(&[click.clone(), wait]);
    let upload = tool("upload", "Send a file away", &["path"]);
    let now = [click, upload];
    bench.check(&now);
    let servers = bench.store.servers().unwrap();
    let selection = ApprovalSelection {
        tools: vec!["wait".to_owned(), "upload".to_owned()],
        ..ApprovalSelection::default()
    };
    let approved = approve(&bench.store, &servers, &selection, &approval()).unwrap();
    assert!(
        matches!(
            &approved[..],
            [ApprovedItem::Tool { .. }, ApprovedItem::RemovedTool { .. }]
        ),
        "{approved:?}"
    );
    assert_eq!(drift_summary(&bench.check(&now).0), []);
}
