//! The running guard.

mod approvals;
mod connectorguard;
mod durability;
mod hostile;
mod interceptor;
mod limits;
mod misuse;
mod reload;
mod strict_input;
mod workflow;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolwarden_guard::{Decision, RequestedGroups};
use toolwarden_live_guard::{
    AuditLog, Call, Clock, LiveGuard, LoadedPolicy, ManualClock, RecentLog,
};

/// A guard with a log in memory and a clock that the test sets.
struct GuardFixture {
    guard: LiveGuard,
    clock: Arc<ManualClock>,
    log: Arc<RecentLog>,
}

fn fixture(policy: &str) -> GuardFixture {
    let loaded = LoadedPolicy::of_text(policy.as_bytes(), Path::new("policy.yaml"), Path::new(""));
    fixture_for(loaded.unwrap().guard)
}

fn fixture_for(guard: toolwarden_guard::Guard) -> GuardFixture {
    let clock = ManualClock::at("2026-01-05T08:00:00Z".parse().unwrap());
    let log = Arc::new(RecentLog::default());
    let guard = LiveGuard::new(
        guard,
        AuditLog::Recent(Arc::clone(&log)),
        Clock::Manual(Arc::clone(&clock)),
    );
    GuardFixture {
        guard: guard.unwrap(),
        clock,
        log,
    }
}

impl GuardFixture {
    fn decide(&self, tool: &str, principal: &str, arguments: Value) -> Decision {
        self.guard.intercept(&call(tool, principal, arguments))
    }

    fn at(&self, seconds: f64) {
        self.clock.set_elapsed(Duration::from_secs_f64(seconds));
    }

    /// The kind and code of every entry.
    fn kinds(&self) -> Vec<String> {
        let entries = self.log.all();
        let contents = entries.iter().map(|entry| entry.content());
        contents
            .map(|it| format!("{} {}", it.kind, it.code))
            .collect()
    }
}

fn call<'c>(tool: &'c str, principal: &'c str, arguments: Value) -> Call<'c> {
    Call {
        tool,
        principal,
        arguments: Arc::new(arguments),
        ..Call::default()
    }
}

fn groups(names: &[&str]) -> Option<RequestedGroups> {
    Some(names.iter().copied().collect())
}
