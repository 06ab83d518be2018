//! What `probe replay` serves is read by the official clients of the wires.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use toolwarden_testkit::provider::{FakeProvider, Script, wire_replies};
use toolwarden_testkit::{Registry, installed};

use super::replay::ReplayServer;
use super::{ProbeSandbox, command_output, parsed};
use crate::sandbox::data;

const CLIENTS: [&str; 2] = ["openai==3.49.0", "anthropic==2.8.0"];

fn python() -> Option<PathBuf> {
    Some(installed(Registry::PyPi, &CLIENTS)?.join("python"))
}

/// Captures what a provider answers on a wire, whole and streamed, and serves it again.
fn recorded(probe: &ProbeSandbox, wire: &str, provider: &str) -> ReplayServer {
    let row = wire_replies()
        .into_iter()
        .find(|it| it.wire == wire)
        .unwrap();
    let server = FakeProvider::start(Script::by_mode(row.nonstream, row.stream));
    let url = server.url();
    let args = [
        "snapshot",
        "-p",
        provider,
        "--base-url",
        &url,
        "--capture",
        "raw",
    ];
    probe.run_to(
        0,
        &[
            &args[..],
            &["-q", "--mode", "stream", "--mode", "nonstream"],
        ]
        .concat(),
    );
    drop(server);
    ReplayServer::start(probe, &["raw"])
}

/// What a client read, by the way it asked.
fn read(python: PathBuf, script: &str, url: &str) -> Value {
    let mut command = Command::new(python);
    command.arg(data(&format!("probe/{script}"))).arg(url);
    command.env("NO_PROXY", "127.0.0.1");
    let said = command_output(command.output().unwrap());
    assert_eq!(said.code, 0, "{}", said.err);
    parsed(&said.out)
}

const WEATHER: &str = r#"{"location":"東京","unit":"celsius"}"#;
const FORECAST: &str = r#"{"location":"Zürich","days":3,"include":{"wind":true}}"#;

#[test]
fn the_real_openai_client_reads_chat_completions() {
    let Some(python) = python() else {
        return;
    };
    let probe = ProbeSandbox::new();
    let replay = recorded(&probe, "openai-chat", "openai");
    let calls = json!([
        ["call_0a1b2c3d4e", "get_weather", WEATHER],
        ["call_1a1b2c3d4e", "get_forecast", FORECAST],
    ]);
    let reply = json!({
        "model": "synthetic-1", "finish": "tool_calls", "calls": calls, "tokens": [210, 40],
    });
    assert_eq!(
        read(python, "openai_chat.py", &replay.url),
        json!({"whole": reply, "stream": reply, "helper": reply})
    );
}

#[test]
fn the_real_openai_client_reads_responses() {
    let Some(python) = python() else {
        return;
    };
    let probe = ProbeSandbox::new();
    let replay = recorded(&probe, "openai-responses", "openai-responses");
    let calls = json!([
        ["call_0a1b2c3d4e", "get_weather", WEATHER],
        ["call_1a1b2c3d4e", "get_forecast", FORECAST],
    ]);
    let reply =
        json!({"model": "synthetic-1", "finish": "completed", "calls": calls, "tokens": [210, 40]});
    assert_eq!(
        read(python, "openai_responses.py", &replay.url),
        json!({"whole": reply, "stream": reply})
    );
}

#[test]
fn the_real_anthropic_client_reads_messages() {
    let Some(python) = python() else {
        return;
    };
    let probe = ProbeSandbox::new();
    let replay = recorded(&probe, "anthropic", "anthropic");
    let calls = json!([
        ["toolu_01A", "get_weather", parsed(WEATHER)],
        ["toolu_01B", "get_forecast", parsed(FORECAST)],
    ]);
    let reply = json!({
        "model": "synthetic-1", "finish": "tool_use", "calls": calls, "tokens": [210, 40],
    });
    assert_eq!(
        read(python, "anthropic_messages.py", &replay.url),
        json!({"whole": reply, "stream": reply, "helper": reply})
    );
}

/// A refusal reaches the client as the refusal it was.
#[test]
fn the_real_openai_client_reads_a_refusal() {
    let Some(python) = python() else {
        return;
    };
    let probe = ProbeSandbox::new();
    let refusal = toolwarden_testkit::provider::ProviderResponse::refusal(401, "no such key");
    let server = super::serving(refusal);
    let url = server.url();
    let args = [
        "snapshot",
        "-p",
        "openai",
        "--base-url",
        &url,
        "--capture",
        "raw",
    ];
    probe.run_to(3, &args);
    drop(server);
    let replay = ReplayServer::start(&probe, &["raw"]);
    assert_eq!(
        read(python, "openai_refusal.py", &replay.url),
        json!({"error": "AuthenticationError", "status": 401, "message": "no such key"})
    );
}
