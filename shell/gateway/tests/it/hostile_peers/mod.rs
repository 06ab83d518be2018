//! Malicious agents and servers, each with a limit on the time, bytes or descriptors they cost.

mod environment;
mod floods;
mod members;
mod records;
mod sharing;

use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_gateway::upstream::Upstream;

use crate::support::TestGateway;

/// A server of `hostile.py`, which floods the gateway on request.
fn hostile() -> Value {
    json!({"command": "python3", "args": ["-c", include_str!("hostile.py")], "sessions": "shared"})
}

/// A server behind a gateway.
fn upstream(gateway: &TestGateway, name: &str) -> Arc<Upstream> {
    let mut all = gateway.gateway.upstreams().into_iter();
    all.find(|it| it.name() == name).unwrap()
}

/// The most memory this process has had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap() << 10
}
