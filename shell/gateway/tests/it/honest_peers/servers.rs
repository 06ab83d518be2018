//! The servers, the folder that they work in, and a gateway before all of them.

use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use toolwarden_testkit::conformance::ConformanceServer;
use toolwarden_testkit::{Registry, installed};

use crate::support::TestGateway;

const EVERYTHING: &str = "@modelcontextprotocol/server-everything@2026.8.31";
const MEMORY: &str = "@modelcontextprotocol/server-memory@2026.8.31";
const FILESYSTEM: &str = "@modelcontextprotocol/server-filesystem@2026.8.31";
const THINKING: &str = "@modelcontextprotocol/server-sequential-thinking@2026.8.31";

/// All servers, and the folder that they work in.
pub(super) struct Servers {
    /// How each is reached, in the order that the gateway has them.
    pub(super) by_name: Vec<(&'static str, Value)>,
    pub(super) folder: TempDir,
    /// The steps for each.
    pub(super) plan: Map<String, Value>,
    _fixture: ConformanceServer,
}

impl Servers {
    /// None if something cannot be installed here, which the testkit reports.
    pub(super) async fn installed() -> Option<Self> {
        tokio::task::spawn_blocking(Self::prepare).await.unwrap()
    }

    fn prepare() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let path = folder.path().to_str().unwrap().to_owned();
        let npm = |package: &'static str, program: &str, args: &[&str]| {
            let programs = installed(Registry::Npm, &[package])?;
            Some(json!({"command": programs.join(program), "args": args}))
        };
        let pypi = |packages: &[&str], program: &str, args: &[&str]| {
            let programs = installed(Registry::PyPi, packages)?;
            Some(json!({"command": programs.join(program), "args": args}))
        };
        let fixture = ConformanceServer::start()?;
        let mut memory = npm(MEMORY, "mcp-server-memory", &[])?;
        memory["env"] = json!({"MEMORY_FILE_PATH": format!("{path}/memory.json")});
        let files = format!("{path}/files");
        let desk = fixtures().join("desk.py");
        let desk = desk.to_str().unwrap();
        let time = ["mcp-server-time==2026.10.19", "mcp==2.3.0"];
        let by_name = vec![
            (
                "everything",
                npm(EVERYTHING, "mcp-server-everything", &["stdio"])?,
            ),
            ("memory", memory),
            (
                "filesystem",
                npm(FILESYSTEM, "mcp-server-filesystem", &[&files])?,
            ),
            (
                "thinking",
                npm(THINKING, "mcp-server-sequential-thinking", &[])?,
            ),
            (
                "time",
                pypi(&time, "mcp-server-time", &["--local-timezone", "UTC"])?,
            ),
            (
                "git",
                pypi(&["mcp-server-git==2026.10.19"], "mcp-server-git", &[])?,
            ),
            (
                "fetch",
                pypi(&["mcp-server-fetch==2026.10.24"], "mcp-server-fetch", &[])?,
            ),
            ("desk", pypi(&["fastmcp==4.1.2"], "python", &[desk])?),
            ("fixture", json!({"url": fixture.url})),
        ];
        let plan = std::fs::read_to_string(fixtures().join("plan.json")).unwrap();
        let plan = serde_json::from_str(&plan.replace("{folder}", &path)).unwrap();
        Some(Self {
            by_name,
            folder,
            plan,
            _fixture: fixture,
        })
    }

    /// Makes the folder what it was before the first step.
    pub(super) fn reset(&self) {
        let folder = self.folder.path();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => std::fs::remove_dir_all(path).unwrap(),
                false => std::fs::remove_file(path).unwrap(),
            }
        }
        let files = folder.join("files");
        std::fs::create_dir(&files).unwrap();
        std::fs::write(files.join("note.txt"), "a note\n").unwrap();
        std::fs::write(files.join("dot.png"), b"\x89PNG").unwrap();
        let repository = folder.join("repository");
        std::fs::create_dir(&repository).unwrap();
        std::fs::write(repository.join("a.txt"), "a\n").unwrap();
        git(&repository, &["init", "-q", "-b", "main"]);
        git(&repository, &["add", "."]);
        git(&repository, &["commit", "-q", "-m", "first"]);
    }

    pub(super) async fn gateway(&self) -> TestGateway {
        let servers = self.by_name.iter();
        let servers: Map<String, Value> = servers
            .map(|(name, connect)| ((*name).to_owned(), connect.clone()))
            .collect();
        TestGateway::start(&json!({
            "servers": servers,
            // A tool of the fixture comes and goes.
            "watch": {"on_drift": "serve", "on_new": "serve"},
        }))
        .await
    }

    pub(super) fn steps(&self, server: &str) -> &Value {
        &self.plan[server]
    }
}

pub(super) fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/peers")
}

fn git(folder: &Path, args: &[&str]) {
    let date = "2026-01-01T00:00:00Z";
    let status = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
        .args(args)
        .current_dir(folder)
        .env("GIT_AUTHOR_DATE", date)
        .env("GIT_COMMITTER_DATE", date)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .status();
    assert!(status.unwrap().success(), "{args:?}");
}
