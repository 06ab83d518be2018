//! Callers that keep a gateway busy, and whether the log holds what they were answered.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::ServedGateway;
use crate::sandbox::Sandbox;

/// How many callers there are at a time.
const CALLERS: usize = 4;

/// A policy that lets the callers call, and writes their records in groups.
pub(super) const POLICY: &str =
    "policy: {audit: {durability: group}, principals: {ada: {groups: ['*']}}}\n";

/// The calls that were answered, over the lives of several gateways.
#[derive(Default)]
pub(super) struct AnsweredCalls {
    texts: Mutex<BTreeSet<String>>,
    next: AtomicU64,
}

impl AnsweredCalls {
    pub(super) fn so_far(&self) -> BTreeSet<String> {
        self.texts.lock().unwrap().clone()
    }

    /// Does something while several callers call a gateway as fast as it answers.
    pub(super) fn while_calling<T>(&self, served: &ServedGateway, work: impl FnOnce() -> T) -> T {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..CALLERS {
                scope.spawn(|| self.call_until(&over, &served.address, &served.session));
            }
            let _over = SetOnDrop(&over);
            work()
        })
    }

    fn call_until(&self, over: &AtomicBool, address: &str, session: &str) {
        while !over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let text = format!("call-{number}-end");
            if echo(address, session, &text) {
                self.texts.lock().unwrap().insert(text);
            }
        }
    }
}

/// Ends the callers, also after a panic.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Calls the echo tool; whether the answer came.
fn echo(address: &str, session: &str, text: &str) -> bool {
    let params = json!({"name": "shop__echo", "arguments": {"text": text}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let message = message.to_string();
    let asked = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nMcp-Session-Id: {session}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {}\r\n\r\n{message}",
            message.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    asked().is_ok_and(|answer| answer.contains(r#""structuredContent""#) && answer.contains(text))
}

pub(super) fn run(sandbox: &Sandbox, args: &[&str]) -> std::process::Output {
    sandbox.command().args(args).output().unwrap()
}

/// Every record of a log.
pub(super) fn records(sandbox: &Sandbox, store: &str) -> Vec<Value> {
    let args = ["--store", store, "--format", "json", "--limit", "0"];
    let listed = run(sandbox, &[&["audit", "list"], &args[..]].concat());
    let mut listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    match listed["records"].take() {
        Value::Array(records) => records,
        other => panic!("{other}"),
    }
}

/// The log must be intact, and hold decision and outcome of every answered call.
#[track_caller]
pub(super) fn require_records(sandbox: &Sandbox, store: &str, answered: &BTreeSet<String>) {
    let verified = run(sandbox, &["audit", "verify", "--store", store]);
    assert!(verified.status.success(), "{verified:?}");
    let mut decided: BTreeMap<String, String> = BTreeMap::new();
    let mut ended: BTreeSet<String> = BTreeSet::new();
    for record in records(sandbox, store) {
        let body = &record["body"];
        match record["kind"].as_str() {
            Some("decision") => {
                if let (Some(text), Some(id)) =
                    (body["arguments"]["text"].as_str(), body["id"].as_str())
                {
                    decided.insert(text.to_owned(), id.to_owned());
                }
            }
            Some("outcome") => ended.extend(body["call"].as_str().map(str::to_owned)),
            _ => {}
        }
    }
    let lacks = |text: &&String| decided.get(*text).is_none_or(|id| !ended.contains(id));
    let missing: Vec<&String> = answered.iter().filter(lacks).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
