//! Processes that left the process group of their server end with it.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{ServedGateway, is_running, parent_of, poll_until};
use crate::sandbox::Sandbox;

/// A server that leaves a process behind by a double fork, and writes down its id.
const SERVER: &str = r#"
import json, os, sys, time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for stream in (0, 1, 2):
            os.close(stream)
        with open("orphan", "w") as file:
            file.write(str(os.getpid()))
        time.sleep(3600)
    os._exit(0)

for line in sys.stdin:
    message = json.loads(line)
    id, method = message.get("id"), message.get("method")
    if id is None:
        continue
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}},
                  "serverInfo": {"name": "forks", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    else:
        result = {"content": []}
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
"#;

fn started(sandbox: &Sandbox) -> (ServedGateway, u32) {
    let settings = json!({
        "servers": {"forks": {"command": "python3", "args": ["-c", SERVER], "sessions": "shared", "cwd": "."}},
        "identity": {"anonymous": "ada"},
        "drain": "1s",
    });
    sandbox.write("toolwarden.yaml", &settings.to_string());
    let served = ServedGateway::start(sandbox, &[]);
    poll_until(|| (!served.tools().is_empty()).then_some(())).unwrap();
    let orphan = poll_until(|| {
        let text = std::fs::read_to_string(sandbox.path("orphan")).ok()?;
        text.parse::<u32>().ok()
    });
    let orphan = orphan.unwrap();
    let gateway = served.process.id();
    let place = format!("/proc/{orphan}");
    let adopted = poll_until(|| (parent_of(Path::new(&place)) == Some(gateway)).then_some(()));
    assert!(adopted.is_some(), "the gateway adopts it");
    (served, orphan)
}

fn gone(orphan: u32) {
    let deadline = Instant::now() + Duration::from_secs(15);
    while is_running(orphan) {
        assert!(Instant::now() < deadline, "{orphan} outlived the gateway");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn they_end_with_a_gateway_that_ends_in_order() {
    let sandbox = Sandbox::new();
    let (mut served, orphan) = started(&sandbox);
    served.process.signal("-TERM");
    served.process.end();
    gone(orphan);
}

#[test]
fn they_end_with_a_gateway_that_is_killed() {
    let sandbox = Sandbox::new();
    let (mut served, orphan) = started(&sandbox);
    // The second process is notified of it once a second.
    std::thread::sleep(Duration::from_secs(4));
    served.process.signal("-KILL");
    served.process.end();
    gone(orphan);
}
