//! Servers that send too much data cost the gateway no more memory than its limits say, and cost the
//! other servers nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;
use toolwarden_mcp::Era;

use super::{ServedGateway, ToolwardenProcess, poll_until, request};
use crate::sandbox::{Sandbox, data};

const MIB: u64 = 1 << 20;

/// The largest message of a server.
const MESSAGE: u64 = 64 * MIB;

/// What calls take without any flood, beside what the gateway takes at rest.
const OF_CALLS: u64 = 16 * MIB;

/// How many servers flood it at a time.
const FLOODS: u64 = 2;

/// A flood is held up to the limit of a message. While the buffer it is in grows, there are the old one
/// and a copy of it, both below the limit. On a busy machine the next flood may begin before the buffer of
/// the one that was given up is gone.
const OF_LINES: u64 = OF_CALLS + FLOODS * 3 * MESSAGE;

/// The messages of these floods have 1 MB at most. Each of the eight streams is kept for an agent that
/// comes back, up to 4 MiB. Of the two that are under way another 4 MiB wait for the agent, four pieces
/// are being sent, and there are not more than 24 copies of what is read and written at the moment.
const OF_MESSAGES: u64 = OF_CALLS + (8 * 4 + FLOODS * (4 + 4 + 24)) * MIB;

/// How often each flood comes.
const ROUNDS: usize = 3;

/// The most memory that a process has had at any time.
fn peak(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap() << 10
}

/// A server that is given up after a time and tried again soon.
fn held(mut entry: Value, limit: &str) -> Value {
    entry["sessions"] = json!("shared");
    entry["timeouts"] = json!({"request": limit});
    entry["restart"] = json!({"first": "10ms", "most": "50ms"});
    entry["breaker"] = json!({"failures": 1, "pause": "100ms"});
    entry
}

/// A gateway before two servers that flood it, each for so long at most, and one that does not.
fn start(sandbox: &Sandbox, limit: &str) -> (ServedGateway, ToolwardenProcess) {
    let script = data("server/flood.py");
    let mut site = Command::new("python3");
    site.args([&script, "http"]);
    let site = ToolwardenProcess::start(site);
    let url = site.wait_for("/mcp").trim().to_owned();
    let shop = cargo_bin!("toolwarden").to_str().unwrap();
    let settings = json!({
        "servers": {
            "program": held(json!({"command": "python3", "args": [script, "stdio"]}), limit),
            "site": held(json!({"url": url}), limit),
            "shop": {"command": shop, "args": ["__demo-server"], "sessions": "shared"},
        },
        "identity": {"anonymous": "ada"},
    });
    sandbox.write("toolwarden.yaml", &settings.to_string());
    let mut command = sandbox.command();
    // Memory that is given back is given back at once: what counts is what the gateway holds, not what
    // the allocator keeps for a moment.
    command.env("MIMALLOC_PURGE_DELAY", "0");
    let served = ServedGateway::start_as(command, &[]);
    poll_until(|| (served.tools().len() == 7 + 2 * 7).then_some(())).unwrap();
    (served, site)
}

/// Lets both servers flood the gateway at once, while the third is used, and waits until both are well
/// again.
fn flood(served: &ServedGateway, flood: impl Fn(&str) + Sync, servers: [&str; 2]) {
    let under_way = AtomicU32::new(2);
    std::thread::scope(|scope| {
        for tool in servers {
            let (flood, under_way) = (&flood, &under_way);
            scope.spawn(move || {
                let _end = CountOnDrop(under_way);
                flood(tool);
            });
        }
        let mut longest = Duration::ZERO;
        while under_way.load(Ordering::Relaxed) > 0 {
            let began = Instant::now();
            let echoed = served.call("shop__echo", &json!({"text": "still here"}));
            assert!(echoed["structuredContent"].is_object(), "{echoed}");
            longest = longest.max(began.elapsed());
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(longest < Duration::from_secs(5), "{longest:?}");
    });
    for tool in ["program__calm", "site__calm"] {
        let is_well = || served.call(tool, &json!({}))["isError"] != true;
        poll_until(|| is_well().then_some(()))
            .unwrap_or_else(|| panic!("{tool} never works again"));
    }
}

/// Counts down, also where an assertion does not hold.
struct CountOnDrop<'a>(&'a AtomicU32);

impl Drop for CountOnDrop<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn floods_are_bounded_by_the_message_limit() {
    let sandbox = Sandbox::new();
    let (served, _site) = start(&sandbox, "8s");
    let at_rest = peak(served.process.id());
    let is_lost = |tool: &str| {
        let result = served.call(tool, &json!({}));
        let code = &result["_meta"]["toolwarden/denial"]["code"];
        assert_eq!(code, "lost", "{tool}: {result}");
    };
    for _ in 0..ROUNDS {
        for servers in [
            ["program__line", "site__line"],
            ["program__endless", "site__endless"],
            ["program__line", "site__event"],
            ["program__endless", "site__unended"],
        ] {
            flood(&served, is_lost, servers);
        }
    }
    let more = peak(served.process.id()) - at_rest;
    assert!(more > MESSAGE, "{} MiB: nothing was held", more / MIB);
    assert!(more < OF_LINES, "{} MiB", more / MIB);
}

/// What makes a call one of its era: headers, and the `_meta` of its parameters.
fn dressed(served: &ServedGateway, era: Era, tool: &str) -> (String, Value) {
    match era {
        Era::Handshake => (format!("Mcp-Session-Id: {}", served.session()), json!({})),
        Era::Stateless => (
            format!(
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}"
            ),
            json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/logLevel": "debug",
            }),
        ),
    }
}

/// An agent that calls and does not read what comes, until the server has had its time.
fn call_and_sleep(served: &ServedGateway, era: Era, tool: &str) {
    let address = served.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).unwrap();
    let (headers, meta) = dressed(served, era, tool);
    let params = json!({"name": tool, "arguments": {}, "_meta": meta});
    let message = request("tools/call", &params);
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\n\r\n{message}",
        message.len()
    )
    .unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let mut begin = [0; 1_000];
    let read = stream.read(&mut begin).unwrap();
    let begin = String::from_utf8_lossy(&begin[..read]);
    assert!(begin.starts_with("HTTP/1.1 200 OK\r\n"), "{begin}");
    assert!(begin.contains("text/event-stream"), "{begin}");
}

#[test]
fn messages_do_not_pile_up_before_an_agent_that_does_not_read() {
    let sandbox = Sandbox::new();
    let (served, _site) = start(&sandbox, "2s");
    let at_rest = peak(served.process.id());
    for servers in [
        ["program__small", "site__small"],
        ["program__large", "site__large"],
    ] {
        for era in [Era::Handshake, Era::Stateless] {
            flood(&served, |tool| call_and_sleep(&served, era, tool), servers);
        }
    }
    let more = peak(served.process.id()) - at_rest;
    assert!(more < OF_MESSAGES, "{} MiB", more / MIB);
}
