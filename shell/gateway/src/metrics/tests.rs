use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use toolwarden_drift::ChangeClass;
use toolwarden_guard::{Durability, ToolPolicy};
use toolwarden_live_guard::audit::{AuditOptions, AuditWriter};
use toolwarden_live_guard::{AuditLog, Call, Clock, LiveGuard, LoadedPolicy};
use toolwarden_mcp::Era;
use toolwarden_model::StateName;

use super::{
    CallStage, GatewayGauges, GatewayMetrics, ResponseOutcome, ServerGauges, TargetGauges,
    ToolActionLabel,
};

const POLICY: &str = "
tools:
  query: {group: [knowledge], state: analysis, available_in_states: [undefined]}
principals:
  p: {groups: [knowledge]}
";

fn guard(log: AuditLog) -> LiveGuard {
    let policy = LoadedPolicy::of_text(POLICY.as_bytes(), Path::new("p"), Path::new("")).unwrap();
    LiveGuard::new(policy.guard, log, Clock::default()).unwrap()
}

fn call<'c>(tool: &'c str, group: &str) -> Call<'c> {
    Call {
        tool,
        principal: "p",
        session: Some("s"),
        groups: Some([group].into_iter().collect()),
        ..Call::default()
    }
}

/// The lines of a text that are not comments, without the values.
fn series(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| Some(line.rsplit_once(' ')?.0))
        .collect()
}

#[test]
fn the_nine_metrics_of_the_document_are_there_after_use() {
    let guard = guard(AuditLog::recent());
    let claimed = Call {
        state: Some(&StateName::new("results")),
        ..call("query", "knowledge")
    };
    guard.available(&claimed).unwrap();
    guard
        .decide(&call("query", "knowledge"))
        .unwrap()
        .report_success_unchecked();
    drop(guard.decide(&call("query", "knowledge")));
    drop(guard.decide(&call("query", "admin")));
    let text = GatewayMetrics::new().text(&guard, &GatewayGauges::default());
    let series = series(&text);
    for expected in [
        "agent_tool_group_requests_total{group=\"knowledge\"}",
        "agent_tool_group_availability{group=\"knowledge\"}",
        "agent_filtered_tools_count_count",
        "agent_state_transitions_total{tool=\"query\",from=\"undefined\",to=\"analysis\"}",
        "agent_workflow_duration_seconds_count{state=\"undefined\"}",
        "agent_state_availability{state=\"undefined\"}",
        "agent_group_access_denied_total{group=\"(unknown)\"}",
        "agent_invalid_state_transition_total{reason=\"client_state\"}",
        "agent_invalid_state_transition_total{reason=\"not_available\"}",
        "agent_privilege_escalation_attempts_total{reason=\"groups\"}",
        "toolwarden_decisions_total{code=\"allowed\"}",
        "toolwarden_decisions_total{code=\"groups_not_granted\"}",
    ] {
        assert!(series.contains(&expected), "{expected} is not in\n{text}");
    }
    assert_eq!(text.matches("# EOF").count(), 1);
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn everything_counted_and_read_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let options = AuditOptions::new(Durability::Sync);
    let writer = AuditWriter::open(&folder.path().join("audit.db"), options).unwrap();
    let guard = guard(AuditLog::Stored(writer.into()));
    drop(guard.decide(&call("nothing", "knowledge")));

    let metrics = GatewayMetrics::new();
    metrics.observe_stage(CallStage::Decide, Duration::from_micros(20));
    metrics.observe_stage(CallStage::Decide, Duration::from_secs(60));
    metrics.count_response("tools/call", Era::Stateless, ResponseOutcome::Result);
    metrics.count_response("tools/call", Era::Stateless, ResponseOutcome::Result);
    metrics.count_response("made/up", Era::Handshake, ResponseOutcome::Error);
    metrics.count_response("made/up/too", Era::Handshake, ResponseOutcome::Error);
    metrics.count_drift("files", ChangeClass::Breaking);
    metrics.set_unusable_schemas(2);
    metrics.count_reload(true);
    metrics.count_reload(false);
    let server = ServerGauges {
        up: true,
        restarts: 3,
        in_flight: 4,
        links: 5,
        breaker_open: false,
        tools: [
            (ToolActionLabel::Serve, 7),
            (ToolActionLabel::Quarantine, 1),
        ]
        .into(),
    };
    let target = TargetGauges {
        delivered: 8,
        failed: 9,
        pending: 10,
    };
    let now = GatewayGauges {
        servers: [("files".to_owned(), server)].into(),
        targets: [("ops".to_owned(), target)].into(),
        conversations: 11,
        store: None,
        observations: 12,
        dropped_observations: 13,
        dropped_alerts: 14,
    };
    let text = metrics.text(&guard, &now);
    for line in [
        "toolwarden_stage_seconds_sum{stage=\"decide\"} 60.00002",
        "toolwarden_stage_seconds_count{stage=\"decide\"} 2",
        "toolwarden_stage_seconds_bucket{le=\"0.00001\",stage=\"decide\"} 0",
        "toolwarden_stage_seconds_bucket{le=\"0.00005\",stage=\"decide\"} 1",
        "toolwarden_stage_seconds_bucket{le=\"30.0\",stage=\"decide\"} 1",
        "toolwarden_stage_seconds_bucket{le=\"+Inf\",stage=\"decide\"} 2",
        "toolwarden_stage_seconds_count{stage=\"total\"} 0",
        "toolwarden_requests_total{method=\"tools/call\",era=\"stateless\",outcome=\"result\"} 2",
        "toolwarden_requests_total{method=\"other\",era=\"handshake\",outcome=\"error\"} 2",
        "toolwarden_drift_changes_total{server=\"files\",class=\"breaking\"} 1",
        "toolwarden_unusable_schemas 2",
        "toolwarden_reloads_total 1",
        "toolwarden_reload_failures_total 1",
        "toolwarden_upstream_up{server=\"files\"} 1",
        "toolwarden_upstream_restarts_total{server=\"files\"} 3",
        "toolwarden_upstream_in_flight{server=\"files\"} 4",
        "toolwarden_upstream_links{server=\"files\"} 5",
        "toolwarden_upstream_breaker_open{server=\"files\"} 0",
        "toolwarden_tools{server=\"files\",treatment=\"serve\"} 7",
        "toolwarden_tools{server=\"files\",treatment=\"quarantine\"} 1",
        "toolwarden_alert_deliveries_total{target=\"ops\",outcome=\"delivered\"} 8",
        "toolwarden_alert_deliveries_total{target=\"ops\",outcome=\"failed\"} 9",
        "toolwarden_alerts_pending{target=\"ops\"} 10",
        "toolwarden_conversations 11",
        "toolwarden_observations_total 12",
        "toolwarden_observations_dropped_total 13",
        "toolwarden_alerts_dropped_total 14",
        "toolwarden_audit_queued 0",
        "toolwarden_audit_written_total 1",
        "toolwarden_audit_failing 0",
        "toolwarden_decisions_total{code=\"unknown_tool\"} 1",
    ] {
        assert!(
            text.lines().any(|it| it == line),
            "{line} is not in\n{text}"
        );
    }
    let mut all = series(&text);
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "a series occurs twice");
}

#[test]
fn names_of_servers_are_no_labels_of_transitions() {
    let guard = guard(AuditLog::recent());
    let defaults =
        ToolPolicy::read_defaults(&json!({"group": ["knowledge"], "state": "read"})).unwrap();
    let found = |at: usize| {
        let name = format!("tool-{at}");
        ToolPolicy::discovered(&name, None, None, None, None).with_defaults(&defaults)
    };
    guard.discover((0..100).map(found), BTreeMap::new());
    for at in 0..100 {
        let tool = format!("tool-{at}");
        let session = format!("s{at}");
        let call = Call {
            session: Some(&session),
            ..call(&tool, "knowledge")
        };
        guard.decide(&call).unwrap().report_success_unchecked();
    }
    let text = GatewayMetrics::new().text(&guard, &GatewayGauges::default());
    let told: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("agent_state_transitions_total"))
        .collect();
    assert_eq!(
        told,
        ["agent_state_transitions_total{tool=\"(other)\",from=\"undefined\",to=\"read\"} 100"]
    );
}
