use proptest::prelude::*;
use serde_json::json;
use toolwarden_model::Verdict;
use toolwarden_trials::{
    CallExpectation, Confidence, Rate, difference, fisher_drop, pass_hat, wilson,
};

use super::{call, calling, case, compared, reply, snapshot_of, weather};

fn rate() -> impl Strategy<Value = Rate> {
    (1_u64..200).prop_flat_map(|of| (0..=of).prop_map(move |hits| Rate::new(hits, of)))
}

proptest! {
    #[test]
    fn intervals_hold_what_was_seen(old in rate(), new in rate()) {
        let wide = wilson(old, Confidence::P99);
        let narrow = wilson(old, Confidence::P90);
        let share = old.share().unwrap();
        prop_assert!(0.0 <= wide.lower && wide.lower <= narrow.lower && narrow.lower <= share);
        prop_assert!(share <= narrow.upper && narrow.upper <= wide.upper && wide.upper <= 1.0);
        let (estimate, interval) = difference(&[(old, new)], Confidence::P95).unwrap();
        prop_assert!((-1.0..=estimate).contains(&interval.lower));
        prop_assert!((estimate..=1.0).contains(&interval.upper));
        let (back, mirrored) = difference(&[(new, old)], Confidence::P95).unwrap();
        prop_assert!((estimate + back).abs() < 1e-12);
        prop_assert!((interval.lower + mirrored.upper).abs() < 1e-12);
    }

    #[test]
    fn fewer_hits_are_less_likely(old in rate(), new in rate()) {
        let p = fisher_drop(old, new);
        prop_assert!(p > 0.0 && p <= 1.0);
        if new.hits > 0 {
            let fewer = fisher_drop(old, Rate::new(new.hits - 1, new.of));
            prop_assert!(fewer <= p + 1e-12);
        }
    }

    /// A model compared with itself passes, whatever it does, unless it does nothing.
    #[test]
    fn a_snapshot_passes_against_itself(kinds in prop::collection::vec(0_usize..6, 1..12)) {
        let mut suite = weather();
        suite.cases = vec![case("ask", CallExpectation::Call)];
        let sent = |name: &str, sent| reply(vec![call(&suite, name, json!("call_1"), sent)]);
        let replies = kinds.iter().map(|kind| match kind {
            0 => calling(&suite, json!({"location": "x"})),
            1 => calling(&suite, json!({"location": 1, "further": [1, {"a": null}]})),
            2 => reply(Vec::new()),
            3 => sent("get_weather", json!({"location": "x"})),
            4 => sent("get_forecast", json!("{")),
            _ => sent("rm_rf", json!("{}")),
        });
        let snapshot = snapshot_of(&suite, "p", replies.collect());
        let verdict = match kinds.iter().all(|kind| *kind == 2) {
            true => Verdict::NotMeasured,
            false => Verdict::Pass,
        };
        prop_assert_eq!(compared(&snapshot, &snapshot).verdict, verdict);
    }
}

#[test]
fn passing_in_a_row_is_drawing_without_putting_back() {
    for (hits, of, k, expected) in [
        (3, 3, 3, Some(1.0)),
        (2, 3, 1, Some(2.0 / 3.0)),
        (2, 3, 2, Some(1.0 / 3.0)),
        (2, 3, 3, Some(0.0)),
        (0, 3, 1, Some(0.0)),
        (3, 3, 4, None),
        (0, 0, 1, None),
        (3, 3, 0, None),
    ] {
        assert_eq!(
            pass_hat(Rate::new(hits, of), k),
            expected,
            "{hits} of {of}, {k}"
        );
    }
}
