//! A check during which another process changes the pins.

use serde_json::Value;
use toolwarden_drift::{Options, ToolwatchChangeType};
use toolwarden_watch::{
    CheckOutcome, CheckSource, Pins, PinsError, RecordOptions, ServerListing, run_check,
};

use super::{StoreFixture, approval, drift_summary, listing, tool};

/// A check that another process overtakes once, between judging and recording.
struct OvertakenCheck<'k> {
    bench: &'k StoreFixture,
    listing: ServerListing,
    /// What the other process pins.
    pins: Option<Value>,
    /// What each attempt found.
    attempts: Vec<Vec<(String, &'static str)>>,
}

impl<'k> CheckSource<'k> for OvertakenCheck<'k> {
    type Error = PinsError;

    fn load_pins(&mut self) -> Result<Pins<'k>, PinsError> {
        Ok(Pins::from_store(&self.bench.store, &self.bench.key)?)
    }

    fn listing(&mut self) -> &mut ServerListing {
        &mut self.listing
    }

    fn review(&mut self, _pins: &Pins<'k>, outcome: &mut CheckOutcome) -> Result<(), PinsError> {
        self.attempts.push(drift_summary(outcome));
        if let Some(tool) = self.pins.take() {
            self.bench.pin(&[tool]);
        }
        Ok(())
    }
}

fn overtaken(
    bench: &StoreFixture,
    listing: ServerListing,
    pins: Value,
) -> (Vec<Vec<(String, &'static str)>>, usize) {
    let approval = approval();
    let recording = RecordOptions {
        approval: &approval,
        version: "2",
        seal: true,
        alert_on: &ToolwatchChangeType::ALL,
        alert_on_equivalent: false,
        wanted: &[],
    };
    let mut check = OvertakenCheck {
        bench,
        listing,
        pins: Some(pins),
        attempts: Vec::new(),
    };
    let done = run_check(&mut check, &Options::default(), &[], &recording).unwrap();
    (check.attempts, done.recorded.alerts.len())
}

fn breaking() -> Vec<(String, &'static str)> {
    vec![("click".to_owned(), "breaking")]
}

#[test]
fn an_overtaken_check_judges_again() {
    let bench = StoreFixture::new();
    bench.pin(&[tool("click", "Click", &["ref"])]);
    let next = tool("click", "Click", &["element"]);
    let seen = listing(std::slice::from_ref(&next), true);
    assert_eq!(
        overtaken(&bench, seen, next),
        (vec![breaking(), Vec::new()], 0)
    );
}

#[test]
fn a_first_check_does_not_replace_the_pins_of_another_process() {
    let bench = StoreFixture::new();
    let seen = listing(&[tool("click", "Click", &["element"])], true);
    let pinned = tool("click", "Click", &["ref"]);
    assert_eq!(
        overtaken(&bench, seen, pinned),
        (vec![Vec::new(), breaking()], 1)
    );
}

#[test]
fn a_tool_that_matched_the_old_pin_is_compared_with_the_new_one() {
    let bench = StoreFixture::new();
    let old = tool("click", "Click", &["ref"]);
    let other = tool("wait", "Wait for a while", &["seconds"]);
    bench.pin(&[old, other]);
    let seen = ServerListing {
        unchanged: vec!["click".to_owned()],
        // Something to record: without it no write could be overtaken.
        is_complete: true,
        ..ServerListing::default()
    };
    let (attempts, alerts) = overtaken(&bench, seen, tool("click", "Click", &["element"]));
    let removed = vec![("wait".to_owned(), "breaking")];
    assert_eq!((attempts, alerts), (vec![removed, breaking()], 1));
}
