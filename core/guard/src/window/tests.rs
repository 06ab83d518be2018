use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;
use toolwarden_testkit::read_vectors;

use super::{Limit, RetryAfter, Window};

const SECOND: u64 = 1_000_000_000;

fn limit(max: u32, window: u64) -> Limit {
    Limit {
        max: NonZeroU32::new(max).unwrap(),
        window: Duration::from_nanos(window),
    }
}

fn waits(nanoseconds: u64) -> Result<u64, RetryAfter> {
    Err(RetryAfter(Duration::from_nanos(nanoseconds)))
}

fn replay_vector(name: &str) {
    let Some(vectors) = read_vectors("guard.json") else {
        return;
    };
    let limit = limit(3, 60 * SECOND);
    let mut window = Window::new();
    let rows = vectors[name].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        let now = nanoseconds(&row[0]);
        let allowed = window.check(now, limit).is_ok();
        let count = window.count(now, limit.window);
        let expected = (row[1].as_bool().unwrap(), row[2].as_u64().unwrap());
        assert_eq!((allowed, count as u64), expected, "{name} {row}");
    }
}

/// Seconds as written, without the loss of a floating point number.
fn nanoseconds(seconds: &Value) -> u64 {
    let text = seconds.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    format!("{whole}{part:0<9}").parse().unwrap()
}

#[test]
fn slides_as_the_original() {
    replay_vector("window60_max3_t_allowed_countAfter");
}

#[test]
fn survives_a_clock_that_goes_back_as_the_original() {
    replay_vector("clock_back_t_allowed_count");
}

#[test]
fn a_call_as_old_as_the_window_counts() {
    let mut window = Window::new();
    assert_eq!(window.check(0, limit(1, 60)), Ok(0));
    assert_eq!(window.check(0, limit(1, 60)), waits(61));
    assert_eq!(window.check(60, limit(1, 60)), waits(1));
    assert_eq!(window.check(61, limit(1, 60)), Ok(61));
}

#[test]
fn a_window_of_nothing_is_one_instant() {
    let mut window = Window::new();
    assert_eq!(window.check(5, limit(1, 0)), Ok(5));
    assert_eq!(window.check(5, limit(1, 0)), waits(1));
    assert_eq!(window.check(6, limit(1, 0)), Ok(6));
}

#[test]
fn a_shorter_window_destroys_nothing() {
    let mut window = Window::new();
    for now in 0..3 {
        assert_eq!(window.check(now, limit(3, 60)), Ok(now));
    }
    assert_eq!(window.count(50, Duration::from_nanos(10)), 0);
    assert_eq!(window.check(50, limit(1, 10)), Ok(50));
    assert_eq!(window.count(50, Duration::from_nanos(60)), 4);
    assert_eq!(window.check(51, limit(3, 60)), waits(11));
}

#[test]
fn a_refused_check_keeps_what_its_window_needs() {
    let mut window = Window::new();
    assert_eq!(window.check(0, limit(1, 10)), Ok(0));
    assert_eq!(window.check(0, limit(1, 60)), waits(61));
    assert_eq!(window.check(20, limit(1, 10)), Ok(20));
    assert_eq!(window.count(20, Duration::from_nanos(60)), 2);
}

#[test]
fn the_end_of_time_does_not_overflow() {
    let mut window = Window::new();
    let far = limit(1, u64::MAX);
    let at = window.check(u64::MAX, far).unwrap();
    assert_eq!(window.check(u64::MAX, far), waits(1));
    assert_eq!(window.check(0, far), waits(u64::MAX));
    assert_eq!(window.idle_at(), u64::MAX);
    assert!(window.refund(at));
    assert!(window.is_empty());
    let for_ever = Limit {
        max: NonZeroU32::MIN,
        window: Duration::MAX,
    };
    assert_eq!(window.check(7, for_ever), Ok(7));
    assert_eq!(window.check(u64::MAX, for_ever), waits(1));
}

#[test]
fn one_call_costs_sixteen_bytes() {
    assert_eq!(size_of::<Window>(), 16);
}

#[test]
fn a_burst_leaves_no_memory_behind() {
    let mut window = Window::new();
    for now in 0..10_000 {
        window.check(now, limit(10_000, 20_000)).unwrap();
    }
    for now in 29_000..29_999 {
        window.record(now, Duration::ZERO);
    }
    let super::Calls::Many(Some(ring)) = &window.0 else {
        panic!("{window:?}");
    };
    assert!(ring.calls.capacity() <= ring.calls.len() * 4, "{window:?}");
    window.record(60_000, Duration::ZERO);
    assert!(matches!(window.0, super::Calls::One { at, .. } if at.get() == 60_000));
}

/// The simplest correct model: a list with linear search.
#[derive(Debug, Default)]
struct Model {
    calls: Vec<u64>,
    max_window: u64,
}

impl Model {
    fn time(&self, now: u64) -> u64 {
        self.calls.iter().copied().fold(now, u64::max)
    }

    fn count(&self, now: u64, window: u64) -> usize {
        let from = self.time(now).saturating_sub(window);
        self.calls.iter().filter(|&&at| at >= from).count()
    }

    fn check(&mut self, now: u64, max: u32, window: u64) -> Option<u64> {
        self.max_window = self.max_window.max(window);
        if self.count(now, window) >= max as usize {
            return None;
        }
        let at = self.time(now);
        let from = at.saturating_sub(self.max_window);
        self.calls.retain(|&call| call >= from);
        self.calls.push(at);
        Some(at)
    }

    fn refund(&mut self, at: u64) -> bool {
        let Some(index) = self.calls.iter().position(|&call| call == at) else {
            return false;
        };
        self.calls.remove(index);
        if self.calls.is_empty() {
            self.max_window = 0;
        }
        true
    }

    fn idle_at(&self) -> u64 {
        let last = self.calls.last();
        last.map_or(0, |last| last + self.max_window + 1)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Check { max: u32, window: u64 },
    Count { window: u64 },
    RefundRecorded { index: prop::sample::Index },
    Refund { at: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..6u32, 0..60u64).prop_map(|(max, window)| Step::Check { max, window }),
        2 => (0..90u64).prop_map(|window| Step::Count { window }),
        1 => any::<prop::sample::Index>().prop_map(|index| Step::RefundRecorded { index }),
        1 => (0..400u64).prop_map(|at| Step::Refund { at }),
    ]
}

/// Mostly forward, often not at all, sometimes back and sometimes far.
fn tick() -> impl Strategy<Value = i64> {
    prop_oneof![4 => 0..8i64, 2 => Just(0), 1 => -40..0i64, 1 => 0..120i64]
}

proptest! {
    #[test]
    fn agrees_with_a_plain_list(steps in prop::collection::vec((tick(), step()), 1..120)) {
        let (mut window, mut model) = (Window::new(), Model::default());
        let mut now = 100u64;
        for (tick, step) in steps {
            now = now.saturating_add_signed(tick);
            match step {
                Step::Check { max, window: length } => {
                    let recorded = window.check(now, limit(max, length));
                    prop_assert_eq!(recorded.ok(), model.check(now, max, length));
                    if let Err(RetryAfter(wait)) = recorded {
                        let then = now + u64::try_from(wait.as_nanos()).unwrap();
                        prop_assert!(window.admits(then - 1, limit(max, length)).is_err());
                        prop_assert!(window.admits(then, limit(max, length)).is_ok());
                    }
                }
                Step::Count { window: length } => prop_assert_eq!(
                    window.count(now, Duration::from_nanos(length)),
                    model.count(now, length)
                ),
                Step::RefundRecorded { index } if !model.calls.is_empty() => {
                    let at = *index.get(&model.calls);
                    prop_assert!(window.refund(at));
                    prop_assert!(model.refund(at));
                }
                Step::RefundRecorded { .. } => {}
                Step::Refund { at } => prop_assert_eq!(window.refund(at), model.refund(at)),
            }
            prop_assert_eq!(window.idle_at(), model.idle_at());
            prop_assert_eq!(window.is_empty(), model.calls.is_empty());
        }
    }

    /// While the clock runs forward, eviction changes no count: a list that keeps everything counts the
    /// same.
    #[test]
    fn forgets_nothing_that_counts(
        steps in prop::collection::vec((0..20u64, 1..6u32, 0..=60u64), 1..120),
    ) {
        let mut window = Window::new();
        let mut all = vec![window.check(0, limit(1, 60)).unwrap()];
        let mut now = 0;
        for (tick, max, length) in steps {
            now += tick;
            let counting = |all: &[u64]| all.iter().filter(|&&at| at + length >= now).count();
            let allowed = window.check(now, limit(max, length)).is_ok();
            prop_assert_eq!(allowed, counting(&all) < max as usize);
            if allowed {
                all.push(now);
            }
            prop_assert_eq!(window.count(now, Duration::from_nanos(length)), counting(&all));
        }
    }
}
