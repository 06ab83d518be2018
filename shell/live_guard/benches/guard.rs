//! What one decision costs: known, group, state, permission, rate, a schema of five fields, and the
//! record handed to the log. Arguments are parsed already.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark prints, and stops where something is wrong"
)]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use toolwarden_guard::{
    ConditionInputs, Durability, Grants, Guard, INITIAL_STATE, Limit, Permission,
    PermissionPattern, Policy, PrincipalPolicy, Request, RequestedGroups, StateSet, ToolPolicy,
};
use toolwarden_live_guard::audit::{AuditOptions, AuditWriter};
use toolwarden_live_guard::{AuditLog, Call, Clock, LiveGuard};
use toolwarden_model::{GroupName, StateName};

/// Decisions timed in one go; as many fit into the queue of the log.
const BURST: usize = 10_000;
const ROUNDS: usize = 31;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let store = |name: &str| folder.path().join(name);
    let one = Bench::new(1, 1, &store("one.db"));
    let full = one.decide(1, 1);

    println!("| decision | ns |\n|---|---:|");
    println!("| all gates and the record queued, 1 tool | {full:.0} |");
    for hot in [10, 100, 500] {
        let bench = Bench::new(hot, 10, &store(&format!("hot-{hot}.db")));
        println!("| … {hot} tools by turns | {:.0} |", bench.decide(hot, 10));
    }
    println!(
        "| … latest records in memory only | {:.0} |",
        one.in_memory()
    );
    println!("| … with the arguments parsed too | {:.0} |", one.parsed());
    println!("| refused: unknown tool | {:.0} |", one.refused("nothing"));
    println!(
        "| admit alone (group, state, permission) | {:.0} |",
        one.admit()
    );
    let (single, double) = (one.threads(1), one.threads(2));
    println!("\n| threads | decisions/s |\n|---:|---:|");
    println!("| 1 | {single:.0} |\n| 2 | {double:.0} |");

    println!(
        "\n| tools | principals | ns, 10 tools in use | ns, 100 tools and principals | ns, all | to compile |"
    );
    println!("|---:|---:|---:|---:|---:|---:|");
    let sizes = [
        (10, 1),
        (1_000, 1),
        (100_000, 1),
        (10, 1_000),
        (10, 1_000_000),
        (100_000, 1_000_000),
    ];
    let benches: Vec<(Bench, f64)> = sizes
        .into_iter()
        .map(|(tools, principals)| {
            let began = Instant::now();
            let name = format!("{tools}-{principals}.db");
            let bench = Bench::new(tools, principals, &store(&name));
            (bench, began.elapsed().as_secs_f64())
        })
        .collect();
    let few = by_turns(&benches, 10, 1);
    let some = by_turns(&benches, 100, 100);
    let all = by_turns(&benches, usize::MAX, usize::MAX);
    for (at, (tools, principals)) in sizes.into_iter().enumerate() {
        let (few, some, all, compiled) = (few[at], some[at], all[at], benches[at].1);
        println!("| {tools} | {principals} | {few:.0} | {some:.0} | {all:.0} | {compiled:.1} s |");
    }

    if let Some(command) = std::env::var_os("GUARD_PIPELINE") {
        beside_python(full, Path::new(&command));
    }
}

/// The same pipeline in Python, run now.
fn beside_python(ours: f64, script: &Path) {
    let python = std::env::var_os("PYTHON").unwrap_or("python3".into());
    let output = std::process::Command::new(python)
        .arg(script)
        .arg("--json")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    println!("\n| pipeline | ns | of ours |\n|---|---:|---:|");
    println!("| ours | {ours:.0} | 1 |");
    for variant in told["variants"].as_array().unwrap() {
        let theirs = variant["ns_per_call"].as_f64().unwrap();
        let name = variant["name"].as_str().unwrap();
        println!("| Python, {name} | {theirs:.0} | {:.0} |", theirs / ours);
    }
    println!(
        "\nPython {}, pydantic {}, jsonschema {}.",
        told["python"].as_str().unwrap(),
        told["pydantic"].as_str().unwrap(),
        told["jsonschema"].as_str().unwrap()
    );
}

struct Bench {
    guard: Guard,
    live: LiveGuard,
    writer: Arc<AuditWriter<toolwarden_live_guard::LogEntry>>,
    tools: Vec<String>,
    principals: Vec<String>,
    arguments: Arc<Value>,
    groups: RequestedGroups,
}

impl Bench {
    fn new(tools: usize, principals: usize, store: &Path) -> Self {
        let tools: Vec<String> = (0..tools).map(|at| format!("tool-{at}")).collect();
        let principals: Vec<String> = (0..principals).map(|at| format!("agent-{at}")).collect();
        let (guard, faults) = Guard::new(policy(&tools, &principals));
        assert_eq!(faults, []);
        let options = AuditOptions::new(Durability::Async);
        let writer = Arc::new(AuditWriter::open(store, options).unwrap());
        let live = LiveGuard::new(
            guard.clone(),
            AuditLog::Stored(Arc::clone(&writer)),
            Clock::default(),
        );
        Self {
            guard,
            live: live.unwrap(),
            writer,
            tools,
            principals,
            arguments: Arc::new(json!({
                "query": "quarterly revenue", "limit": 20, "mode": "fast", "tags": ["a", "b"], "exact": true,
            })),
            groups: ["billing"].into_iter().collect(),
        }
    }

    fn call<'b>(&'b self, tool: &'b str, principal: &'b str) -> Call<'b> {
        Call {
            tool,
            principal,
            groups: Some(self.groups.clone()),
            arguments: Arc::clone(&self.arguments),
            ..Call::default()
        }
    }

    /// The median time of a decision, tools and principals taken by turns.
    fn decide(&self, tools: usize, principals: usize) -> f64 {
        let mut round = 0;
        median(|| {
            round += 1;
            self.round(round, tools, principals)
        })
    }

    /// The time of a decision in one round, over at most so many tools and principals.
    fn round(&self, round: usize, tools: usize, principals: usize) -> f64 {
        let tools = tools.min(self.tools.len());
        let principals = principals.min(self.principals.len());
        let mut at = round.wrapping_mul(BURST);
        let time = timed(|| {
            at += 1;
            // A step that visits everything, and not in the order of memory.
            let next = at.wrapping_mul(7_919);
            let call = self.call(
                &self.tools[next % tools],
                &self.principals[next % principals],
            );
            self.live.intercept(&call).allowed
        });
        // Nobody else is measured while this writer works.
        self.writer.flush().unwrap();
        time
    }

    fn refused(&self, tool: &str) -> f64 {
        median(|| {
            self.writer.flush().unwrap();
            timed(|| !self.live.intercept(&self.call(tool, "agent-0")).allowed)
        })
    }

    fn in_memory(&self) -> f64 {
        let live =
            LiveGuard::new(self.guard.clone(), AuditLog::recent(), Clock::default()).unwrap();
        median(|| timed(|| live.intercept(&self.call("tool-0", "agent-0")).allowed))
    }

    fn parsed(&self) -> f64 {
        let text = self.arguments.to_string();
        median(|| {
            self.writer.flush().unwrap();
            timed(|| {
                let call = Call {
                    arguments: Arc::new(serde_json::from_str(&text).unwrap()),
                    ..self.call("tool-0", "agent-0")
                };
                self.live.intercept(&call).allowed
            })
        })
    }

    fn admit(&self) -> f64 {
        let condition_inputs = ConditionInputs {
            now: jiff::Timestamp::UNIX_EPOCH,
            zone: jiff::tz::TimeZone::UTC,
            load: None,
            attributes: std::collections::BTreeMap::new(),
        };
        median(|| {
            timed(|| {
                let request = Request {
                    principal: black_box("agent-0"),
                    groups: &self.groups,
                    state: &INITIAL_STATE,
                    condition_inputs: &condition_inputs,
                    variant: None,
                };
                self.guard.admit(&request, black_box("tool-0")).is_ok()
            })
        })
    }

    /// Decisions per second of several threads, each with a principal of its own.
    fn threads(&self, count: usize) -> f64 {
        let rate = |_| {
            self.writer.flush().unwrap();
            let began = Instant::now();
            std::thread::scope(|scope| {
                for at in 0..count {
                    let principal = format!("thread-{at}");
                    scope.spawn(move || {
                        let call = self.call("tool-0", &principal);
                        for _ in 0..BURST {
                            assert!(self.live.intercept(&call).allowed);
                        }
                    });
                }
            });
            (BURST * count) as f64 / began.elapsed().as_secs_f64()
        };
        middle((0..ROUNDS).map(rate).collect())
    }
}

fn timed(mut work: impl FnMut() -> bool) -> f64 {
    let began = Instant::now();
    for _ in 0..BURST {
        assert!(black_box(work()), "the benchmark measures what it says");
    }
    began.elapsed().as_nanos() as f64 / BURST as f64
}

fn median(mut round: impl FnMut() -> f64) -> f64 {
    middle((0..ROUNDS).map(|_| round()).collect())
}

/// The median of each, with a round of each in turn: a busy moment of the machine hits all alike.
fn by_turns(benches: &[(Bench, f64)], tools: usize, principals: usize) -> Vec<f64> {
    let mut times = vec![Vec::new(); benches.len()];
    for round in 0..ROUNDS {
        for (times, (bench, _)) in times.iter_mut().zip(benches) {
            times.push(bench.round(round, tools, principals));
        }
    }
    times.into_iter().map(middle).collect()
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Every tool with a schema of its own, every principal with grants of its own.
fn policy(tools: &[String], principals: &[String]) -> Policy {
    let mut policy = Policy::default();
    for (at, name) in tools.iter().enumerate() {
        let mut tool = ToolPolicy::new(name);
        let groups = ["billing/read".to_owned(), format!("area-{}", at % 100)];
        tool.groups = groups.map(GroupName::new).into();
        tool.states = StateSet::Only(["undefined", "reviewed"].map(StateName::new).into());
        tool.permissions = vec![Permission::parse(&format!("area-{}:read", at % 100)).unwrap()];
        tool.limits.agent = Some(Limit {
            // Never reached, and short: the window holds about a thousand calls.
            max: u32::MAX.try_into().unwrap(),
            window: std::time::Duration::from_millis(1),
        });
        tool.input_schema = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100 + at},
                "mode": {"enum": ["fast", "exact"]},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
                "exact": {"type": "boolean"},
            },
            "required": ["query"],
            "additionalProperties": false,
        });
        policy.tools.push(tool);
    }
    let pattern = |text: &str| PermissionPattern::parse(text).unwrap();
    for (at, name) in principals
        .iter()
        .map(String::as_str)
        .chain(["thread-0", "thread-1"])
        .enumerate()
    {
        let grants = Grants {
            groups: Some(vec![GroupName::new("billing")]),
            permissions: vec![pattern("*:read"), pattern(&format!("own-{at}:write"))],
            ..Grants::default()
        };
        policy.principals.insert(
            name.to_owned(),
            PrincipalPolicy {
                grants,
                ..PrincipalPolicy::default()
            },
        );
    }
    policy
}
