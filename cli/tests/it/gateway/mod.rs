//! The gateway as its operator and its agents meet it.

mod approving;
mod backup;
mod callers;
mod clock;
mod config_refusals;
mod demo;
mod documents;
mod explaining;
mod kills;
mod memory;
mod orphans;
mod outside;
mod serve;
mod settings;
mod settings_file;
mod soak;
mod wrap;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;

use super::sandbox::Sandbox;

/// How long anything may take on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A `toolwarden` that runs; it is killed with this value.
pub(super) struct ToolwardenProcess {
    child: Child,
    output: Arc<Mutex<String>>,
}

impl ToolwardenProcess {
    pub(super) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = Arc::new(Mutex::new(String::new()));
        collect_output(child.stdout.take().unwrap(), Arc::clone(&output));
        collect_output(child.stderr.take().unwrap(), Arc::clone(&output));
        Self { child, output }
    }

    /// Everything that was said so far.
    pub(super) fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    /// Waits until something is said, and gives everything that was.
    pub(super) fn wait_for(&self, text: &str) -> String {
        poll_until(|| {
            let told = self.output();
            told.contains(text).then_some(told)
        })
        .unwrap_or_else(|| panic!("`{text}` was not said:\n{}", self.output()))
    }

    pub(super) fn write_line(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn signal(&self, signal: &str) {
        let id = self.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end, and gives the exit code.
    pub(super) fn end(&mut self) -> Option<i32> {
        let ended = poll_until(|| self.child.try_wait().unwrap());
        ended
            .unwrap_or_else(|| panic!("it did not end:\n{}", self.output()))
            .code()
    }
}

impl Drop for ToolwardenProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A gateway that runs, and an agent before it.
pub(super) struct ServedGateway {
    pub(super) process: ToolwardenProcess,
    address: String,
    session: String,
}

impl ServedGateway {
    /// Runs `serve` with the settings of a place, and opens a session.
    pub(super) fn start(sandbox: &Sandbox, args: &[&str]) -> Self {
        Self::start_as(sandbox.command(), args)
    }

    /// As [`Self::start`], with a `toolwarden` that something was done to.
    fn start_as(mut command: Command, args: &[&str]) -> Self {
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(args);
        let process = ToolwardenProcess::start(command);
        let told = process.wait_for("/mcp");
        let (_, rest) = told.split_once("http://").unwrap();
        let address = rest.split('/').next().unwrap().to_owned();
        let mut served = Self {
            process,
            address,
            session: String::new(),
        };
        served.session = served.open();
        served
    }

    /// Opens a session.
    fn open(&self) -> String {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let message = request("initialize", &params);
        let session = post(&self.address, "", &message).session;
        assert!(!session.is_empty());
        session
    }

    pub(super) fn session(&self) -> &str {
        &self.session
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The names of the tools that are offered.
    pub(super) fn tools(&self) -> Vec<String> {
        let listed = self.post("tools/list", &json!({})).body;
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The result of a call.
    pub(super) fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.call_in(&self.session, tool, arguments)
    }

    /// The result of a call in a session.
    fn call_in(&self, session: &str, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let message = request("tools/call", &params);
        post(&self.address, session, &message).body["result"].take()
    }

    fn post(&self, method: &str, params: &Value) -> HttpAnswer {
        post(&self.address, &self.session, &request(method, params))
    }
}

fn request(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

pub(super) struct HttpAnswer {
    pub(super) session: String,
    pub(super) body: Value,
}

/// Sends one message of the handshake era and takes the answer, plain or on a stream.
fn post(address: &str, session: &str, message: &str) -> HttpAnswer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let session = match session {
        "" => String::new(),
        id => format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n"),
    };
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{session}\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\n\r\n{message}",
        message.len()
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let header = |name: &str| {
        let mut lines = head.lines();
        let found = lines.find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        });
        found.unwrap_or_default()
    };
    // The answer is the last message of a stream.
    let messages = body.lines().map(|line| line.trim_start_matches("data: "));
    let answer = messages
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .rfind(|it| it.get("id").is_some());
    HttpAnswer {
        session: header("mcp-session-id"),
        body: answer.unwrap_or_else(|| panic!("no answer: {text}")),
    }
}

/// Settings with the shop of the demo as a server on standard streams.
fn shop_settings(more: &str) -> String {
    let program = json!(cargo_bin!("toolwarden").to_str().unwrap());
    format!(
        "servers:\n  shop: {{command: {program}, args: [__demo-server], sessions: shared}}\n\
         identity: {{anonymous: ada}}\ndrain: 5s\n{more}"
    )
}

fn collect_output(stream: impl Read + Send + 'static, told: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            let mut told = told.lock().unwrap();
            told.push_str(&line);
            told.push('\n');
        }
    });
}

/// Asks again and again until there is an answer.
fn poll_until<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    while begun.elapsed() < TIMEOUT {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

/// The processes that a process has started and their words, the reaper left out.
fn servers_of(parent: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|it| it.parse::<u32>().ok()) else {
            continue;
        };
        let words = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        if parent_of(&entry.path()) == Some(parent) && !words.contains("__reaper") {
            found.push(id);
        }
    }
    found
}

fn parent_of(process: &Path) -> Option<u32> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Whether a process runs; a zombie does not.
fn is_running(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let rest = stat.rsplit_once(')').map(|(_, fields)| fields.trim_start());
    rest.is_some_and(|fields| !fields.starts_with('Z'))
}
