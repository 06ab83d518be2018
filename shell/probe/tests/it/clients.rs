//! The official clients read the responses of a replay, so the wire of the tests is the real one.

use std::process::Command;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use toolwarden_model::reply::{StreamMode, WireApi};
use toolwarden_probe::capture;
use toolwarden_probe::replay::{RecordedExchange, serve};
use toolwarden_testkit::provider::{FakeProvider, Script, wire_replies};
use toolwarden_testkit::{Registry, installed};

use crate::support::{repeated, run_target, target_on};

const CLIENTS: [&str; 3] = ["openai==3.49.0", "anthropic==2.8.0", "google-genai==3.1.0"];

#[tokio::test]
async fn the_official_clients_read_a_replay() {
    let Some(programs) = installed(Registry::PyPi, &CLIENTS) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut runs = Vec::new();
    for (wire, row) in WireApi::ALL.into_iter().zip(wire_replies()) {
        let provider = FakeProvider::start(Script::by_mode(row.nonstream, row.stream));
        let mut target = target_on(wire, &provider);
        wire.as_str().clone_into(&mut target.provider.name);
        runs.push(run_target(target, &repeated(1, &StreamMode::ALL)).await);
    }
    capture::write(folder.path(), "weather", &runs).unwrap();
    let captures = capture::read(folder.path()).unwrap();
    let recordings = captures
        .iter()
        .flat_map(RecordedExchange::from_capture)
        .collect();

    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve(recordings, listener, async {
        let _dropped = stopped.await;
    }));
    let asking = tokio::task::spawn_blocking(move || {
        let mut python = Command::new(programs.join("python"));
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/clients.py");
        python.env_clear().args([script, &base]).output().unwrap()
    });
    let output = asking.await.unwrap();
    stop.send(()).unwrap();
    server.await.unwrap().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let calls = json!([
        ["get_weather", {"location": "東京", "unit": "celsius"}],
        ["get_forecast", {"location": "Zürich", "days": 3, "include": {"wind": true}}],
    ]);
    for wire in WireApi::ALL {
        assert_eq!(seen[wire.as_str()], json!([calls, calls]), "{wire}");
    }
}
