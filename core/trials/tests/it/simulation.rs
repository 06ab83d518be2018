//! How often a comparison fails for generated models, with and without a change.

use std::fmt::Write as _;

use serde_json::{Value, json};
use toolwarden_model::Verdict;
use toolwarden_trials::{
    CallExpectation, MeasuredReply, Options, Trial, TrialSuite, build_snapshot, compare,
};

use super::{call, case, origin, reply, trial, weather};

/// The number of generated trials for one row without a change, and the maximum number of comparisons.
const NULL_TRIALS: u64 = 120_000;
const MAX_RUNS: u64 = 2_000;
const RUNS: u64 = 200;

/// Tools that are called without being offered.
const ODD: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// How often a model shows each behaviour.
#[derive(Clone, Copy, Debug)]
struct Model {
    emits: f64,
    valid: f64,
    optional: f64,
    second: f64,
    /// The probability of each of several other faults.
    odd: f64,
}

const STEADY: Model = Model {
    emits: 1.0,
    valid: 1.0,
    optional: 1.0,
    second: 0.0,
    odd: 0.0,
};

/// A small seeded random generator, so that the table is the same everywhere.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        f64::from(u32::try_from(mixed >> 32).unwrap()) / 4_294_967_296.0
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + self.next() * (high - low)
    }

    /// A model that calls its tools at random, but not more seldom than this allows. Its calls have no
    /// fault with zero tolerance.
    fn model(&mut self, least: f64) -> Model {
        Model {
            emits: self.between(least, 1.0),
            valid: 1.0,
            optional: self.between(0.5, 1.0),
            second: self.between(0.0, 1.0 - least),
            odd: 0.0,
        }
    }
}

/// Calls that are made and validated against the schema once.
struct Parts {
    suite: TrialSuite,
    weather: [[MeasuredReply; 2]; 2],
    forecast: MeasuredReply,
}

impl Parts {
    fn new(cases: usize) -> Self {
        let mut suite = weather();
        suite.cases = (0..cases)
            .map(|at| case(&format!("c{at}"), CallExpectation::Call))
            .collect();
        let calling = |tool: &str, arguments: Value| {
            let sent = json!(arguments.to_string());
            reply(vec![call(&suite, tool, json!("call_12345678"), sent)])
        };
        let weather = |location: Value, unit: bool| {
            let mut arguments = json!({"location": location});
            if unit {
                arguments["unit"] = json!("celsius");
            }
            calling("get_weather", arguments)
        };
        Self {
            weather: [
                [weather(json!(1), false), weather(json!(1), true)],
                [weather(json!("x"), false), weather(json!("x"), true)],
            ],
            forecast: calling("get_forecast", json!({"location": "x", "days": 3})),
            suite,
        }
    }

    fn reply(&self, model: Model, chance: &mut Chance) -> MeasuredReply {
        let mut does = |share: f64| chance.next() < share;
        let (emits, valid, optional) = (does(model.emits), does(model.valid), does(model.optional));
        let second = does(model.second);
        let odd: Vec<bool> = (0..ODD.len() * usize::from(model.odd > 0.0))
            .map(|_| does(model.odd))
            .collect();
        if !emits {
            return reply(Vec::new());
        }
        let mut measured = self.weather[usize::from(valid)][usize::from(optional)].clone();
        if second {
            measured.calls.extend(self.forecast.calls.clone());
        }
        for (name, _) in ODD.iter().zip(odd).filter(|(_, is)| *is) {
            let odd = call(&self.suite, name, json!("call_12345678"), json!("{}"));
            measured.calls.push(odd);
        }
        measured
    }

    /// The verdict on two models asked so many times each.
    fn verdict(
        &self,
        (old, new): (Model, Model),
        n: u32,
        options: &Options,
        chance: &mut Chance,
    ) -> Verdict {
        let mut run = |model: Model| {
            let mut trials: Vec<Trial> = Vec::new();
            for case in &self.suite.cases {
                trials.extend((0..n).map(|at| trial(&case.name, at, self.reply(model, chance))));
            }
            build_snapshot(origin("p"), &self.suite, &trials)
        };
        let (old, new) = (run(old), run(new));
        compare(&old, &new, options).unwrap().verdict
    }
}

/// Verdicts in percent: fail, pass, inconclusive.
fn percent(verdicts: &[Verdict]) -> [u64; 3] {
    let all = u64::try_from(verdicts.len()).unwrap();
    [Verdict::Drift, Verdict::Pass, Verdict::NotMeasured].map(|wanted| {
        let count = verdicts.iter().filter(|it| **it == wanted).count();
        (u64::try_from(count).unwrap() * 100 + all / 2) / all
    })
}

struct Row {
    name: &'static str,
    cases: usize,
    trials: u32,
    rates: [u64; 3],
}

fn null_rows() -> Vec<Row> {
    let (poor, good) = (
        ("nothing; calls from 50 to 100 %", 0.5),
        ("nothing; calls from 95 to 100 %", 0.95),
    );
    let sizes = [
        (poor, 1, 1),
        (poor, 1, 2),
        (poor, 1, 3),
        (poor, 1, 5),
        (poor, 1, 10),
        (poor, 1, 20),
        (poor, 1, 80),
        (poor, 5, 3),
        (poor, 5, 10),
        (good, 1, 3),
        (good, 1, 20),
    ];
    // Fewer shuffles make answers coarser, not wrong.
    let options = Options {
        resamples: 2_000,
        ..Options::default()
    };
    let rows = sizes.map(|((name, least), cases, trials)| {
        let parts = Parts::new(cases);
        let size = 2 * u64::try_from(cases).unwrap() * u64::from(trials);
        let runs = (NULL_TRIALS / size).min(MAX_RUNS);
        let verdicts = (0..runs).map(|run| {
            let mut chance = Chance(run * 7919 + u64::from(trials));
            let model = chance.model(least);
            parts.verdict((model, model), trials, &options, &mut chance)
        });
        Row {
            name,
            cases,
            trials,
            rates: percent(&verdicts.collect::<Vec<_>>()),
        }
    });
    rows.into()
}

fn power_rows() -> Vec<Row> {
    let emits = |emits: f64| Model { emits, ..STEADY };
    let valid = |valid: f64| Model { valid, ..STEADY };
    let noisy = |emits: f64| Model {
        emits,
        optional: 0.6,
        second: 0.3,
        ..STEADY
    };
    let odd = |odd: f64| Model { odd, ..STEADY };
    let rows = [
        ("the same fault at 1 %", valid(0.99), valid(0.99), 1, 20),
        ("the same fault at 5 %", valid(0.95), valid(0.95), 1, 20),
        ("the same fault at 20 %", valid(0.8), valid(0.8), 1, 20),
        ("the same fault at 20 %", valid(0.8), valid(0.8), 1, 80),
        ("the same six faults at 20 %", odd(0.2), odd(0.2), 1, 20),
        ("the same six faults at 20 %", odd(0.2), odd(0.2), 5, 3),
        ("the same six faults at 2 %", odd(0.02), odd(0.02), 5, 10),
        ("nothing; all at 100 %", STEADY, STEADY, 1, 3),
        ("nothing; all at 100 %", STEADY, STEADY, 1, 80),
        ("calls 100 → 50 %", STEADY, emits(0.5), 1, 10),
        ("calls 100 → 90 %", STEADY, emits(0.9), 1, 20),
        ("calls 100 → 90 %", STEADY, emits(0.9), 1, 80),
        ("calls 99 → 80 %", emits(0.99), emits(0.8), 1, 40),
        ("valid 100 → 50 %", STEADY, valid(0.5), 1, 10),
        ("valid 100 → 90 %", STEADY, valid(0.9), 1, 80),
        ("valid 100 → 0 %", STEADY, valid(0.0), 1, 1),
        ("calls 100 → 50 %, 5 cases", STEADY, emits(0.5), 5, 2),
        (
            "calls 100 → 0 %, another tool at 30 %",
            noisy(1.0),
            noisy(0.0),
            1,
            10,
        ),
        (
            "calls 100 → 50 %, another tool at 30 %",
            noisy(1.0),
            noisy(0.5),
            1,
            20,
        ),
    ];
    let rows = rows.map(|(name, old, new, cases, trials)| {
        let parts = Parts::new(cases);
        let verdicts = (0..RUNS).map(|run| {
            let mut chance = Chance(run * 104_729 + 13);
            parts.verdict((old, new), trials, &Options::default(), &mut chance)
        });
        Row {
            name,
            cases,
            trials,
            rates: percent(&verdicts.collect::<Vec<_>>()),
        }
    });
    rows.into()
}

fn markdown(rows: &[Row]) -> String {
    let mut text = String::from(
        "| what changed | cases | trials a case and side | fail | pass | inconclusive |\n\
         |---|---|---|---|---|---|\n",
    );
    for Row {
        name,
        cases,
        trials,
        rates: [fail, pass, open],
    } in rows
    {
        writeln!(
            text,
            "| {name} | {cases} | {trials} | {fail} % | {pass} % | {open} % |"
        )
        .unwrap();
    }
    text
}

/// The table is in `docs/probe.md`, too.
#[test]
fn red_is_rare_where_nothing_changed_and_usual_where_something_did() {
    let mut rows = null_rows();
    let power = power_rows();
    rows.extend(power);
    let table = markdown(&rows);
    println!("{table}");
    for row in &rows {
        // With one or two replies per side, a constant fault cannot be distinguished from a single one.
        if row.name.starts_with("nothing") && row.trials >= 3 {
            assert!(row.rates[0] <= 5, "{} trials: {:?}", row.trials, row.rates);
        }
    }
    for (name, trials) in [
        ("calls 100 → 50 %", 10),
        ("calls 100 → 90 %", 80),
        ("valid 100 → 50 %", 10),
        ("valid 100 → 90 %", 80),
    ] {
        let row = rows
            .iter()
            .find(|it| it.name == name && it.trials == trials);
        let [fail, ..] = row.unwrap().rates;
        assert!(fail >= 80, "{name}: {fail} %");
    }
    assert_eq!(table, include_str!("power.md"));
    let documented = include_str!("../../../../docs/probe.md");
    assert!(documented.contains(&table), "the document has this table");
}
