use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;
use toolwarden_guard::{Durability, ReasonCode};
use toolwarden_model::StateName;
use toolwarden_store::{RecordFilter, Store};

use crate::audit::{AuditOptions, AuditWriter, verify};
use crate::{AuditLog, Call, Clock, LiveGuard, LoadedPolicy};

const DURABILITIES: [Durability; 3] = [Durability::Sync, Durability::Group, Durability::Async];

const POLICY: &str = "
tools:
  step: {state: done, available_in_states: [undefined], output: enforce, output_schema: {required: [a]}}
  free: {rate_limit: unlimited}
";

struct AsyncFixture {
    folder: TempDir,
    guard: LiveGuard,
}

impl AsyncFixture {
    fn new(durability: Durability, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let policy = format!("{POLICY}{more}");
        let policy = LoadedPolicy::of_text(policy.as_bytes(), Path::new("p"), Path::new(""));
        let options = AuditOptions {
            busy_timeout: Duration::from_millis(300),
            ..AuditOptions::new(durability)
        };
        let writer = AuditWriter::open(&folder.path().join("audit.db"), options).unwrap();
        let log = AuditLog::Stored(Arc::new(writer));
        let guard = LiveGuard::new(policy.unwrap().guard, log, Clock::default()).unwrap();
        Self { folder, guard }
    }

    /// The records in the store now, without any wait.
    fn records(&self) -> Vec<String> {
        let store = Store::open(&self.folder.path().join("audit.db")).unwrap();
        let mut told = Vec::new();
        let records = store.records(&RecordFilter::default(), |row| {
            told.push(format!("{} {}", row.kind, row.code));
            std::ops::ControlFlow::Continue(())
        });
        records.unwrap();
        assert!(verify(&store, None).unwrap().is_intact());
        told
    }

    fn written(&self) -> Vec<String> {
        if let AuditLog::Stored(writer) = self.guard.log() {
            writer.flush().unwrap();
        }
        self.records()
    }

    /// Blocks all writers.
    fn lock_store(&self) -> Connection {
        let other = Connection::open(self.folder.path().join("audit.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        other
    }

    fn state(&self) -> Option<String> {
        let session = self.guard.session("p", "")?;
        Some(session.state.to_string())
    }
}

fn call(tool: &str) -> Call<'_> {
    Call {
        tool,
        principal: "p",
        ..Call::default()
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

fn is_ready(future: impl Future) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(future).poll(&mut context).is_ready()
}

#[test]
fn decisions_and_outcomes_are_as_durable_as_the_policy_requires() {
    for durability in DURABILITIES {
        let bench = AsyncFixture::new(durability, "");
        run(async {
            let open = bench
                .guard
                .decide_async(&call("step"))
                .decided()
                .await
                .unwrap();
            if durability != Durability::Async {
                assert_eq!(bench.records(), ["decision allowed"], "{durability:?}");
            }
            let settling = open.report_success_async(&json!({"a": 1}));
            assert_eq!(bench.state().as_deref(), Some("done"), "before any wait");
            settling.wait().await.unwrap();
            if durability != Durability::Async {
                assert_eq!(bench.records().len(), 3, "{durability:?}");
            }
            let denial = bench.guard.decide_async(&call("step")).decided().await;
            assert_eq!(denial.unwrap_err().code, ReasonCode::FilteredByState);
        });
        assert_eq!(
            bench.written(),
            [
                "decision allowed",
                "outcome succeeded",
                "transition taken",
                "decision filtered_by_state",
            ],
            "{durability:?}"
        );
        let metrics = bench.guard.metrics();
        assert_eq!(metrics.decisions(ReasonCode::Allowed), 1);
        assert_eq!(metrics.decisions(ReasonCode::FilteredByState), 1);
    }
}

#[test]
fn only_success_advances_a_session() {
    type End = fn(crate::OpenCall) -> crate::PendingOutcome;
    let endings: [(End, &str, bool); 3] = [
        (
            |open| open.report_failure_async(&"no answer"),
            "outcome failed",
            false,
        ),
        (
            |open| open.report_suspended_async(),
            "outcome suspended",
            false,
        ),
        (
            |open| open.report_success_async(&json!({})),
            "outcome failed",
            true,
        ),
    ];
    for (end, told, rejected) in endings {
        let bench = AsyncFixture::new(Durability::Group, "");
        run(async {
            let open = bench
                .guard
                .decide_async(&call("step"))
                .decided()
                .await
                .unwrap();
            assert_eq!(open.next_state(), Some(&StateName::new("done")));
            let settled = end(open).wait().await;
            assert_eq!(settled.is_err(), rejected);
        });
        assert_eq!(bench.records(), ["decision allowed", told]);
        assert_eq!(bench.state(), None);
    }
}

#[test]
fn only_the_future_waits_for_the_disk() {
    for durability in [Durability::Sync, Durability::Group] {
        let bench = AsyncFixture::new(durability, "");
        let held = bench.lock_store();
        let began = std::time::Instant::now();
        let mut deciding = pin!(bench.guard.decide_async(&call("free")).decided());
        let mut context = Context::from_waker(Waker::noop());
        assert!(deciding.as_mut().poll(&mut context).is_pending());
        assert!(
            began.elapsed() < Duration::from_millis(200),
            "{durability:?}"
        );
        drop(held);
        run(deciding).unwrap().report_success_unchecked();
        assert_eq!(
            bench.written(),
            ["decision allowed", "outcome succeeded"],
            "{durability:?}"
        );
    }
}

#[test]
fn a_decision_that_cannot_be_recorded_is_refused_unless_the_policy_says_otherwise() {
    for durability in [Durability::Sync, Durability::Group] {
        for (on_failure, allowed) in [("deny", false), ("allow", true)] {
            let more = format!("audit: {{on_failure: {on_failure}}}");
            let bench = AsyncFixture::new(durability, &more);
            let held = bench.lock_store();
            let decided = run(bench.guard.decide_async(&call("free")).decided());
            drop(held);
            assert_eq!(decided.is_ok(), allowed, "{durability:?} {on_failure}");
            if let Err(denial) = decided {
                assert_eq!(denial.code, ReasonCode::AuditUnavailable);
                assert_eq!(bench.written(), [""; 0], "no call, so no end of one");
                assert_eq!(
                    bench
                        .guard
                        .metrics()
                        .decisions(ReasonCode::AuditUnavailable),
                    1
                );
            }
            assert!(bench.guard.metrics().unrecorded_entries() > 0);
        }
    }
}

#[test]
fn a_dropped_pending_decision_is_abandoned() {
    for durability in DURABILITIES {
        let bench = AsyncFixture::new(durability, "");
        drop(bench.guard.decide_async(&call("free")));
        drop(bench.guard.decide_async(&call("free")).decided());
        let _polled = is_ready(bench.guard.decide_async(&call("nothing")).decided());
        let mut told = bench.written();
        told.sort();
        assert_eq!(
            told,
            [
                "decision allowed",
                "decision allowed",
                "decision unknown_tool",
                "outcome abandoned",
                "outcome abandoned",
            ],
            "{durability:?}"
        );
    }
}

#[test]
fn many_tasks_wait_for_one_batch() {
    for durability in DURABILITIES {
        let bench = AsyncFixture::new(durability, "");
        run(async {
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..200 {
                let deciding = bench.guard.decide_async(&call("free"));
                tasks.spawn(async move {
                    let open = deciding.decided().await.unwrap();
                    open.report_success_unchecked_async().wait().await.unwrap();
                });
            }
            while let Some(done) = tasks.join_next().await {
                done.unwrap();
            }
        });
        assert_eq!(bench.written().len(), 400, "{durability:?}");
        let health = bench.guard.log().health().unwrap();
        assert_eq!((health.queued, health.written), (0, 400));
    }
}
