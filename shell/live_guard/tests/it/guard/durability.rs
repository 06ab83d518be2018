//! A guard whose decisions are recorded in a store.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;
use toolwarden_guard::ReasonCode;
use toolwarden_live_guard::audit::verify;
use toolwarden_live_guard::{AuditLog, Clock, LiveGuard, LoadedPolicy};
use toolwarden_store::{RecordFilter, Store};

use super::call;

fn stored_guard(policy: &str) -> (TempDir, LiveGuard) {
    let folder = tempfile::tempdir().unwrap();
    let place = Path::new("policy.yaml");
    let policy = LoadedPolicy::of_text(policy.as_bytes(), place, Path::new("")).unwrap();
    let log = AuditLog::open_store(&folder.path().join("audit.db"), &policy.guard).unwrap();
    (
        folder,
        LiveGuard::open(policy, log, Clock::default()).unwrap(),
    )
}

fn flush(guard: &LiveGuard) {
    match guard.log() {
        AuditLog::Stored(writer) => writer.flush().unwrap(),
        AuditLog::Recent(_) => {}
    }
}

fn records(folder: &TempDir) -> Vec<String> {
    let store = Store::open(&folder.path().join("audit.db")).unwrap();
    let mut told = Vec::new();
    let filter = RecordFilter::default();
    store
        .records(&filter, |row| {
            told.push(format!("{} {}", row.kind, row.code));
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert!(verify(&store, None).unwrap().is_intact());
    told
}

#[test]
fn decisions_and_outcomes_are_in_the_store_under_every_durability() {
    for durability in ["sync", "group", "async"] {
        let (folder, guard) = stored_guard(&format!(
            "tools: {{t: {{state: done, available_in_states: [undefined]}}}}\naudit: {{durability: {durability}}}"
        ));
        let call = call("t", "p", json!({"password": "hunter2"}));
        guard.decide(&call).unwrap().report_success_unchecked();
        assert_eq!(
            guard.decide(&call).unwrap_err().code,
            ReasonCode::FilteredByState
        );
        flush(&guard);
        assert_eq!(
            records(&folder),
            [
                "policy loaded",
                "decision allowed",
                "outcome succeeded",
                "transition dead_end",
                "decision filtered_by_state",
            ],
            "{durability}"
        );
    }
}

#[test]
fn a_call_that_cannot_be_recorded_is_denied() {
    for (rule, allowed) in [("deny", false), ("allow", true)] {
        let (folder, guard) = stored_guard(&format!(
            "tools: {{t: {{}}}}\naudit: {{on_failure: {rule}}}"
        ));
        let call = call("t", "p", json!({}));
        assert!(guard.intercept(&call).allowed);
        // The log disappears.
        for name in ["audit.db", "audit.db-wal", "audit.db-shm"] {
            std::fs::remove_file(folder.path().join(name)).unwrap();
        }
        let decision = guard.intercept(&call);
        assert_eq!(decision.allowed, allowed, "{rule}");
        if !allowed {
            assert_eq!(decision.code, ReasonCode::AuditUnavailable);
            assert!(
                decision
                    .reason
                    .starts_with("the decision cannot be recorded: ")
            );
        }
        let unknown = super::call("nothing", "p", json!({}));
        assert_eq!(
            guard.intercept(&unknown).code,
            ReasonCode::UnknownTool,
            "a denial stands"
        );
        assert_eq!(guard.metrics().unrecorded_entries(), 2);
        // An empty store in its place is not the log.
        drop(Store::open(&folder.path().join("audit.db")).unwrap());
        assert_eq!(guard.intercept(&call).allowed, allowed, "{rule}");
        assert_eq!(guard.metrics().unrecorded_entries(), 3);
    }
}

#[test]
fn a_policy_cannot_weaken_a_log_that_is_open() {
    let (folder, guard) = stored_guard("tools: {t: {}}\naudit: {durability: sync}");
    let changed = "tools: {t: {}}\naudit: {durability: async}";
    let place = Path::new("policy.yaml");
    let changed = LoadedPolicy::of_text(changed.as_bytes(), place, Path::new("")).unwrap();
    guard.exchange(changed);
    let store = Store::open(&folder.path().join("audit.db")).unwrap();
    let mut kept = None;
    let last = RecordFilter {
        kind: Some("policy".to_owned()),
        ..RecordFilter::default()
    };
    store
        .records(&last, |row| {
            let body: serde_json::Value = serde_json::from_str(row.body).unwrap();
            kept = body.get("durability_kept").cloned();
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(kept, Some(json!("sync")));
}

#[test]
fn threads_share_one_chain() {
    let (folder, guard) = stored_guard("tools: {t: {rate_limit: unlimited}}");
    let guard = Arc::new(guard);
    std::thread::scope(|scope| {
        for at in 0..8 {
            let guard = Arc::clone(&guard);
            scope.spawn(move || {
                let principal = format!("p{at}");
                for _ in 0..50 {
                    assert!(guard.intercept(&call("t", &principal, json!({}))).allowed);
                }
            });
        }
    });
    assert_eq!(records(&folder).len(), 401);
}
