//! A gateway whose wall clock jumps under it goes on as if nothing had happened: what it counts in time
//! is counted on a clock that does not jump.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwarden_testkit::report_skip;

use super::callers::{records, require_records};
use super::{ServedGateway, shop_settings};
use crate::sandbox::Sandbox;

/// The window of the rate limit. It is longer than the pause between two looks for idle sessions, so
/// that there is such a look after each jump.
const WINDOW: Duration = Duration::from_secs(7);

const DAY: i64 = 86_400;

/// Two refunds in a window, and none before a search: both the count and the state are held in memory.
const POLICY: &str = "\
policy:
  audit: {durability: group}
  principals: {ada: {groups: ['*']}}
  tools:
    shop__echo: {rate_limit: unlimited}
    shop__search_orders: {state: found}
    shop__refund_order: {rate_limit: {agent: 2, window: 7s}, available_in_states: [found]}
";

/// A wall clock that a running process follows.
struct WallClock {
    library: PathBuf,
    file: PathBuf,
}

impl WallClock {
    /// The real time, until a test changes it; none where the library is not installed.
    fn new(sandbox: &Sandbox) -> Option<Self> {
        let folders = std::fs::read_dir("/usr/lib").ok().into_iter().flatten();
        let mut libraries =
            folders.flat_map(|it| Some(it.ok()?.path().join("faketime/libfaketime.so.1")));
        let Some(library) = libraries.find(|it| it.exists()) else {
            report_skip("the clock jump needs libfaketime (package `faketime`)");
            return None;
        };
        let file = sandbox.path("clock");
        let clock = Self { library, file };
        clock.jump_to(0);
        Some(clock)
    }

    /// Sets the clock so many seconds apart from the right time.
    fn jump_to(&self, seconds: i64) {
        let next = self.file.with_extension("next");
        std::fs::write(&next, format!("{seconds:+}")).unwrap();
        std::fs::rename(next, &self.file).unwrap();
    }

    fn command(&self, sandbox: &Sandbox) -> std::process::Command {
        let mut command = sandbox.command();
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_NO_CACHE", "1")
            // The times of files do not jump with a clock.
            .env("NO_FAKE_STAT", "1")
            // Both names, as versions of the library differ.
            .env("DONT_FAKE_MONOTONIC", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        command
    }
}

fn refund(served: &ServedGateway) -> Value {
    served.call(
        "shop__refund_order",
        &json!({"order_id": "A-1001", "amount": 5}),
    )
}

fn assert_refunded(result: &Value) {
    let expected = json!({"order_id": "A-1001", "refunded": 5, "status": "refunded"});
    assert_eq!(result["structuredContent"], expected, "{result}");
}

/// How long a refused call has to wait.
fn wait_of(result: &Value) -> Duration {
    let denial = &result["_meta"]["toolwarden/denial"];
    assert_eq!(denial["code"], "rate_limited", "{result}");
    let wait = denial["retryAfter"].as_f64().unwrap();
    Duration::from_secs_f64(wait)
}

/// Uses the limit up, lets the clock jump, and finds the limit in force for the rest of its window and
/// not a moment longer.
fn exhaust_and_jump(served: &ServedGateway, clock: &WallClock, seconds: i64) {
    let begun = Instant::now();
    assert_refunded(&refund(served));
    assert_refunded(&refund(served));
    wait_of(&refund(served));
    clock.jump_to(seconds);
    let wait = wait_of(&refund(served));
    assert!(wait <= WINDOW, "{wait:?} after the jump to {seconds}");
    let ends = begun.elapsed() + wait;
    assert!(ends >= WINDOW.mul_f64(0.95), "it ends after {ends:?}");
    // The second call of the window is a moment younger than the first.
    std::thread::sleep(wait + Duration::from_millis(500));
}

#[test]
fn a_jump_of_the_clock_changes_nothing() {
    let sandbox = Sandbox::new();
    let Some(clock) = WallClock::new(&sandbox) else {
        return;
    };
    sandbox.write("toolwarden.yaml", &shop_settings(POLICY));
    let mut served = ServedGateway::start_as(clock.command(&sandbox), &[]);
    let unused = served.open();
    served.call("shop__search_orders", &json!({}));
    let answered = Mutex::new(BTreeSet::new());
    let over = AtomicBool::new(false);
    let echo = |session: &str, text: String| {
        let result = served.call_in(session, "shop__echo", &json!({"text": text}));
        assert!(result["structuredContent"].is_object(), "{text}: {result}");
        answered.lock().unwrap().insert(text);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !over.load(Ordering::Relaxed) {
                number += 1;
                echo(served.session(), format!("call-{number}"));
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let end = StopOnDrop(&over);
        exhaust_and_jump(&served, &clock, DAY);
        exhaust_and_jump(&served, &clock, -DAY);
        assert_refunded(&refund(&served));
        // No caller used this session during both jumps.
        echo(&unused, "call-of-the-unused".to_owned());
        drop(end);
    });
    served.process.signal("-TERM");
    assert_eq!(served.process.end(), Some(0));
    let answered = answered.into_inner().unwrap();
    require_records(&sandbox, "toolwarden.db", &answered);
    assert_eq!(days(&sandbox), BTreeSet::from([-1, 0, 1]));
}

/// Lets the callers end, also where an assertion does not hold.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The days of the records, counted from the first one: the clock did jump.
fn days(sandbox: &Sandbox) -> BTreeSet<i64> {
    let mut records = records(sandbox, "toolwarden.db");
    records.sort_by_key(|it| it["seq"].as_u64());
    let times = records.iter().map(|record| {
        let at: jiff::Timestamp = record["at"].as_str().unwrap().parse().unwrap();
        at.as_second()
    });
    let times: Vec<i64> = times.collect();
    let from_first = times.iter().map(|it| it - times[0]);
    // Far less than half a day passes in this test.
    from_first
        .map(|it| (it + DAY / 2).div_euclid(DAY))
        .collect()
}
