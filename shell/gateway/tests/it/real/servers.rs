//! Servers from npm and PyPI behind one gateway. What they list and return is what they list and
//! return without it, byte for byte apart from the prefix.

use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolwarden_mcp::{Command, Endpoint, EnvInheritance, Era, EraPreference};
use toolwarden_testkit::{Registry, installed};

use super::direct::DirectServer;
use crate::support::{Agent, EVERYTHING, TestGateway};

/// A published server.
struct Published {
    /// What the gateway calls it.
    name: &'static str,
    registry: Registry,
    packages: &'static [&'static str],
    program: &'static str,
    /// Arguments; `{folder}` stands for the folder that it may read.
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    /// A harmless call, with the same in its arguments.
    call: Option<(&'static str, &'static str)>,
}

const fn npm(
    name: &'static str,
    packages: &'static [&'static str],
    program: &'static str,
    args: &'static [&'static str],
    call: Option<(&'static str, &'static str)>,
) -> Published {
    Published {
        name,
        registry: Registry::Npm,
        packages,
        program,
        args,
        env: &[],
        call,
    }
}

const fn pypi(
    name: &'static str,
    packages: &'static [&'static str],
    program: &'static str,
    call: Option<(&'static str, &'static str)>,
) -> Published {
    Published {
        name,
        registry: Registry::PyPi,
        packages,
        program,
        args: &[],
        env: &[],
        call,
    }
}

/// The reference servers, then servers of the corpus that need neither keys nor a network.
const SERVERS: &[Published] = &[
    npm(
        "everything",
        &["@modelcontextprotocol/server-everything@2026.8.31"],
        "mcp-server-everything",
        &["stdio"],
        Some(("echo", r#"{"message": "grüße"}"#)),
    ),
    npm(
        "filesystem",
        &["@modelcontextprotocol/server-filesystem@2026.8.31"],
        "mcp-server-filesystem",
        &["{folder}"],
        Some(("list_directory", r#"{"path": "{folder}"}"#)),
    ),
    Published {
        env: &[("MEMORY_FILE_PATH", "{folder}/memory.json")],
        ..npm(
            "memory",
            &["@modelcontextprotocol/server-memory@2026.8.31"],
            "mcp-server-memory",
            &[],
            Some(("read_graph", "{}")),
        )
    },
    pypi(
        "git",
        &["mcp-server-git==2026.10.19"],
        "mcp-server-git",
        Some(("git_status", r#"{"repo_path": "{folder}"}"#)),
    ),
    pypi(
        "time",
        &["mcp-server-time==2026.10.19", "mcp==2.3.0"],
        "mcp-server-time",
        Some((
            "convert_time",
            r#"{"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}"#,
        )),
    ),
    npm(
        "thinking",
        &["@modelcontextprotocol/server-sequential-thinking@2026.8.31"],
        "mcp-server-sequential-thinking",
        &[],
        Some((
            "sequentialthinking",
            r#"{"thought": "a", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}"#,
        )),
    ),
    Published {
        env: &[("TASK_MANAGER_FILE_PATH", "{folder}/tasks.json")],
        ..npm(
            "tasks",
            &["@kazuph/mcp-taskmanager@1.1.1"],
            "mcp-taskmanager",
            &[],
            Some(("list_requests", "{}")),
        )
    },
    Published {
        env: &[("HOME", "{folder}")],
        ..npm(
            "divide",
            &["@landicefu/divide-and-conquer-mcp-server@1.1.1"],
            "divide-and-conquer-mcp-server",
            &[],
            Some(("get_checklist_summary", "{}")),
        )
    },
    npm(
        "eslint",
        &["@eslint/mcp@0.3.13"],
        "mcp",
        &[],
        // There is nothing to lint.
        Some(("lint-files", r#"{"filePaths": ["{folder}/none.js"]}"#)),
    ),
    npm(
        "ripgrep",
        &["mcp-ripgrep@0.4.0"],
        "mcp-ripgrep",
        &[],
        Some(("list-file-types", "{}")),
    ),
    npm(
        "cookies",
        &["mcp-cookie-server@1.0.2"],
        "mcp-cookie-server",
        &[],
        Some(("cookie_jar_status", "{}")),
    ),
    // It lists some four hundred tools, all of which call its vendor.
    npm(
        "hostinger",
        &["hostinger-api-mcp@1.63.2"],
        "hostinger-api-mcp",
        &[],
        None,
    ),
    pypi(
        "calculator",
        &["mcp-server-calculator==0.2.1"],
        "mcp-server-calculator",
        Some(("calculate", r#"{"expression": "6 * 7"}"#)),
    ),
];

impl Published {
    /// How it is started; none if it cannot be had here.
    fn command(&self, folder: &Path) -> Option<Command> {
        let programs = installed(self.registry, self.packages)?;
        let text = |it: &str| it.replace("{folder}", folder.to_str().unwrap());
        let env = self.env.iter();
        Some(Command {
            program: programs.join(self.program).to_str().unwrap().to_owned(),
            args: self.args.iter().map(|arg| text(arg)).collect(),
            env: env
                .map(|(key, value)| ((*key).to_owned(), text(value)))
                .collect(),
            inherit: EnvInheritance::default(),
            directory: Some(folder.to_owned()),
            shows_errors: false,
        })
    }

    /// What an agent must see of a definition: the same text, with another name in it.
    fn shown(&self, definition: &str) -> String {
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap()["name"].take();
        let own = read(definition);
        let shown = json!(format!("{}__{}", self.name, own.as_str().unwrap()));
        let own = format!("\"name\":{own}");
        // A property may be called `name` too.
        let places = definition.match_indices(&own).map(|(at, _)| at);
        let mut texts = places.map(|at| {
            let (before, rest) = definition.split_at(at);
            format!(
                "{before}\"name\":{shown}{}",
                rest.strip_prefix(&own).unwrap()
            )
        });
        texts.find(|text| read(text) == shown).unwrap()
    }
}

/// A server entry of the settings.
fn entry(command: &Command) -> Value {
    let env: serde_json::Map<String, Value> = command
        .env
        .iter()
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect();
    json!({
        "command": command.program,
        "args": command.args,
        "env": env,
        "cwd": command.directory,
        // Many programs start at once on a busy machine.
        "timeouts": {"list": "60s"},
    })
}

#[derive(Deserialize)]
struct Answer {
    result: Box<RawValue>,
}

#[derive(Deserialize)]
struct Tools {
    tools: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Content {
    content: Box<RawValue>,
}

async fn result(agent: &Agent, method: &str, params: Value) -> String {
    let mut exchange = agent.begin(method, params).await;
    let mut last = None;
    while let Some(text) = exchange.text().await {
        last = Some(text);
    }
    let text = last.unwrap();
    let answer: Answer = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
    answer.result.get().to_owned()
}

fn content(result: &str) -> String {
    let content: Content = serde_json::from_str(result).unwrap();
    content.content.get().to_owned()
}

/// A folder with a repository in it that has one file to add.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "one line\n").unwrap();
    let made = std::process::Command::new("git")
        .args(["init", "--quiet", "--initial-branch=main"])
        .arg(folder.path())
        .status();
    assert!(made.unwrap().success());
    folder
}

/// Compares what agents of both eras see with what servers say without a gateway.
async fn compare(servers: &[(&Published, Command)], folder: &Path, capabilities: &str) {
    let entries = servers.iter();
    let entries = entries.map(|(server, command)| (server.name.to_owned(), entry(command)));
    let entries: serde_json::Map<String, Value> = entries.collect();
    let gateway = TestGateway::start(&json!({"servers": entries})).await;
    let agents = [
        Agent::of(Era::Handshake, &gateway.url, capabilities).await,
        Agent::of(Era::Stateless, &gateway.url, capabilities).await,
    ];
    let mut seen = Vec::new();
    for agent in &agents {
        let list: Tools =
            serde_json::from_str(&result(agent, "tools/list", json!({})).await).unwrap();
        let texts = list.tools.iter().map(|tool| tool.get().to_owned());
        seen.push(texts.collect::<Vec<String>>());
    }
    // A server may write the same definitions otherwise in the other era.
    let mut expected = [Vec::new(), Vec::new()];
    for (server, command) in servers {
        let endpoint = Endpoint::Command(command.clone());
        let direct = DirectServer::open(&endpoint, capabilities).await;
        let old = DirectServer::open_in(&endpoint, capabilities, EraPreference::Handshake).await;
        for (expected, direct) in expected.iter_mut().zip([&old, &direct]) {
            let listed = direct.tools().await;
            assert!(!listed.is_empty(), "{}", server.name);
            expected.extend(listed.iter().map(|tool| server.shown(tool)));
        }
        old.close().await;
        if let Some((tool, arguments)) = server.call {
            let arguments = arguments.replace("{folder}", folder.to_str().unwrap());
            let arguments: Value = serde_json::from_str(&arguments).unwrap();
            let alone = direct.call(tool, &arguments).await;
            for agent in &agents {
                let name = format!("{}__{tool}", server.name);
                let params = json!({"name": name, "arguments": arguments});
                let behind = result(agent, "tools/call", params).await;
                // The other era has other members beside the content.
                if agent.era == direct.era {
                    assert_eq!(behind, alone, "{name}");
                } else {
                    assert_eq!(content(&behind), content(&alone), "{name}");
                }
            }
        }
        direct.close().await;
    }
    for (texts, expected) in seen.iter().zip(&expected) {
        assert_same(texts, expected);
    }
    gateway.stop().await;
}

/// Equal, entry by entry; whole lists would be too long to read.
fn assert_same(seen: &[String], expected: &[String]) {
    for (seen, expected) in seen.iter().zip(expected) {
        assert_eq!(seen, expected);
    }
    assert_eq!(seen.len(), expected.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn published_servers_behind_one_gateway() {
    let folder = folder();
    let servers = SERVERS.iter();
    let had = servers.filter_map(|server| Some((server, server.command(folder.path())?)));
    let had: Vec<_> = had.collect();
    if !had.is_empty() {
        compare(&had, folder.path(), "{}").await;
    }
}

/// What a server lists may depend on what its client can do.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_sees_what_the_agent_can_do() {
    let folder = folder();
    let server = SERVERS.first().unwrap();
    if let Some(command) = server.command(folder.path()) {
        compare(&[(server, command)], folder.path(), EVERYTHING).await;
    }
}
