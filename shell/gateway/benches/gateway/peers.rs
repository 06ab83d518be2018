//! Other programs that stand between clients and a server.

use std::process::{Command, Stdio};

use toolwarden_testkit::{Registry, installed};

use super::part::{Part, free_port};

pub(crate) const FASTMCP: &str = "FastMCP 4.1.2 proxy";
pub(crate) const MCP_PROXY: &str = "mcp-proxy 0.13.0";

/// FastMCP's proxy before an HTTP server, or nothing where it cannot be installed.
pub(crate) fn fastmcp(server: &str) -> Option<Part> {
    let programs = installed(Registry::PyPi, &["fastmcp==4.1.2"])?;
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../benches/gateway_peers.py"
    );
    let port = free_port();
    let mut command = Command::new(programs.join("python"));
    command.args([script, server, &port.to_string()]);
    Some(Part::start_other(quiet(command), port))
}

/// `mcp-proxy` before a server on standard streams: HTTP is what it offers, and not what it asks.
pub(crate) fn mcp_proxy() -> Option<Part> {
    let programs = installed(Registry::PyPi, &["mcp-proxy==0.13.0"])?;
    let server = std::env::current_exe().unwrap();
    let port = free_port();
    let mut command = Command::new(programs.join("mcp-proxy"));
    command
        .args(["--host", "127.0.0.1", "--port", &port.to_string()])
        .args(["--log-level", "ERROR", "--"])
        .arg(server)
        .args(["echo-lines", "1"]);
    Some(Part::start_other(quiet(command), port))
}

fn quiet(mut command: Command) -> Command {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}
