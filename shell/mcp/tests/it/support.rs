//! Fixture servers and helpers for tests.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::value::RawValue;
use toolwarden_mcp::{
    Command, ConnectionLimits, Endpoint, EnvInheritance, McpClient, McpError, ServerUrl,
};

/// The definitions of the fixture servers as written, one per line.
pub(crate) fn fixture_tools() -> Vec<String> {
    let text = include_str!("../fixtures/tools.json").trim();
    let inner = text.strip_prefix('[').unwrap().strip_suffix(']').unwrap();
    let lines = inner.lines();
    lines
        .map(|line| line.strip_suffix(',').unwrap_or(line).to_owned())
        .collect()
}

pub(crate) fn texts(tools: &[Box<RawValue>]) -> Vec<&str> {
    tools.iter().map(|tool| tool.get()).collect()
}

/// Limits short enough that failures show quickly.
pub(crate) fn short() -> ConnectionLimits {
    ConnectionLimits {
        connect: Duration::from_secs(3),
        start: Duration::from_secs(3),
        probe: Duration::from_millis(500),
        request: Duration::from_secs(3),
        total: Duration::from_secs(20),
        close: Duration::from_millis(500),
        ..ConnectionLimits::default()
    }
}

/// A path for a file that a server writes; a file of an earlier run is removed.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        fs::remove_file(&path).unwrap();
    }
    path
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// A program from `examples/`, which cargo builds with the tests.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let target = test.parent().and_then(Path::parent).unwrap();
    target.join("examples").join(name)
}

pub(crate) fn stdio_fixture(mode: &str, more: &[&str]) -> Endpoint {
    let script = fixture("stdio_server.py").to_str().unwrap().to_owned();
    let mut args = vec![script, mode.to_owned()];
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    Endpoint::Command(Command {
        program: "python3".to_owned(),
        args,
        env: Vec::new(),
        inherit: EnvInheritance::default(),
        directory: None,
        shows_errors: false,
    })
}

/// The error of a connection that must fail.
pub(crate) async fn refusal(endpoint: &Endpoint, limits: &ConnectionLimits) -> McpError {
    match McpClient::connect(endpoint, limits).await {
        Ok(client) => panic!("connected: {client:?}"),
        Err(error) => error,
    }
}

/// A server on a free loopback port, killed with its group when dropped.
pub(crate) struct HttpServer {
    child: Child,
    pub(crate) port: u16,
}

impl HttpServer {
    /// Starts the HTTP fixture, which prints the port it chose.
    pub(crate) fn fixture(mode: &str, more: &[&str]) -> Self {
        Self::script("http_server.py", mode, more)
    }

    /// Starts the HTTP fixture that sends its own messages.
    pub(crate) fn speaking(mode: &str) -> Self {
        Self::script("link_server.py", mode, &[])
    }

    fn script(name: &str, mode: &str, more: &[&str]) -> Self {
        let mut child = std::process::Command::new("python3")
            .arg(fixture(name))
            .arg(mode)
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap();
        Self { child, port }
    }

    /// Starts a command that listens on the port in its environment, and waits until it listens.
    pub(crate) fn start(command: &mut std::process::Command) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let child = command
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, port };
        for _ in 0..300 {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return server;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{command:?} does not listen on {port}");
    }

    pub(crate) fn endpoint(&self, path: &str) -> Endpoint {
        Endpoint::Url(ServerUrl {
            url: format!("http://127.0.0.1:{}{path}", self.port),
            headers: vec![("Authorization".to_owned(), "Bearer t".to_owned())],
        })
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
