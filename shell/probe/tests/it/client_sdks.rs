//! The published clients on the bytes of the catalogue do what the replay of each client says.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};
use toolwarden_canon::client_behaviour::{ClientLibrary, ClientOutcome, HttpReply, replay};
use toolwarden_model::reply::{StreamMode, WireApi};
use toolwarden_testkit::provider::{
    FakeProvider, Misbehaviour, ProviderResponse, Script, misbehaviours,
};
use toolwarden_testkit::{Registry, installed};

const PYTHON_CLIENTS: [&str; 5] = [
    "openai==3.51.0",
    "anthropic==2.10.0",
    "langchain-core==1.7.2",
    "langchain-openai==1.7.3",
    "langchain-anthropic==1.7.7",
];
const NODE_CLIENTS: [&str; 1] = ["openai@6.49.0"];

/// The response of a row to a request in this mode.
fn response(row: &Misbehaviour, mode: StreamMode) -> Option<&ProviderResponse> {
    match mode {
        StreamMode::Nonstream => row.nonstream.as_ref(),
        StreamMode::Stream => row.stream.as_ref(),
    }
}

/// A provider that serves every row under its own path.
fn provider() -> FakeProvider {
    let rows = misbehaviours();
    FakeProvider::start(Script::by(move |seen, _| {
        let mut path = seen.path.split('/').skip(1);
        let (id, mode) = (path.next().unwrap(), path.next().unwrap());
        let mode = StreamMode::ALL.into_iter().find(|it| it.as_str() == mode);
        let row = rows.iter().find(|it| it.id == id).unwrap();
        response(row, mode.unwrap()).unwrap().clone()
    }))
}

/// Runs a program against the catalogue: what each client did, by client, row and mode.
fn run(mut program: Command) -> BTreeMap<String, Value> {
    let provider = provider();
    let rows = misbehaviours();
    let requests = rows.iter().flat_map(|row| {
        let modes = StreamMode::ALL.into_iter();
        let modes = modes.filter(|mode| response(row, *mode).is_some());
        modes.map(|mode| json!([row.id, mode.as_str(), row.wire]))
    });
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("manifest.json");
    let requests = Value::Array(requests.collect());
    std::fs::write(&manifest, requests.to_string()).unwrap();
    program.arg(provider.url()).arg(&manifest);
    program.env("NO_PROXY", "127.0.0.1");
    let output = program.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What the replay of a client says, in the form that the programs print.
fn replayed(client: ClientLibrary, row: &Misbehaviour, mode: StreamMode) -> Option<Value> {
    let wire = WireApi::ALL.into_iter().find(|it| it.as_str() == row.wire);
    let response = response(row, mode)?;
    let reply = HttpReply {
        content_type: response.content_type(),
        body: response.body(),
    };
    Some(match replay(client, wire.unwrap(), mode, reply)? {
        ClientOutcome::Raised(error) => json!({"raises": error.class}),
        ClientOutcome::Handed(handed) => {
            let calls = handed.calls.iter();
            let calls = calls.map(|it| json!([it.id, it.name, it.arguments]));
            json!({"calls": calls.collect::<Vec<_>>(), "text": handed.text})
        }
    })
}

fn check(mut seen: BTreeMap<String, Value>, clients: &[ClientLibrary], least: usize) {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for row in misbehaviours() {
        for mode in StreamMode::ALL {
            for client in clients {
                let Some(replayed) = replayed(*client, &row, mode) else {
                    continue;
                };
                let key = format!("{} {} {}", client.as_str(), row.id, mode.as_str());
                let mut real = seen.remove(&key).unwrap();
                if let Some(members) = real.as_object_mut() {
                    members.remove("what");
                }
                compared += 1;
                if real != replayed {
                    wrong.push(format!("{key}\n  real:   {real}\n  replay: {replayed}"));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {compared}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(seen.into_keys().collect::<Vec<_>>(), Vec::<String>::new());
    assert!(compared >= least, "{compared}");
}

#[test]
fn replays_do_what_the_clients_for_python_do() {
    let Some(programs) = installed(Registry::PyPi, &PYTHON_CLIENTS) else {
        return;
    };
    let mut python = Command::new(programs.join("python"));
    python.arg(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/it/client_sdks.py"
    ));
    check(
        run(python),
        &[
            ClientLibrary::OpenaiPython,
            ClientLibrary::AnthropicPython,
            ClientLibrary::LangchainOpenai,
            ClientLibrary::LangchainAnthropic,
        ],
        400,
    );
}

#[test]
fn replays_do_what_the_client_for_node_does() {
    let Some(programs) = installed(Registry::Npm, &NODE_CLIENTS) else {
        return;
    };
    let mut node = Command::new("node");
    node.arg(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/it/client_sdks.mjs"
    ));
    node.arg(programs.parent().unwrap());
    check(run(node), &[ClientLibrary::OpenaiNode], 200);
}

#[test]
fn the_tests_install_the_releases_that_the_replays_name() {
    for client in ClientLibrary::ALL {
        let release = client.release();
        let (packages, mark): (&[&str], &str) = match client {
            ClientLibrary::OpenaiNode => (&NODE_CLIENTS, "@"),
            _ => (&PYTHON_CLIENTS, "=="),
        };
        let wanted = format!("{}{mark}{}", release.package, release.version);
        assert!(packages.contains(&wanted.as_str()), "{wanted}");
    }
}
