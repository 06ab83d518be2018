//! How often a comparison reports drift in generated results, with and without a change.
//!
//! For comparison, the rule that shapes replace: the types of the top-level members over all samples,
//! compared for equality.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use serde_json::{Value, json};
use toolwarden_drift::shape::{Significance, compare};

use super::shape_of;

/// Results of the baseline and of the window.
const SIZES: [(usize, usize); 5] = [(1, 1), (5, 5), (20, 20), (100, 50), (500, 200)];
const NULL_TRIALS: u64 = 120;
const TRIALS: u64 = 30;

/// One line of the table: how often each rule called drift, in percent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SimulationRow {
    pub(crate) baseline: usize,
    pub(crate) window: usize,
    /// How often the shape was inconclusive where nothing changed, in percent.
    pub(crate) unmeasured: u64,
    pub(crate) unchanged: Rates,
    pub(crate) changed: Vec<(SimulatedEdit, Rates)>,
}

/// How often the old rule and the shape called drift, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rates {
    pub(crate) old: u64,
    pub(crate) shape: u64,
}

/// What is changed in the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimulatedEdit {
    NestedType,
    NestedRename,
    EnumValue,
    Format,
    DateLayout,
    Rarer,
    Optional,
    TopKey,
    Replaced,
}

impl SimulatedEdit {
    const ALL: [Self; 9] = [
        Self::NestedType,
        Self::NestedRename,
        Self::EnumValue,
        Self::Format,
        Self::DateLayout,
        Self::Rarer,
        Self::Optional,
        Self::TopKey,
        Self::Replaced,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::NestedType => "nested type change",
            Self::NestedRename => "nested key renamed",
            Self::EnumValue => "new enum value",
            Self::Format => "format changed",
            Self::DateLayout => "date written otherwise",
            Self::Rarer => "optional became rare",
            Self::Optional => "required became optional",
            Self::TopKey => "top key added",
            Self::Replaced => "every key replaced",
        }
    }
}

/// The table for documents, all of it reproducible.
pub(crate) fn table() -> Vec<SimulationRow> {
    let rows = SIZES.iter().map(|(baseline, window)| {
        let rates = |edit: Option<SimulatedEdit>, trials: u64| {
            let mut calls = Rates { old: 0, shape: 0 };
            let mut unmeasured = 0;
            for trial in 0..trials {
                let mut random = Random(
                    trial * 31
                        + *baseline as u64 * 7919
                        + edit.map_or(0, |edit| edit as u64 + 1) * 104_729,
                );
                let before: Vec<Value> =
                    (0..*baseline).map(|_| result(&mut random, None)).collect();
                let now: Vec<Value> = (0..*window).map(|_| result(&mut random, edit)).collect();
                calls.old += u64::from(top_level_types(&before) != top_level_types(&now));
                let drift = compare(
                    &shape_of(&before),
                    &shape_of(&now),
                    &Significance::default(),
                );
                calls.shape += u64::from(!drift.is_empty());
                unmeasured += u64::from(drift.too_few().is_some());
            }
            let percent = |calls: u64| (calls * 100 + trials / 2) / trials;
            let rates = Rates {
                old: percent(calls.old),
                shape: percent(calls.shape),
            };
            (rates, percent(unmeasured))
        };
        let (unchanged, unmeasured) = rates(None, NULL_TRIALS);
        SimulationRow {
            baseline: *baseline,
            window: *window,
            unmeasured,
            unchanged,
            changed: SimulatedEdit::ALL
                .into_iter()
                .map(|edit| (edit, rates(Some(edit), TRIALS).0))
                .collect(),
        }
    });
    rows.collect()
}

/// The table as Markdown.
pub(crate) fn markdown(rows: &[SimulationRow]) -> String {
    let mut text = String::from("| baseline / window | not measured | nothing changed");
    for edit in SimulatedEdit::ALL {
        write!(text, " | {}", edit.as_str()).expect("strings take text");
    }
    text.push_str(" |\n|---|---|---");
    text.push_str(&"|---".repeat(SimulatedEdit::ALL.len()));
    text.push_str("|\n");
    for row in rows {
        writeln!(text, "{row}").expect("strings take text");
    }
    text
}

impl fmt::Display for SimulationRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "| {} / {} | {} % | {}",
            self.baseline, self.window, self.unmeasured, self.unchanged
        )?;
        for (_, rates) in &self.changed {
            write!(f, " | {rates}")?;
        }
        f.write_str(" |")
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} % / {} %", self.old, self.shape)
    }
}

/// A result of the made-up tool, with an edit or as it was.
fn result(random: &mut Random, edit: Option<SimulatedEdit>) -> Value {
    let is = |it: SimulatedEdit| edit == Some(it);
    if is(SimulatedEdit::Replaced) {
        return json!({"error": random.word()});
    }
    let statuses = ["open", "closed", "merged", "draft"];
    let status = if is(SimulatedEdit::EnumValue) && random.chance(0.35) {
        "archived"
    } else {
        random.pick(&statuses)
    };
    let (year, day) = (2020 + random.below(6), 1 + random.below(28));
    let created = if is(SimulatedEdit::Format) {
        format!("{day:02}.03.{year}")
    } else if is(SimulatedEdit::DateLayout) {
        format!("{year}-03-{day:02} {:02}:00:00", random.below(24))
    } else {
        format!("{year}-03-{day:02}T{:02}:00:00Z", random.below(24))
    };
    let mut owner = json!({"login": random.word(), "id": random.below(90_000)});
    owner["score"] = if is(SimulatedEdit::NestedType) {
        json!(random.below(100).to_string())
    } else {
        json!(random.unit() * 100.0)
    };
    owner[if is(SimulatedEdit::NestedRename) {
        "mail"
    } else {
        "contact"
    }] = json!(random.word());
    let items: Vec<Value> = (0..random.below(6))
        .map(|_| {
            let mut item = json!({"sku": random.word(), "quantity": 1 + random.below(9), "price": random.unit() * 50.0});
            if random.chance(0.5) {
                item["note"] = json!(random.word());
            }
            item
        })
        .collect();
    let mut result = json!({"id": random.below(1_000_000), "status": status, "created_at": created, "owner": owner, "items": items});
    // Not every order has an assignee or a parent, and what it costs may be a number or a text.
    result["assignee"] = if random.chance(0.5) {
        json!({"login": random.word()})
    } else {
        Value::Null
    };
    result["parent"] = if random.chance(0.7) {
        json!(random.below(1_000_000))
    } else {
        Value::Null
    };
    result["total"] = if random.chance(0.5) {
        json!(random.unit() * 500.0)
    } else {
        json!(format!("{} EUR", random.below(500)))
    };
    for (name, chance) in [
        (
            "discount",
            if is(SimulatedEdit::Rarer) { 0.05 } else { 0.6 },
        ),
        (
            "title",
            if is(SimulatedEdit::Optional) {
                0.45
            } else {
                1.0
            },
        ),
        ("coupon", 0.3),
        ("warning", 0.05),
        ("debug", 0.02),
        ("labels", if is(SimulatedEdit::TopKey) { 1.0 } else { 0.0 }),
    ] {
        if random.chance(chance) {
            result[name] = json!(random.word());
        }
    }
    result
}

/// The rule that shapes replace: per top-level member the sorted set of Python's type names.
fn top_level_types(results: &[Value]) -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut types: BTreeMap<String, BTreeSet<&'static str>> = BTreeMap::new();
    for (name, value) in results.iter().filter_map(Value::as_object).flatten() {
        types.entry(name.clone()).or_default().insert(match value {
            Value::Null => "NoneType",
            Value::Bool(_) => "bool",
            Value::Number(number) if number.is_f64() => "float",
            Value::Number(_) => "int",
            Value::String(_) => "str",
            Value::Array(_) => "list",
            Value::Object(_) => "dict",
        });
    }
    types
}

/// SplitMix64, so that the table is the same everywhere.
struct Random(u64);

impl Random {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn unit(&mut self) -> f64 {
        let high = u32::try_from(self.next() >> 32).unwrap_or(0);
        f64::from(high) / f64::from(u32::MAX)
    }

    fn chance(&mut self, chance: f64) -> bool {
        chance > 0.0 && self.unit() <= chance
    }

    const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        let at = usize::try_from(self.below(of.len() as u64)).unwrap_or(0);
        of.get(at).copied().unwrap_or_default()
    }

    fn word(&mut self) -> String {
        let length = 3 + self.below(12);
        (0..length)
            .map(|_| char::from(b'a' + u8::try_from(self.below(26)).unwrap_or(0)))
            .collect()
    }
}

/// The minimum the table must show; the shape never reports drift where nothing changed.
#[test]
fn drift_is_called_where_there_is_some_and_only_there() {
    let rows = table();
    let document = include_str!("../../../../../docs/watch.md");
    assert!(
        document.contains(&markdown(&rows)),
        "docs/watch.md has another table:\n{}",
        markdown(&rows)
    );
    let least = [
        [0, 0, 0, 0, 0, 0, 0, 0, 100],
        [0, 0, 0, 0, 0, 0, 0, 0, 100],
        [100, 100, 0, 100, 100, 3, 3, 100, 100],
        [100, 100, 100, 100, 100, 87, 100, 100, 100],
        [100; 9],
    ];
    assert_eq!(rows.len(), least.len());
    for (row, least) in rows.iter().zip(least) {
        assert_eq!(row.unchanged.shape, 0, "{row}");
        for ((edit, rates), least) in row.changed.iter().zip(least) {
            assert!(rates.shape >= least, "{}: {row}", edit.as_str());
        }
    }
    let unmeasured: Vec<u64> = rows.iter().map(|row| row.unmeasured).collect();
    assert_eq!(unmeasured, [100, 100, 0, 0, 0]);
    // The rule that shapes replace gives false alarms.
    assert!(rows.first().is_some_and(|row| row.unchanged.old >= 50));
}

/// A hundred comparisons with a growing window find nothing where nothing changed.
#[test]
fn looking_often_finds_nothing() {
    let mut random = Random(5);
    let baseline = shape_of(
        &(0..300)
            .map(|_| result(&mut random, None))
            .collect::<Vec<_>>(),
    );
    let mut window = shape_of([]);
    for look in 1..=100 {
        let more: Vec<Value> = (0..5).map(|_| result(&mut random, None)).collect();
        window.merge(&shape_of(&more));
        let drift = compare(&baseline, &window, &Significance { alpha: 0.001, look });
        assert!(drift.is_empty(), "look {look}: {:?}", drift.changes);
    }
}

/// Results whose arrays are all alike: taken item by item, ten unusual results would be hundreds of
/// observations, and drift.
#[test]
fn items_of_one_result_are_not_independent() {
    let mut calls = 0;
    for seed in 0..200 {
        let mut random = Random(seed * 977);
        let mut results = |count: usize| {
            let results: Vec<Value> = (0..count)
                .map(|_| {
                    let (kind, noted) = (random.pick(&["a", "b", "c"]), random.chance(0.4));
                    let item = if noted {
                        json!({"kind": kind, "note": 1.5})
                    } else {
                        json!({"kind": kind})
                    };
                    json!({"items": vec![item; 50]})
                })
                .collect();
            shape_of(&results)
        };
        let drift = compare(&results(25), &results(25), &Significance::default());
        calls += u32::from(!drift.is_empty());
    }
    assert_eq!(calls, 0);
}

#[test]
fn a_null_or_a_gap_once_in_a_while_is_no_drift() {
    let mut random = Random(11);
    let mut draw = |count: usize, null: f64, gap: f64| -> Vec<Value> {
        let mut results = Vec::new();
        for _ in 0..count {
            let mut result = json!({"id": 7, "note": "x", "price": 12});
            if random.chance(null) {
                result["note"] = Value::Null;
            }
            if random.chance(gap) {
                result.as_object_mut().unwrap().remove("price");
            }
            results.push(result);
        }
        results
    };
    let confidence = Significance::default();
    let mut alarms = 0;
    for _ in 0..120 {
        let (before, now) = (draw(100, 0.02, 0.01), draw(50, 0.02, 0.01));
        let drift = compare(&shape_of(&before), &shape_of(&now), &confidence);
        alarms += usize::from(!drift.is_empty());
    }
    assert!(alarms <= 2, "{alarms} of 120 unchanged tools alarm");
    let (before, now) = (draw(100, 0.0, 0.0), draw(1, 1.0, 1.0));
    let drift = compare(&shape_of(&before), &shape_of(&now), &confidence);
    let told: Vec<String> = drift.changes.iter().map(|it| it.pointer.clone()).collect();
    assert_eq!(
        told,
        ["/note", "/price"],
        "it never was so in a hundred results, and now it is"
    );
}
