//! A gateway that is used for a while and then left alone takes no more memory than before, and keeps no
//! descriptor open.
//!
//! `TOOLWARDEN_SOAK` sets how many seconds it is used; `benches/run` uses it for ten minutes.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;

use super::{ServedGateway, poll_until, post, request};
use crate::sandbox::Sandbox;

/// What may be added besides a tenth: caches that fill up to their bounds, and pieces the allocator keeps.
const SLACK: u64 = 16 << 20;

/// How long the gateway is used before it is measured first.
const WARM_UP: Duration = Duration::from_secs(10);

/// Sessions, their children and what tidies them up have ended after this time.
const REST: Duration = Duration::from_secs(16);

fn duration() -> Duration {
    let asked = std::env::var("TOOLWARDEN_SOAK").ok();
    let seconds = asked.and_then(|it| it.parse().ok()).unwrap_or(30);
    Duration::from_secs(seconds)
}

fn settings(round: usize) -> String {
    let shop = cargo_bin!("toolwarden").to_str().unwrap();
    // An isolated server, so that every session has a child of its own.
    let settings = json!({
        "servers": {"shop": {"command": shop, "args": ["__demo-server"], "timeouts": {"idle": "5s"}}},
        "identity": {"anonymous": "ada"},
        "sessions": {"idle": "5s"},
        "page_size": 50 + round % 2,
    });
    settings.to_string()
}

fn memory(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap() << 10
}

fn descriptors(id: u32) -> usize {
    std::fs::read_dir(format!("/proc/{id}/fd")).unwrap().count()
}

/// Sessions are opened, used, refused and closed.
fn use_it(served: &ServedGateway, sandbox: &Sandbox, how_long: Duration) -> usize {
    let began = Instant::now();
    let mut round = 0;
    while began.elapsed() < how_long {
        round += 1;
        let opening = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "soak", "version": "1"},
        });
        let address = &served.address;
        let session = post(address, "", &request("initialize", &opening)).session;
        for (tool, is_error) in [("shop__echo", false), ("shop__nothing", true)] {
            let params = json!({"name": tool, "arguments": {"text": "x"}});
            let answer = post(address, &session, &request("tools/call", &params));
            let failed = answer.body["result"]["isError"] == Value::Bool(true);
            assert_eq!(failed, is_error, "{}", answer.body);
        }
        post(address, &session, &request("tools/list", &json!({})));
        // Half of them are closed, the others are forgotten when they were idle.
        if round % 2 == 0 {
            close(address, &session);
        }
        if round % 20 == 0 {
            sandbox.write("toolwarden.yaml", &settings(round / 20));
        }
    }
    round
}

fn close(address: &str, session: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "DELETE /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nMcp-Session-Id: {session}\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 2"), "{text}");
}

/// Waits until nothing is left of the sessions; gives memory and descriptors.
fn at_rest(served: &ServedGateway) -> (u64, usize) {
    let id = served.process.id();
    let mut least = (u64::MAX, usize::MAX);
    let deadline = Instant::now() + REST;
    while Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(500));
        least = (least.0.min(memory(id)), least.1.min(descriptors(id)));
    }
    least
}

#[test]
fn a_gateway_at_rest_has_given_back_what_it_took() {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", &settings(0));
    let mut command = sandbox.command();
    // What counts is what the gateway holds, not what the allocator keeps for a moment.
    command.env("MIMALLOC_PURGE_DELAY", "0");
    let served = ServedGateway::start_as(command, &[]);
    poll_until(|| (!served.tools().is_empty()).then_some(())).unwrap();
    use_it(&served, &sandbox, WARM_UP);
    let before = at_rest(&served);
    let rounds = use_it(&served, &sandbox, duration());
    let after = at_rest(&served);
    let most = before.0 + before.0 / 10 + SLACK;
    println!("{rounds} sessions: {before:?} before, {after:?} after");
    assert!(after.0 <= most, "{rounds} sessions: {before:?}, {after:?}");
    // A connection of the runtime may be closed or opened at the moment.
    assert!(after.1 <= before.1 + 3, "{before:?}, {after:?}");
}
