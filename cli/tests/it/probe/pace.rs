//! How long, how often and how much: retries, the tokens a run may take, and what a terminal shows.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwarden_testkit::provider::{FakeProvider, ProviderResponse, Script};

use super::failures::{contract, good_reply};
use super::{ProbeSandbox, parsed, serving};

/// A provider that is busy is asked again, as late as it says and not more often than is said.
#[test]
fn a_busy_provider_is_asked_again() {
    let probe = ProbeSandbox::new();
    let busy = ProviderResponse::refusal(429, "slow down").header("retry-after", "0.4");
    let server = FakeProvider::start(Script::in_turn(vec![busy.clone(), good_reply()]));
    let url = server.url();
    let ask = ["snapshot", "-p", "deepseek", "-q", "--base-url", &url];
    let said = probe.run_to(0, &ask);
    let taken = parsed(&said.out);
    assert_eq!(taken["trials"]["attempts"], 2);
    assert_eq!(
        taken["trials"]["delivery_first"],
        json!({"k": 0, "n": 1, "rate": 0.0})
    );
    let seen = server.requests();
    assert!(seen[1].at - seen[0].at >= Duration::from_millis(400));
    let server = serving(busy.header("retry-after", "0"));
    let url = server.url();
    probe.run_to(
        3,
        &[
            "snapshot",
            "-p",
            "deepseek",
            "--base-url",
            &url,
            "--retries",
            "1",
        ],
    );
    assert_eq!(server.requests().len(), 2);
}

/// Providers that answer slowly are waited for together.
#[test]
fn providers_are_asked_at_once() {
    let probe = ProbeSandbox::new();
    let slow: Vec<FakeProvider> = (0..5)
        .map(|_| serving(good_reply().after_delay(Duration::from_millis(600))))
        .collect();
    let names = ["a", "b", "c", "d", "e"];
    let servers: Vec<(&str, &FakeProvider)> = names.into_iter().zip(&slow).collect();
    contract(&probe, &servers, Value::Null);
    let begun = Instant::now();
    probe.run_to(0, &["run", "--contract", "contract.yaml"]);
    let took = begun.elapsed();
    assert!(took < Duration::from_millis(1800), "{took:?}");
}

#[test]
fn tokens_are_counted_and_bounded() {
    let probe = ProbeSandbox::new();
    let server = serving(good_reply());
    let url = server.url();
    let ask = [
        "snapshot",
        "-p",
        "deepseek",
        "-q",
        "--base-url",
        &url,
        "--repeat",
        "6",
        "--concurrency",
        "1",
    ];
    let said = probe.run_to(3, &[&ask[..], &["--max-cost-tokens", "1500"]].concat());
    // Each reply says it took 250; more is set aside for one that is still to come.
    let asked = server.requests().len();
    assert!((1..6).contains(&asked), "{asked}");
    let trials = &parsed(&said.out)["trials"];
    assert_eq!(trials["measured"], asked);
    assert_eq!(trials["failures"], json!({"not_asked": 6 - asked}));
    let said = probe.run_to(0, &ask);
    assert_eq!(
        parsed(&said.out)["tokens"]["output"],
        json!({"replies": 6, "sum": 240})
    );
}

#[test]
fn an_interrupt_ends_it_at_once() {
    let probe = ProbeSandbox::new();
    let hanging = serving(
        ProviderResponse::new(200, "application/json", "{")
            .split_at([1])
            .hanging(),
    );
    let url = hanging.url();
    let mut command = probe.command(&[
        "snapshot",
        "-p",
        "deepseek",
        "--base-url",
        &url,
        "-o",
        "x.json",
    ]);
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    while hanging.requests().is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
    super::replay::send(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!probe.path("x.json").exists());
}

/// What was paid for is not lost.
#[test]
fn an_interrupt_leaves_what_was_received() {
    let probe = ProbeSandbox::new();
    let hanging = || {
        let hanging = ProviderResponse::new(200, "application/json", "{");
        Script::in_turn(vec![
            good_reply(),
            good_reply(),
            hanging.split_at([1]).hanging(),
        ])
    };
    let servers = [
        FakeProvider::start(hanging()),
        FakeProvider::start(hanging()),
    ];
    let urls = servers.each_ref().map(FakeProvider::url);
    let names = ["--old", "deepseek", "--new", "qwen"];
    let places = ["--old-base-url", &urls[0], "--new-base-url", &urls[1]];
    let rest = ["--repeat", "4", "--concurrency", "1", "--capture", "raw"];
    let mut command = probe.command(&[&["run"], &names[..], &places, &rest].concat());
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    while servers.iter().any(|it| it.requests().len() < 3) {
        std::thread::sleep(Duration::from_millis(10));
    }
    super::replay::send(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    for name in ["raw/deepseek.jsonl", "raw/qwen.jsonl"] {
        // The first line is about the file.
        assert_eq!(probe.read(name).lines().count(), 3, "{name}");
    }
}

/// Who watches sees how far it is; who reads the output of a program does not.
#[test]
fn a_terminal_shows_how_far_it_is() {
    let probe = ProbeSandbox::new();
    let server = serving(good_reply().after_delay(Duration::from_millis(300)));
    let url = server.url();
    let args = [
        "snapshot",
        "-p",
        "deepseek",
        "--base-url",
        &url,
        "--repeat",
        "4",
        "--concurrency",
        "2",
        "-q",
    ];
    let command = probe.command(&args);
    let script =
        "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut terminal = std::process::Command::new("python3");
    terminal
        .args(["-c", script])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => terminal.env(name, value),
            None => terminal.env_remove(name),
        };
    }
    terminal.env("TERM", "xterm").current_dir(probe.path(""));
    let shown = super::command_output(terminal.output().unwrap());
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(
        shown.out.contains("asking ") && shown.out.contains("/4 "),
        "{}",
        shown.out
    );
    assert_eq!(probe.run_to(0, &args).err, "");
}
