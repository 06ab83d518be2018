//! Judges pairs of schemas from standard input, one JSON object per line: `{"old", "new", "open"?}`.
//! An argument is a time limit for each comparison in milliseconds.
//! Writes `{"verdict", "witness"?, "reason"?, "micros"}` per line. For comparisons with other
//! programs.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program for measurements"
)]

use std::io::{self, BufRead as _};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwarden_schema::{ComparisonPolicy, SchemaVerdict, SearchBudget, TimeLimit, compare};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limit = std::env::args()
        .nth(1)
        .map(|word| word.parse())
        .transpose()?;
    let limit = limit.map(|it| TimeLimit::new(now, Duration::from_millis(it)));
    let budget = SearchBudget {
        time: limit.unwrap_or(TimeLimit::NONE),
        ..SearchBudget::default()
    };
    for line in io::stdin().lock().lines() {
        let pair: Value = serde_json::from_str(&line?)?;
        let side = |key: &str| pair.get(key).cloned().unwrap_or(Value::Bool(true));
        let (old, new) = (side("old"), side("new"));
        let policy = match pair.get("open") {
            Some(Value::Bool(false)) => ComparisonPolicy::ARGUMENTS,
            _ => ComparisonPolicy::STRICT,
        };
        let start = Instant::now();
        let verdict = compare(&old, &new, policy, budget);
        let micros = start.elapsed().as_micros();
        let told = match verdict {
            SchemaVerdict::Equivalent(_) => json!({"verdict": "equivalent"}),
            SchemaVerdict::Compatible { .. } => json!({"verdict": "compatible"}),
            SchemaVerdict::Breaking(witness) => {
                json!({"verdict": "breaking", "witness": witness.value, "keyword": witness.keyword})
            }
            SchemaVerdict::Unknown(why) => {
                json!({"verdict": "unknown", "reason": why.reason.text()})
            }
        };
        let mut told = told;
        if let Value::Object(members) = &mut told {
            members.insert("micros".to_owned(), Value::from(u64::try_from(micros)?));
        }
        println!("{told}");
    }
    Ok(())
}

fn now() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
