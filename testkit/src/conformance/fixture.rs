//! The server that the suite is put to.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::{fixtures, process};
use crate::installed::{Registry, installed};

/// How long the server may take to say where it is.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A server on the official Python SDK that offers what the scenarios need, in both eras. It is
/// gone when it is dropped.
#[derive(Debug)]
pub struct ConformanceServer {
    /// The address of the endpoint.
    pub url: String,
    child: Child,
}

impl ConformanceServer {
    /// Starts it on a free port of loopback. `None` means that the SDK cannot be had here, and that
    /// this was said.
    ///
    /// # Panics
    /// It does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_with("both")
    }

    /// As [`Self::start`]; it refuses the stateless era as older servers do.
    ///
    /// # Panics
    /// It does not start.
    #[must_use]
    pub fn start_of_handshake_era() -> Option<Self> {
        Self::start_with("handshake")
    }

    #[expect(
        clippy::expect_used,
        reason = "a fixture that cannot start must fail the test"
    )]
    fn start_with(eras: &str) -> Option<Self> {
        let programs = installed(Registry::PyPi, &["mcp==2.3.0"])?;
        let mut child = Command::new(programs.join("python"))
            .arg(fixtures().join("conformance/server.py"))
            .args(["0", eras])
            // Nothing is written beside the sources.
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python starts");
        let output = child.stdout.take().expect("its output is piped");
        let (sender, first) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            // A server that ends at once says nothing.
            let _unread = BufReader::new(output).read_line(&mut line);
            let _gone = sender.send(line.trim().to_owned());
        });
        let url = first.recv_timeout(START_LIMIT).unwrap_or_default();
        let server = Self { url, child };
        assert!(!server.url.is_empty(), "the fixture server did not start");
        Some(server)
    }
}

impl Drop for ConformanceServer {
    fn drop(&mut self) {
        process::end(&mut self.child);
    }
}
