use serde::Deserialize;
use serde_json::{Value, json};
use toolwarden_store::{CountBy, RecordCount, RecordFilter, Store};

use super::record_json::time;
use super::record_lines::name;
use super::{list, query, store};
use crate::args::{AuditStatsArgs, PlainFormat, StatsBy};
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;
use crate::output::print_text;
use crate::style;

/// As many of each are shown where not all are asked for.
const TOP: u64 = 5;

/// The time of deciding is taken from as many of the newest decisions.
const LATENCY_SAMPLE: u64 = 100_000;

const SCHEMA: &str = "toolwarden/audit/stats/v1";

pub(super) fn run(args: &AuditStatsArgs) -> Result<CommandOutcome, CliError> {
    let store = store(&args.kept)?;
    let wanted = query::subject_filter(&args.about);
    let decisions = of_kind(&wanted, "decision");
    let told = match (args.by, args.format) {
        (None, format) => {
            let stats = Stats::of(&store, &wanted, &decisions)?;
            match format {
                PlainFormat::Text if stats.records() == 0 => list::empty_reason(&store)?.to_owned(),
                PlainFormat::Text => stats.text(),
                PlainFormat::Json => format!("{:#}\n", stats.document()),
            }
        }
        (Some(by), format) => {
            let counts = store.count_records(&decisions, column(by))?;
            match format {
                PlainFormat::Text if counts.is_empty() => list::empty_reason(&store)?.to_owned(),
                PlainFormat::Text => table(word(by), CALLS, &counts),
                PlainFormat::Json => {
                    let counts = entries(word(by), &counts);
                    format!(
                        "{:#}\n",
                        json!({"schema": SCHEMA, "by": word(by), "counts": counts})
                    )
                }
            }
        }
    };
    print_text(&told)?;
    Ok(CommandOutcome::Pass)
}

struct Stats {
    /// The times of the first record and the last.
    span: Option<(i64, i64)>,
    kinds: Vec<RecordCount>,
    tools: Vec<RecordCount>,
    principals: Vec<RecordCount>,
    /// Why calls were denied.
    denials: Vec<RecordCount>,
    escalations: Vec<RecordCount>,
    latency: Option<DecisionLatency>,
}

/// How long deciding took, in milliseconds.
struct DecisionLatency {
    p50: f64,
    p95: f64,
    decisions: usize,
}

impl Stats {
    fn of(store: &Store, span: &RecordFilter, decisions: &RecordFilter) -> Result<Self, CliError> {
        let top = RecordFilter {
            limit: Some(TOP),
            ..decisions.clone()
        };
        let denials = RecordFilter {
            denied: true,
            ..top.clone()
        };
        let escalations = of_kind(span, "escalation");
        Ok(Self {
            span: times(store, span)?,
            kinds: store.count_records(span, CountBy::Kind)?,
            tools: store.count_records(&top, CountBy::Tool)?,
            principals: store.count_records(&top, CountBy::Principal)?,
            denials: store.count_records(&denials, CountBy::Code)?,
            escalations: store.count_records(&escalations, CountBy::Code)?,
            latency: latency(store, decisions)?,
        })
    }

    fn records(&self) -> u64 {
        self.kinds.iter().map(|it| it.records).sum()
    }

    fn decisions(&self) -> (u64, u64) {
        let allowed = self.kinds.iter().map(|it| it.allowed).sum();
        let denied = self.kinds.iter().map(|it| it.denied).sum();
        (allowed, denied)
    }

    fn text(&self) -> String {
        let (allowed, denied) = self.decisions();
        let (good, error, dim) = (style::SUCCESS, style::ERROR, style::DIM);
        let kinds = self.kinds.iter();
        let kinds = kinds.map(|it| format!("{} {}", it.records, name(it.key.as_deref())));
        let kinds: Vec<String> = kinds.collect();
        let mut out = format!("{} records: {}\n", self.records(), kinds.join(", "));
        if let Some((first, last)) = self.span {
            let (first, last) = (time(first), time(last));
            out.push_str(&format!("{dim}{first} to {last}{dim:#}\n"));
        }
        out.push_str(&format!(
            "calls: {good}{allowed} allowed{good:#}, {error}{denied} denied{error:#}{}\n",
            share(denied, allowed + denied)
        ));
        if let Some(latency) = &self.latency {
            out.push_str(&format!(
                "deciding took: p50 {:.3} ms, p95 {:.3} ms {dim}({} decisions){dim:#}\n",
                latency.p50, latency.p95, latency.decisions
            ));
        }
        let tables = [
            ("tool", CALLS, &self.tools),
            ("principal", CALLS, &self.principals),
            ("denied because", RECORDS, &self.denials),
            ("escalation", RECORDS, &self.escalations),
        ];
        for (title, columns, counts) in tables {
            if !counts.is_empty() {
                out.push('\n');
                out.push_str(&table(title, columns, counts));
            }
        }
        out
    }

    fn document(&self) -> Value {
        let (allowed, denied) = self.decisions();
        let latency = self.latency.as_ref();
        json!({
            "schema": SCHEMA,
            "first": self.span.map(|(first, _)| time(first)),
            "last": self.span.map(|(_, last)| time(last)),
            "records": self.records(),
            "allowed": allowed,
            "denied": denied,
            "latency_ms": latency.map(|it| json!({"p50": it.p50, "p95": it.p95, "decisions": it.decisions})),
            "kinds": entries("kind", &self.kinds),
            "tools": entries("tool", &self.tools),
            "principals": entries("principal", &self.principals),
            "denials": entries("code", &self.denials),
            "escalations": entries("code", &self.escalations),
        })
    }
}

fn of_kind(span: &RecordFilter, kind: &str) -> RecordFilter {
    RecordFilter {
        kind: Some(kind.to_owned()),
        ..span.clone()
    }
}

fn times(store: &Store, span: &RecordFilter) -> Result<Option<(i64, i64)>, CliError> {
    let end = |newest_first| {
        let mut at = None;
        let filter = RecordFilter {
            limit: Some(1),
            newest_first,
            ..span.clone()
        };
        query::each_record(store, &filter, |row| {
            at = Some(row.at_ms);
            Ok(())
        })?;
        Ok::<_, CliError>(at)
    };
    Ok(end(false)?.zip(end(true)?))
}

fn latency(store: &Store, decisions: &RecordFilter) -> Result<Option<DecisionLatency>, CliError> {
    #[derive(Deserialize)]
    struct Body {
        latency_ms: f64,
    }
    let newest = RecordFilter {
        limit: Some(LATENCY_SAMPLE),
        newest_first: true,
        ..decisions.clone()
    };
    let mut taken: Vec<f64> = Vec::new();
    query::each_record(store, &newest, |row| {
        let body: Option<Body> = serde_json::from_str(row.body).ok();
        taken.extend(body.map(|it| it.latency_ms));
        Ok(())
    })?;
    taken.sort_by(f64::total_cmp);
    // The smallest that is at least as long as so many of a hundred.
    let percentile = |percent: usize| {
        let rank = (taken.len() * percent).div_ceil(100);
        taken.get(rank.saturating_sub(1)).copied()
    };
    Ok(percentile(50)
        .zip(percentile(95))
        .map(|(p50, p95)| DecisionLatency {
            p50,
            p95,
            decisions: taken.len(),
        }))
}

/// A column of a table: its title and its count for each row.
type Column = (&'static str, fn(&RecordCount) -> u64);

const CALLS: &[Column] = &[
    ("calls", |it| it.records),
    ("allowed", |it| it.allowed),
    ("denied", |it| it.denied),
];
const RECORDS: &[Column] = &[("times", |it| it.records)];

fn table(title: &str, columns: &[Column], counts: &[RecordCount]) -> String {
    let keys: Vec<String> = counts.iter().map(|it| name(it.key.as_deref())).collect();
    let widest = keys.iter().map(|key| key.chars().count());
    let width = widest.max().unwrap_or_default().max(title.chars().count());
    let dim = style::DIM;
    let headings: String = columns.iter().map(|(it, _)| format!(" {it:>8}")).collect();
    let mut out = format!("{dim}{title:<width$}{headings}{dim:#}\n");
    for (key, count) in keys.iter().zip(counts) {
        let cells = columns.iter().map(|(_, of)| format!(" {:>8}", of(count)));
        out.push_str(&format!("{key:<width$}{}\n", cells.collect::<String>()));
    }
    out
}

fn entries(key: &str, counts: &[RecordCount]) -> Vec<Value> {
    let counts = counts.iter();
    counts
        .map(|it| json!({key: it.key, "records": it.records, "allowed": it.allowed, "denied": it.denied}))
        .collect()
}

/// A part of a whole in percent, rounded to tenths.
fn share(part: u64, whole: u64) -> String {
    let tenths = (part.saturating_mul(1000) + whole / 2).checked_div(whole);
    tenths.map_or_else(String::new, |it| format!(" ({}.{} %)", it / 10, it % 10))
}

const fn column(by: StatsBy) -> CountBy {
    match by {
        StatsBy::Tool => CountBy::Tool,
        StatsBy::Principal => CountBy::Principal,
        StatsBy::Code => CountBy::Code,
        StatsBy::Hour => CountBy::Hour,
    }
}

const fn word(by: StatsBy) -> &'static str {
    match by {
        StatsBy::Tool => "tool",
        StatsBy::Principal => "principal",
        StatsBy::Code => "code",
        StatsBy::Hour => "hour",
    }
}
