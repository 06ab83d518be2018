//! Reading, canonicalizing and emitting real definitions, beside `serde_json` parsing the same bytes
//! in the same run. Figures are medians of interleaved rounds, so noise hits all rows alike.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a benchmark measures time and prints it"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::Value;
use toolwarden_canon::{
    CanonicalizedTool, EditMismatch, EmitTarget, EquivalenceClaim, FormatChoice, OriginalSchemas,
    SchemaSlot, TextItem, canonicalize_item, emit,
};
use toolwarden_model::json::Pointer;
use toolwarden_model::{Fingerprint, Tool};
use toolwarden_schema::{SchemaEquivalence, SearchBudget, ValueDomain, check_equivalence};
use toolwarden_testkit::corpus_definitions;

const ROUNDS: usize = 15;

type Stage = (&'static str, fn(&[String]));

/// The stages, each doing everything the one before it does.
const STAGES: &[Stage] = &[
    ("serde_json parse only", |texts| {
        for text in texts {
            black_box(serde_json::from_str::<Value>(text).expect("JSON"));
        }
    }),
    ("detect + canonicalize", |texts| {
        for text in texts {
            black_box(read(text));
        }
    }),
    ("… + canonical JSON + hash", |texts| {
        let mut buffer = String::new();
        for text in texts {
            for found in read(text) {
                black_box(fingerprint(&found, &mut buffer));
            }
        }
    }),
    ("… + emit openai-chat", |texts| {
        let mut buffer = String::new();
        for text in texts {
            for found in read(text) {
                black_box(fingerprint(&found, &mut buffer));
                black_box(emit(found.tool, EmitTarget::OpenaiChat).ok());
            }
        }
    }),
    ("… + write the result", |texts| {
        let mut buffer = String::new();
        for text in texts {
            for found in read(text) {
                black_box(fingerprint(&found, &mut buffer));
                if let Ok(emission) = emit(found.tool, EmitTarget::OpenaiChat) {
                    black_box(emission.value.to_string());
                }
            }
        }
    }),
    ("… with what was written checked", |texts| {
        let mut buffer = String::new();
        for text in texts {
            for found in read(text) {
                black_box(fingerprint(&found, &mut buffer));
                black_box(checked(found.tool, EmitTarget::OpenaiChat));
            }
        }
    }),
];

/// Emits and writes a tool, and has the schema engine compare what went in with what came out, as
/// `toolwarden canon emit` does.
fn checked(tool: Tool, target: EmitTarget) -> Option<String> {
    let originals = (!tool.format.is_hosted()).then(|| OriginalSchemas::of(&tool));
    let emission = emit(tool, target).ok()?;
    if let Some(originals) = originals {
        let format = target.format();
        let checked = originals.check(&emission.edits, &emission.value, format, |claim| {
            black_box(meaning(&claim));
            Ok::<(), EditMismatch>(())
        });
        checked.expect("an account that fits");
    }
    Some(emission.value.to_string())
}

fn meaning(claim: &EquivalenceClaim) -> SchemaEquivalence {
    let budget = SearchBudget::default();
    if let Some((before, after)) = &claim.inner
        && check_equivalence(before, after, ValueDomain::Values, budget) == SchemaEquivalence::Same
    {
        return SchemaEquivalence::Same;
    }
    let domain = match claim.slot {
        SchemaSlot::Inputs => ValueDomain::Objects,
        SchemaSlot::Outputs => ValueDomain::Values,
    };
    check_equivalence(&claim.before, &claim.after, domain, budget)
}

fn read(text: &str) -> Vec<CanonicalizedTool> {
    let item = TextItem {
        pointer: Pointer::root(),
        text,
    };
    canonicalize_item(&item, FormatChoice::Detect)
        .expect("JSON")
        .tools
}

fn fingerprint(found: &CanonicalizedTool, buffer: &mut String) -> Fingerprint {
    buffer.clear();
    found.tool.write_canonical(buffer);
    Fingerprint::of_canonical(buffer)
}

fn main() {
    let Some(samples) = corpus_definitions() else {
        return;
    };
    let texts: Vec<String> = samples.into_iter().map(|sample| sample.text).collect();
    throughput(&texts);
    strictness(&texts);
    scaling(&texts);
}

/// What the check costs where nearly every schema is rewritten.
fn strictness(texts: &[String]) {
    let tools = || texts.iter().flat_map(|text| read(text)).map(|it| it.tool);
    let plain = || {
        for tool in tools() {
            black_box(
                emit(tool, EmitTarget::OpenaiStrict)
                    .ok()
                    .map(|it| it.value.to_string()),
            );
        }
    };
    let with_check = || {
        for tool in tools() {
            black_box(checked(tool, EmitTarget::OpenaiStrict));
        }
    };
    println!("\n| openai-strict | µs each |\n|---|---|");
    let each = |seconds: f64| 1e6 * seconds / texts.len() as f64;
    let plain = median((0..3).map(|_| timed(plain)).collect());
    println!("| canonicalize + emit + write | {:.2} |", each(plain));
    let with_check = median((0..3).map(|_| timed(with_check)).collect());
    println!(
        "| … with what was written checked | {:.2} |",
        each(with_check)
    );
}

fn throughput(texts: &[String]) {
    let bytes: usize = texts.iter().map(String::len).sum();
    println!(
        "{} definitions, {:.1} MB, one core, median of {ROUNDS} rounds\n",
        texts.len(),
        megabytes(bytes)
    );
    println!("| stage | definitions/s | MB/s | of parse-only |\n|---|---|---|---|");
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); STAGES.len()];
    for _ in 0..ROUNDS {
        for ((_, stage), times) in STAGES.iter().zip(&mut times) {
            times.push(timed(|| stage(texts)));
        }
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    for ((name, _), seconds) in STAGES.iter().zip(&medians) {
        let (rate, speed) = (texts.len() as f64 / seconds, megabytes(bytes) / seconds);
        println!(
            "| {name} | {rate:.0} | {speed:.0} | {:.0} % |",
            100.0 * medians[0] / seconds
        );
    }
}

/// Time per definition from one to a hundred thousand definitions: the same if the work is linear.
fn scaling(texts: &[String]) {
    println!("\n| definitions | canonicalize + hash + emit, µs each |\n|---|---|");
    // A fixed stride through the corpus, so that every size sees the same mix.
    let mixed: Vec<String> = (0..100_000)
        .map(|index| texts[(index * 7919) % texts.len()].clone())
        .collect();
    for count in [1_000, 10_000, 100_000] {
        let times = (0..5)
            .map(|_| timed(|| STAGES[3].1(&mixed[..count])))
            .collect();
        println!("| {count} | {:.2} |", 1e6 * median(times) / count as f64);
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}
