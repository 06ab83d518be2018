//! The server that the suite tests.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::{fixtures, process};
use crate::packages::{Registry, installed};

/// How long the server may take to print its address.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A server on an official SDK that offers what the scenarios need. Dropping it ends the server.
#[derive(Debug)]
pub struct ConformanceServer {
    /// The address of the endpoint.
    pub url: String,
    child: Child,
}

impl ConformanceServer {
    /// Starts a server on the official Python SDK, in both eras, on a free loopback port. Returns
    /// `None` if the SDK cannot be installed here; the reason was printed.
    ///
    /// # Panics
    /// It does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_with("both")
    }

    /// Like [`Self::start`]; it refuses the stateless era as older servers do.
    ///
    /// # Panics
    /// It does not start.
    #[must_use]
    pub fn start_handshake_only() -> Option<Self> {
        Self::start_with("handshake")
    }

    /// Starts a server on the official TypeScript SDK. It speaks both eras. Only the handshake era
    /// has the tools that send requests to the client, and only the stateless era has those that
    /// ask for input.
    ///
    /// # Panics
    /// It does not start.
    #[must_use]
    pub fn start_typescript() -> Option<Self> {
        let packages = [
            "@modelcontextprotocol/server@2.4.0",
            "@modelcontextprotocol/node@2.1.2",
        ];
        let programs = installed(Registry::Npm, &packages)?;
        let mut command = Command::new("node");
        command
            .arg(fixtures().join("conformance/typescript/server.mjs"))
            .arg(programs.ancestors().nth(2)?)
            .arg("0");
        Some(Self::start_process(command))
    }

    fn start_with(eras: &str) -> Option<Self> {
        let programs = installed(Registry::PyPi, &["mcp==2.3.0"])?;
        let mut command = Command::new(programs.join("python"));
        command
            .arg(fixtures().join("conformance/server.py"))
            .args(["0", eras])
            // Writes no bytecode files beside the sources.
            .env("PYTHONDONTWRITEBYTECODE", "1");
        Some(Self::start_process(command))
    }

    #[expect(
        clippy::expect_used,
        reason = "a fixture that cannot start must fail the test"
    )]
    fn start_process(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the fixture server starts");
        let output = child.stdout.take().expect("its output is piped");
        let (sender, first) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            // A server that exits at once prints nothing.
            let _unread = BufReader::new(output).read_line(&mut line);
            let _gone = sender.send(line.trim().to_owned());
        });
        let url = first.recv_timeout(START_LIMIT).unwrap_or_default();
        let server = Self { url, child };
        assert!(!server.url.is_empty(), "the fixture server did not start");
        server
    }
}

impl Drop for ConformanceServer {
    fn drop(&mut self) {
        process::kill(&mut self.child);
    }
}
