//! A server whose definitions are expensive to compare delays no other server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwarden_drift::ChangeClass;
use toolwarden_settings::WatchSettings;
use toolwarden_watch::ApprovalSelection;
use toolwarden_watch::inline::{ApprovalRequest, InlineOptions, InlineWatch, ReceivedList};

use super::{Gate, quick, run, tool};

/// Far below the time of a comparison without a limit, and far above that of anything else.
const PROMPT: Duration = Duration::from_secs(20);

/// A tool of a few kilobytes whose two versions take minutes to compare.
fn hostile(name: &str, end: &str) -> Value {
    let patterns = (1..60).map(|n| json!({"pattern": format!("a.{{{n}}}{end}")}));
    json!({"name": name, "inputSchema": {"type": "object", "required": ["a"], "properties": {
        "a": {"type": "string", "allOf": patterns.collect::<Vec<_>>()}}}})
}

fn observed_list_of(gate: &Gate, server: &str, tools: &[Value]) -> ReceivedList {
    ReceivedList {
        server: server.to_owned(),
        ..gate.seen(tools)
    }
}

fn slow() -> WatchSettings {
    WatchSettings {
        compare_time: Duration::from_secs(4),
        compare_list_time: Duration::from_secs(15),
        ..WatchSettings::default()
    }
}

#[test]
fn a_comparison_without_an_answer_in_time_quarantines() {
    run(async {
        let settings = WatchSettings {
            compare_time: Duration::from_millis(200),
            ..WatchSettings::default()
        };
        let gate = Gate::with(quick(), settings);
        gate.check(&[hostile("find", "b"), tool("send", "Sends.")])
            .await;
        let start = Instant::now();
        let checked = gate
            .check(&[hostile("find", "c"), tool("send", "Sends.")])
            .await;
        assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
        assert!(!checked.tool_actions["find"].is_served());
        assert!(checked.tool_actions["send"].is_served());
        let classes: Vec<ChangeClass> = checked.changes.iter().map(|it| it.class).collect();
        assert_eq!(classes, [ChangeClass::Unknown]);
    });
}

#[test]
fn all_tools_of_a_list_share_a_limit() {
    run(async {
        let settings = WatchSettings {
            compare_time: Duration::from_millis(500),
            compare_list_time: Duration::from_millis(500),
            ..WatchSettings::default()
        };
        let gate = Gate::with(quick(), settings);
        let list = |end: &str| -> Vec<Value> {
            (0..100).map(|n| hostile(&format!("t{n}"), end)).collect()
        };
        gate.check(&list("b")).await;
        let start = Instant::now();
        let checked = gate.check(&list("c")).await;
        // One after the other they would take most of a minute.
        assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
        assert!(checked.tool_actions.values().all(|it| !it.is_served()));
    });
}

#[test]
fn others_are_answered_while_a_server_is_compared() {
    run(async {
        let gate = Gate::with(quick(), slow());
        let (old, new) = (hostile("find", "b"), hostile("find", "c"));
        let shop = [tool("send", "Sends.")];
        gate.check(&[old]).await;
        gate.watch
            .check(observed_list_of(&gate, "shop", &shop))
            .await
            .unwrap();
        let changed = [tool("send", "Sends mail.")];
        gate.watch
            .check(observed_list_of(&gate, "shop", &changed))
            .await
            .unwrap();

        let comparing = {
            let (watch, seen) = (gate.watch.clone(), gate.seen(&[new]));
            tokio::spawn(async move { watch.check(seen).await.unwrap() })
        };
        // Let the comparison start.
        tokio::time::sleep(Duration::from_millis(100)).await;
        // A list that matches its pins, lists that drifted, an approval, and the pending approvals.
        gate.watch
            .check(observed_list_of(&gate, "shop", &shop))
            .await
            .unwrap();
        gate.watch
            .check(observed_list_of(&gate, "shop", &changed))
            .await
            .unwrap();
        let approving = ApprovalRequest {
            server: Some("shop".to_owned()),
            selection: ApprovalSelection {
                all: true,
                ..ApprovalSelection::default()
            },
            by: "ada".to_owned(),
            ..ApprovalRequest::default()
        };
        let approved = gate.watch.approve(approving).await.unwrap();
        assert_eq!(approved.len(), 1);
        let pending_approvals = gate
            .watch
            .pending_approvals(Some("shop".to_owned()))
            .await
            .unwrap();
        assert_eq!(pending_approvals.len(), 0);
        let served = gate
            .watch
            .check(observed_list_of(&gate, "shop", &changed))
            .await
            .unwrap();
        assert!(served.tool_actions["send"].is_served());
        assert!(!comparing.is_finished(), "the comparison was to be slow");
        let compared = comparing.await.unwrap();
        assert!(!compared.tool_actions["find"].is_served());
    });
}

#[test]
fn after_a_restart_a_healthy_server_is_answered_at_once() {
    run(async {
        let gate = Gate::with(quick(), slow());
        gate.check(&[hostile("find", "b")]).await;
        let shop = [tool("send", "Sends.")];
        gate.watch
            .check(observed_list_of(&gate, "shop", &shop))
            .await
            .unwrap();

        // One thread, which the hostile server takes first.
        let options = InlineOptions {
            compare_threads: 1,
            ..quick()
        };
        let again = InlineWatch::open(&gate.store(), options).unwrap();
        let comparing = {
            let (watch, seen) = (again.clone(), gate.seen(&[hostile("find", "c")]));
            tokio::spawn(async move { watch.check(seen).await.unwrap() })
        };
        tokio::time::sleep(Duration::from_millis(100)).await;
        let checked = again
            .check(observed_list_of(&gate, "shop", &shop))
            .await
            .unwrap();
        assert!(checked.tool_actions["send"].is_served());
        assert!(!comparing.is_finished(), "the comparison was to be slow");
        comparing.await.unwrap();
    });
}

#[test]
fn an_approval_while_a_list_is_compared_counts() {
    run(async {
        let gate = Gate::with(quick(), slow());
        gate.check(&[hostile("find", "b"), tool("send", "Sends.")])
            .await;
        let drifted = [hostile("find", "b"), tool("send", "Sends mail.")];
        gate.check(&drifted).await;
        let worse = [hostile("find", "c"), tool("send", "Sends mail.")];
        let comparing = {
            let (watch, seen) = (gate.watch.clone(), gate.seen(&worse));
            tokio::spawn(async move { watch.check(seen).await.unwrap() })
        };
        tokio::time::sleep(Duration::from_millis(100)).await;
        let approving = ApprovalRequest {
            selection: ApprovalSelection {
                tools: vec!["send".to_owned()],
                ..ApprovalSelection::default()
            },
            by: "ada".to_owned(),
            ..ApprovalRequest::default()
        };
        gate.watch.approve(approving).await.unwrap();
        let compared = comparing.await.unwrap();
        assert!(compared.tool_actions["send"].is_served());
        assert!(!compared.tool_actions["find"].is_served());
    });
}
