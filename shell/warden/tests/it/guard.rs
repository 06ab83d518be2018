//! The guard in use.

mod approvals;
mod hostile;
mod interceptor;
mod limits;
mod misuse;
mod originals;
mod recorded;
mod reload;
mod strict_input;
mod workflow;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolwarden_guard::{Decision, RequestedGroups};
use toolwarden_warden::guard::{Call, Clock, LiveGuard, LoadedPolicy, Log, RecentLog, SetClock};

/// A guard with a log in memory and a clock that is set.
struct Bench {
    guard: LiveGuard,
    clock: Arc<SetClock>,
    log: Arc<RecentLog>,
}

fn bench(policy: &str) -> Bench {
    let loaded = LoadedPolicy::of_text(policy.as_bytes(), Path::new("policy.yaml"), Path::new(""));
    on_bench(loaded.unwrap().guard)
}

fn on_bench(guard: toolwarden_guard::Guard) -> Bench {
    let clock = SetClock::at("2026-01-05T08:00:00Z".parse().unwrap());
    let log = Arc::new(RecentLog::default());
    let guard = LiveGuard::new(
        guard,
        Log::Recent(Arc::clone(&log)),
        Clock::Set(Arc::clone(&clock)),
    );
    Bench {
        guard: guard.unwrap(),
        clock,
        log,
    }
}

impl Bench {
    fn decide(&self, tool: &str, principal: &str, arguments: Value) -> Decision {
        self.guard.intercept(&call(tool, principal, arguments))
    }

    fn at(&self, seconds: f64) {
        self.clock.set(Duration::from_secs_f64(seconds));
    }

    /// Kind and code of every entry.
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
