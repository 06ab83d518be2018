//! A gateway that is killed under load loses no record of a call that was answered, and leaves nobody
//! behind.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Served, shop_settings};
use crate::sandbox::Sandbox;

/// How many callers there are at a time.
const CALLERS: usize = 4;

/// How often the gateway is killed; `TOOLWARDEN_KILLS` asks for more.
fn kills() -> u64 {
    let asked = std::env::var("TOOLWARDEN_KILLS").ok();
    asked.and_then(|it| it.parse().ok()).unwrap_or(15)
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

/// The programs that the gateway with this id started, and theirs.
fn children_of(id: u32) -> Vec<u32> {
    let listed = std::process::Command::new("ps")
        .args(["-eo", "pid=,ppid=,args="])
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let of_it = listed.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (pid, parent) = (words.next()?.parse().ok()?, words.next()?);
        let is_server = words.any(|word| word == "__demo-server");
        (parent == id.to_string() && is_server).then_some(pid)
    });
    of_it.collect()
}

#[test]
fn no_answered_call_is_without_its_records() {
    let sandbox = Sandbox::new();
    let policy = "policy: {audit: {durability: group}, principals: {ada: {groups: ['*']}}}\n";
    std::fs::write(sandbox.path("toolwarden.yaml"), shop_settings(policy)).unwrap();
    let answered = Mutex::new(BTreeSet::new());
    let next = AtomicU64::new(0);
    for round in 0..kills() {
        let mut served = Served::start(&sandbox, &[]);
        let address = served.url().trim_start_matches("http://").to_owned();
        let session = served.session().to_owned();
        let children = children_of(served.process.id());
        assert!(!children.is_empty(), "round {round}");
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..CALLERS {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let text = format!("call-{number}-end");
                        if echo(&address, &session, &text) {
                            answered.lock().unwrap().insert(text);
                        }
                    }
                });
            }
            // Each time at another moment of what is going on.
            std::thread::sleep(Duration::from_millis(60 + round * 37 % 211));
            served.process.signal("-KILL");
            over.store(true, Ordering::Relaxed);
        });
        served.process.end();
        gone(&children);
    }
    let answered = answered.into_inner().unwrap();
    assert!(answered.len() as u64 > kills(), "{}", answered.len());
    let verified = run(&sandbox, &["audit", "verify", "--store", "toolwarden.db"]);
    assert!(verified.status.success(), "{verified:?}");
    let missing = without_records(&sandbox, &answered);
    assert!(missing.is_empty(), "{missing:?}");
}

pub(super) fn run(sandbox: &Sandbox, args: &[&str]) -> std::process::Output {
    sandbox.command().args(args).output().unwrap()
}

/// Waits until programs are gone.
fn gone(children: &[u32]) {
    let deadline = Instant::now() + Duration::from_secs(10);
    let alive = |id: &u32| {
        let status = std::fs::read_to_string(Path::new("/proc").join(id.to_string()).join("stat"));
        // What nobody reaps yet has ended.
        status.is_ok_and(|it| !it.contains(") Z "))
    };
    while children.iter().any(alive) {
        assert!(
            Instant::now() < deadline,
            "{children:?} outlived the gateway"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The answered calls that lack their decision or their outcome.
pub(super) fn without_records(sandbox: &Sandbox, answered: &BTreeSet<String>) -> Vec<String> {
    let wanted = [
        "--store",
        "toolwarden.db",
        "--format",
        "json",
        "--limit",
        "0",
    ];
    let listed = run(sandbox, &[&["audit", "list"], &wanted[..]].concat());
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let mut decided: BTreeMap<String, String> = BTreeMap::new();
    let mut ended: BTreeSet<String> = BTreeSet::new();
    for record in listed["records"].as_array().unwrap() {
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
    answered.iter().filter(lacks).cloned().collect()
}
