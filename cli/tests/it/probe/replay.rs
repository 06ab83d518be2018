//! A run that was captured is repeated without the provider.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use toolwarden_testkit::provider::{FakeProvider, ProviderResponse, Script, wire_replies};

use super::{ProbeSandbox, parsed};

/// A `probe replay` that is ended with its value.
pub(super) struct ReplayServer {
    child: Child,
    _lines: Lines<BufReader<ChildStdout>>,
    /// Where it listens, as it says itself.
    pub(super) url: String,
}

impl ReplayServer {
    pub(super) fn start(probe: &ProbeSandbox, args: &[&str]) -> Self {
        let mut command = probe.command(&[&["replay"], args].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.next().unwrap().unwrap();
        Self {
            child,
            _lines: lines,
            url,
        }
    }

    /// Asks it to end, and tells how it ended.
    fn stop(mut self, signal: &str) -> Option<i32> {
        send(&self.child, signal);
        self.child.wait().unwrap().code()
    }
}

impl Drop for ReplayServer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

pub(super) fn send(child: &Child, signal: &str) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
    assert!(sent.success());
}

/// A snapshot without what depends on the day and on the machine.
fn timeless(text: &str) -> Value {
    let mut taken = parsed(text);
    assert!(taken["at"].is_string());
    let taken_of = taken.as_object_mut().unwrap();
    assert!(taken_of.remove("at").is_some() && taken_of.remove("latency").is_some());
    taken
}

/// The trial, the status and the body of every exchange of a capture.
fn answers(capture: &str) -> Vec<Value> {
    let lines = capture.lines().skip(1).map(parsed);
    let keys = ["case", "mode", "repetition", "attempt", "status", "body"];
    lines
        .map(|it| json!(keys.map(|key| it[key].clone())))
        .collect()
}

#[test]
fn a_captured_run_is_repeated_byte_for_byte() {
    for (row, provider) in
        wire_replies()
            .into_iter()
            .zip(["openai", "openai-responses", "anthropic", "gemini"])
    {
        let probe = ProbeSandbox::new();
        let server = FakeProvider::start(Script::by(move |seen, before| match before {
            2 => ProviderResponse::refusal(429, "slow down").header("retry-after", "0"),
            4 => ProviderResponse::new(200, "application/json", "{\"choices\": ["),
            _ if seen.wants_stream() => row.stream.clone(),
            _ => row.nonstream.clone(),
        }));
        let ask = |url: &str, folder: &str| {
            let args = [
                "snapshot",
                "-p",
                provider,
                "--base-url",
                url,
                "--capture",
                folder,
            ];
            let often = [
                "-q",
                "--repeat",
                "4",
                "--mode",
                "stream",
                "--mode",
                "nonstream",
            ];
            let said = probe.run_to(3, &[&args[..], &often, &["--retries", "1"]].concat());
            (
                timeless(&said.out),
                answers(&probe.read(&format!("{folder}/{provider}.jsonl"))),
            )
        };
        let (taken, received) = ask(&server.url(), "first");
        assert_eq!(taken["trials"]["measured"], 7, "{taken:#}");
        let replay = ReplayServer::start(&probe, &["first"]);
        let (again, received_again) = ask(&replay.url, "second");
        assert_eq!(again, taken, "{provider}");
        assert_eq!(received_again, received, "{provider}");
        assert_eq!(replay.stop("-TERM"), Some(0));
        let file = format!("second/{provider}.jsonl");
        let replay = ReplayServer::start(&probe, &["--listen", "127.0.0.1:0", &file]);
        assert_eq!(ask(&replay.url, "third").0, taken, "{provider}");
        assert_eq!(replay.stop("-INT"), Some(0));
    }
}

#[test]
fn the_bundled_answers_can_be_asked_for() {
    let probe = ProbeSandbox::new();
    let replay = ReplayServer::start(&probe, &["--from-fixtures"]);
    let run = [
        "run",
        "--old",
        "deepseek",
        "--new",
        "qwen",
        "-f",
        "json",
        "--compat",
        "tooldrift",
    ];
    let live = probe.run_to(1, &[&run[..], &["--base-url", &replay.url]].concat());
    let offline = probe.run_to(1, &[&run[..], &["--from-fixtures"]].concat());
    assert_eq!(live.out, offline.out);
    let taken = probe.run_to(
        3,
        &["snapshot", "-p", "anthropic", "--base-url", &replay.url],
    );
    assert!(taken.err.contains("HTTP 404"), "{}", taken.err);
}

/// A run gets the trials that were recorded, and no more; another suite or model gets none.
#[test]
fn a_run_has_as_many_trials_as_were_recorded() {
    let probe = ProbeSandbox::new();
    let replies = wire_replies().into_iter().next().unwrap();
    let server = FakeProvider::start(Script::by(move |_, _| replies.nonstream.clone()));
    let ask = |url: &str, more: &[&str]| {
        let args = ["snapshot", "-p", "openai", "--base-url", url, "-q"];
        probe.run(&[&args[..], &["--mode", "nonstream"], more].concat())
    };
    let first = ask(&server.url(), &["--repeat", "3", "--capture", "first"]);
    assert_eq!(first.code, 0, "{}", first.err);
    let replay = ReplayServer::start(&probe, &["first"]);
    for (repeat, measured, code) in [("3", 3, 0), ("3", 3, 0), ("20", 3, 3), ("1", 1, 0)] {
        let said = ask(&replay.url, &["--repeat", repeat]);
        assert_eq!(said.code, code, "{}", said.err);
        assert_eq!(parsed(&said.out)["trials"]["measured"], measured);
    }
    probe.write(
        "other.yaml",
        &include_str!("../../../../examples/suite.weather.yaml").replace("Shanghai", "Lyon"),
    );
    for other in [["--suite", "other.yaml"], ["--model", "another"]] {
        let said = ask(&replay.url, &other);
        assert_eq!(said.code, 3, "{other:?}: {}", said.err);
        assert!(said.err.contains("HTTP 404"), "{}", said.err);
    }
}

#[test]
fn port_in_use_is_reported() {
    let probe = ProbeSandbox::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = probe.run_to(3, &["replay", "--from-fixtures", "--listen", &address]);
    assert!(
        said.err
            .starts_with(&format!("error: cannot listen on {address}\n")),
        "{}",
        said.err
    );
}
