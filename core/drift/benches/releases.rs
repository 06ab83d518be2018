//! Comparing real releases: what one pair costs, what an unchanged tool costs beside parsing it, and
//! how the cost grows with the size of the schemas.
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark measures time and prints it"
)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::Instant;

use serde_json::Value;
use toolwarden_drift::{FacetLayout, ObservedDefinition, Options, compare};
use toolwarden_schema::{ComparisonPolicy, SearchBudget};
use toolwarden_testkit::{Release, consecutive_releases};

const ROUNDS: usize = 15;

fn main() {
    let Some(pairs) = consecutive_releases() else {
        return;
    };
    let (changed, unchanged) = split(&pairs);
    schemas(&changed);
    definitions(&changed);
    unchanged_tools(&unchanged);
    growth(&changed);
}

type ToolPair<'r> = (&'r Value, &'r Value);

/// Tools of one name in two consecutive releases: those that differ and those that do not.
fn split(pairs: &[(Release, Release)]) -> (Vec<ToolPair<'_>>, Vec<ToolPair<'_>>) {
    let mut all = Vec::new();
    for (old, new) in pairs {
        for tool in &new.tools {
            let before = old.tools.iter().find(|it| it["name"] == tool["name"]);
            all.extend(before.map(|before| (before, tool)));
        }
    }
    all.into_iter().partition(|(old, new)| old != new)
}

/// Comparing input schemas alone, each pair once after a warm-up.
fn schemas(changed: &[ToolPair<'_>]) {
    let inputs: Vec<(&Value, &Value)> = changed
        .iter()
        .filter_map(|(old, new)| Some((old.get("inputSchema")?, new.get("inputSchema")?)))
        .filter(|(old, new)| old != new)
        .collect();
    let mut times = Vec::new();
    for round in 0..2 {
        times.clear();
        for (old, new) in &inputs {
            let start = Instant::now();
            black_box(toolwarden_schema::compare(
                old,
                new,
                ComparisonPolicy::STRICT,
                SearchBudget::default(),
            ));
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
        black_box(round);
    }
    println!("| what | pairs | pairs/s | p50, µs | p99, µs | max, µs |\n|---|---|---|---|---|---|");
    row("two input schemas, strictly", &mut times);
}

/// Comparing whole definitions: both policies, every change by itself, text scans.
fn definitions(changed: &[ToolPair<'_>]) {
    let mut times = Vec::new();
    for (old, new) in changed {
        let (old, new) = (observed(old), observed(new));
        let start = Instant::now();
        black_box(compare(&old, &new, &Options::default(), &[]));
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    row("two definitions, with every change judged", &mut times);
}

fn row(what: &str, times: &mut [f64]) {
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    let total: f64 = times.iter().sum::<f64>() / 1e6;
    println!(
        "| {what} | {} | {:.0} | {:.0} | {:.0} | {:.0} |",
        times.len(),
        times.len() as f64 / total,
        at(50),
        at(99),
        at(100)
    );
}

/// Parsing a definition, and parsing it to find that nothing changed, in interleaved rounds.
fn unchanged_tools(unchanged: &[ToolPair<'_>]) {
    let texts: Vec<String> = unchanged.iter().map(|(_, new)| new.to_string()).collect();
    let (mut parse, mut check) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for text in &texts {
            black_box(serde_json::from_str::<Value>(text).expect("JSON"));
        }
        parse.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        for (text, (old, _)) in texts.iter().zip(unchanged) {
            let new = serde_json::from_str::<Value>(text).expect("JSON");
            black_box(compare(
                &observed(old),
                &observed(&new),
                &Options::default(),
                &[],
            ));
        }
        check.push(start.elapsed().as_secs_f64());
    }
    parse.sort_by(f64::total_cmp);
    check.sort_by(f64::total_cmp);
    let (parse, check) = (parse[ROUNDS / 2], check[ROUNDS / 2]);
    println!(
        "\n{} unchanged tools: parsing {:.2} µs each, parsing and comparing {:.2} µs each, {:.2} times parsing",
        texts.len(),
        parse / texts.len() as f64 * 1e6,
        check / texts.len() as f64 * 1e6,
        check / parse
    );
}

/// Medians of time per kilobyte of schema, by size.
fn growth(changed: &[ToolPair<'_>]) {
    let mut buckets: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (old, new) in changed {
        let (Some(old), Some(new)) = (old.get("inputSchema"), new.get("inputSchema")) else {
            continue;
        };
        let size = old.to_string().len() + new.to_string().len();
        let start = Instant::now();
        black_box(toolwarden_schema::compare(
            old,
            new,
            ComparisonPolicy::STRICT,
            SearchBudget::default(),
        ));
        let micros = start.elapsed().as_secs_f64() * 1e6;
        buckets
            .entry(size.max(512).ilog2())
            .or_default()
            .push(micros / (size as f64 / 1024.0));
    }
    println!("\n| both schemas, bytes | pairs | median µs per kB |\n|---|---|---|");
    for (bucket, mut times) in buckets {
        times.sort_by(f64::total_cmp);
        println!(
            "| from {} | {} | {:.0} |",
            1_u64 << bucket,
            times.len(),
            times[times.len() / 2]
        );
    }
}

fn observed(definition: &Value) -> ObservedDefinition<'_> {
    static LAYOUT: LazyLock<FacetLayout> = LazyLock::new(FacetLayout::mcp);
    ObservedDefinition {
        name: definition["name"].as_str().unwrap_or_default(),
        definition,
        layout: &LAYOUT,
    }
}
