//! How far inferred hints agree with what servers state in their annotations.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use toolwarden_canon::{FormatChoice, canonicalize, sounds_destructive};
use toolwarden_model::json::parse;
use toolwarden_testkit::corpus_definitions;

/// What a set of rules says of one tool.
#[derive(Clone, Copy)]
struct Guess {
    side_effects: bool,
    destructive: bool,
    idempotent: bool,
}

/// Ours, by words alone: the annotations are taken away first.
fn ours(name: &str, description: &str) -> Guess {
    let document = json!({"name": name, "description": description, "inputSchema": {}});
    let tool = canonicalize(document, FormatChoice::Detect)
        .unwrap()
        .tools
        .remove(0)
        .tool;
    let destructive = sounds_destructive(&tool);
    Guess {
        side_effects: tool.hints.side_effects,
        destructive,
        idempotent: tool.hints.idempotent,
    }
}

/// The original's rules: any of eight verbs anywhere inside the text. It has no notion of
/// destruction, so a side effect counts as one.
fn original(name: &str, description: &str) -> Guess {
    let text = format!("{name} {description}").to_lowercase();
    let verbs = [
        "write", "create", "delete", "update", "post", "send", "save", "remove",
    ];
    let side_effects = verbs.iter().any(|verb| text.contains(verb));
    Guess {
        side_effects,
        destructive: side_effects,
        idempotent: !side_effects,
    }
}

#[derive(Default)]
struct Tally {
    hits: f64,
    false_alarms: f64,
    misses: f64,
    right: f64,
    all: f64,
}

impl Tally {
    fn count(&mut self, guess: bool, truth: bool) {
        self.all += 1.0;
        self.right += f64::from(guess == truth);
        self.hits += f64::from(guess && truth);
        self.false_alarms += f64::from(guess && !truth);
        self.misses += f64::from(!guess && truth);
    }

    fn cells(&self) -> String {
        let percent = |part: f64, whole: f64| format!("{:.1} %", 100.0 * part / whole);
        let precision = percent(self.hits, self.hits + self.false_alarms);
        let recall = percent(self.hits, self.hits + self.misses);
        format!("{precision} | {recall} | {}", percent(self.right, self.all))
    }
}

#[test]
fn the_table_in_the_docs_is_what_the_corpus_gives() {
    let Some(samples) = corpus_definitions() else {
        return;
    };
    let mut seen = BTreeSet::new();
    let mut tallies: [(usize, Tally, Tally); 3] = Default::default();
    for sample in samples.iter().filter(|sample| sample.label == "mcp") {
        let tool = parse(&sample.text).unwrap().value;
        let text = |key: &str| {
            tool.get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let (name, description) = (text("name"), text("description"));
        let annotations = tool.get("annotations").cloned().unwrap_or_default();
        if !seen.insert((name.clone(), description.clone(), annotations.to_string())) {
            continue;
        }
        let hint = |key: &str| annotations.get(key).and_then(Value::as_bool);
        let truths = [
            hint("readOnlyHint").map(|read_only| !read_only),
            hint("destructiveHint"),
            hint("idempotentHint"),
        ];
        let pick = |guess: Guess| [guess.side_effects, guess.destructive, guess.idempotent];
        let guesses = pick(ours(&name, &description))
            .into_iter()
            .zip(pick(original(&name, &description)));
        for ((truth, (our, their)), (count, us, them)) in
            truths.into_iter().zip(guesses).zip(&mut tallies)
        {
            if let Some(truth) = truth {
                *count += 1;
                us.count(our, truth);
                them.count(their, truth);
            }
        }
    }
    let labels = [
        "side effects (`readOnlyHint: false`)",
        "destructive (`destructiveHint: true`)",
        "idempotent (`idempotentHint: true`)",
    ];
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/canon.md");
    let docs = std::fs::read_to_string(docs).unwrap_or_default();
    for (label, (count, us, them)) in labels.iter().zip(&tallies) {
        for (who, tally) in [("ours", us), ("original", them)] {
            let row = format!("| {label} | {count} | {who} | {} |", tally.cells());
            println!("{row}");
            assert!(docs.contains(&row), "docs/canon.md lacks this row:\n{row}");
        }
    }
    let [(_, us, them), ..] = &tallies;
    assert!(
        us.right > them.right,
        "ours must agree more often than the original"
    );
}
