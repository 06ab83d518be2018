//! The cost of reading replies compared with parsing them, the cost of hostile replies, and the
//! duration of a run over several providers compared with the slowest of them.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark measures time, prints it, and panics if it cannot continue"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use toolwarden_canon::reply;
use toolwarden_model::reply::{StreamMode, WireApi};
use toolwarden_probe::{
    ProbeSuite, ProbeTarget, Provider, RunSettings, fixture, run_fixture, run_suite,
};
use toolwarden_testkit::provider::{
    FakeProvider, ProviderResponse, Script, chat_completion, good, streamed_completion,
};
use toolwarden_trials::{TrialOrigin, build_snapshot};

const ROUNDS: usize = 9;
const ANSWERS: usize = 10_000;

fn main() {
    if let Some(which) = std::env::args().skip_while(|it| it != "hostile").nth(1) {
        return hostile(&which);
    }
    println!("| 10,000 answers | µs each | of parsing |\n|---|---:|---:|");
    let finish = json!("tool_calls");
    let body = chat_completion(&good(), &finish).to_string();
    reading("whole", StreamMode::Nonstream, body.as_bytes());
    reading(
        "stream",
        StreamMode::Stream,
        streamed_completion(&good(), &finish).body(),
    );

    println!("\n| hostile answer | MB | s | peak MB |\n|---|---:|---:|---:|");
    for which in ["argument", "keys", "calls"] {
        // In a separate process, so that nothing else is measured.
        let own = std::env::current_exe().unwrap();
        let status = std::process::Command::new(own)
            .args(["hostile", which])
            .status();
        assert!(status.unwrap().success());
    }

    println!(
        "\n| providers | slowest, ms | all of them, ms | of the slowest | one after the other, ms |"
    );
    println!("|---:|---:|---:|---:|---:|");
    together();
}

/// From bytes to a snapshot, compared with parsing the JSON in the same bytes.
fn reading(name: &str, mode: StreamMode, body: &[u8]) {
    let (mut ours, mut parsing) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for _ in 0..ANSWERS {
            let read = reply::read(
                WireApi::OpenaiChat,
                mode,
                black_box(body),
                &reply::ReplyLimits::default(),
            );
            let read = read.unwrap();
            let leaks = reply::find_leaks(&read);
            for call in &read.calls {
                black_box(reply::arguments(call.arguments.as_ref(), None));
            }
            black_box((read, leaks));
        }
        ours = ours.min(began.elapsed().as_secs_f64());
        let began = Instant::now();
        for _ in 0..ANSWERS {
            match mode {
                StreamMode::Nonstream => drop(black_box(parsed(body))),
                StreamMode::Stream => {
                    let text = std::str::from_utf8(black_box(body)).unwrap();
                    let data = text.lines().filter_map(|it| it.strip_prefix("data: "));
                    for data in data.filter(|it| *it != "[DONE]") {
                        drop(black_box(parsed(data.as_bytes())));
                    }
                }
            }
        }
        parsing = parsing.min(began.elapsed().as_secs_f64());
    }
    let each = |seconds: f64| seconds * 1e6 / ANSWERS as f64;
    println!(
        "| {name}, {} bytes | {:.2} | {:.2} |",
        body.len(),
        each(ours),
        ours / parsing
    );
}

fn parsed(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

/// A reply larger than any model should send, from bytes to a snapshot.
fn hostile(which: &str) {
    let call = |arguments: String| json!({"id": "call_12345678", "type": "function", "function": {"name": "get_weather", "arguments": arguments}});
    let calls: Vec<Value> = match which {
        "argument" => vec![call(
            json!({"location": "x".repeat(60_000_000)}).to_string(),
        )],
        "keys" => {
            let keys: Map<String, Value> = (0..200_000)
                .map(|at| (format!("key-{at}"), json!(at)))
                .collect();
            vec![call(Value::Object(keys).to_string())]
        }
        _ => (0..100_000)
            .map(|_| call(json!({"location": "Shanghai"}).to_string()))
            .collect(),
    };
    let body =
        json!({"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]});
    let body = body.to_string();
    drop(calls);
    let suite = ProbeSuite::bundled().unwrap();
    let provider = Provider::find("deepseek").unwrap();
    let before = resident("VmRSS:");
    let began = Instant::now();
    let run = run_fixture(provider, &suite, body.as_bytes());
    let origin = TrialOrigin {
        provider: "deepseek".to_owned(),
        model_id: "m".to_owned(),
        wire: WireApi::OpenaiChat,
        at: None,
    };
    let taken = build_snapshot(origin, &suite.facts(), &run.trials);
    let text = taken.to_text();
    let time = began.elapsed().as_secs_f64();
    assert!(
        taken.is_measured(),
        "{:?}",
        run.trials.first().map(|it| &it.outcome)
    );
    println!(
        "| {which} (snapshot {} kB) | {:.0} | {time:.2} | {:.0} |",
        text.len() / 1000,
        body.len() as f64 / 1e6,
        resident("VmHWM:") - before,
    );
}

/// The memory of this process in megabytes, current or peak.
fn resident(which: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(which)).unwrap();
    let kilobytes: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes / 1000.0
}

/// Five providers that take 100 to 500 ms for a response.
fn together() {
    let suite = ProbeSuite::bundled().unwrap();
    let body = fixture("deepseek").unwrap();
    let pauses = [100, 200, 300, 400, 500];
    let servers: Vec<FakeProvider> = pauses
        .into_iter()
        .map(|pause| {
            let answer = ProviderResponse::new(200, "application/json", body)
                .after_delay(Duration::from_millis(pause));
            FakeProvider::start(Script::always(answer))
        })
        .collect();
    let target = |server: &FakeProvider| ProbeTarget {
        provider: Provider::custom("local", &server.url(), "m"),
        key: None,
        headers: toolwarden_probe::ProviderHeaders::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let settings = RunSettings::default();
    let time = |servers: &[FakeProvider]| {
        let targets = servers.iter().map(target).collect();
        let began = Instant::now();
        let runs = runtime.block_on(run_suite(targets, &suite, &settings, |_| {}));
        assert!(
            runs.iter()
                .all(|it| it.trials.iter().all(|it| it.outcome.is_ok()))
        );
        began.elapsed().as_secs_f64() * 1000.0
    };
    let alone: Vec<f64> = servers
        .iter()
        .map(|it| time(std::slice::from_ref(it)))
        .collect();
    let slowest = alone.iter().copied().fold(0.0, f64::max);
    let all = time(&servers);
    println!(
        "| {} | {slowest:.0} | {all:.0} | {:.2} | {:.0} |",
        servers.len(),
        all / slowest,
        alone.iter().sum::<f64>()
    );
}
