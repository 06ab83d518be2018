//! Programs and everything they started end with the client.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use toolwarden_mcp::{ConnectionLimits, McpClient};

use crate::support::{example, fixture, scratch, short, stdio_fixture};

/// Whether a process exists and is not a zombie.
fn alive(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .trim_start()
            .starts_with('Z')
    })
}

async fn all_end(pids: &str) {
    for _ in 0..100 {
        if !pids.split(' ').any(alive) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("still alive: {pids}");
}

#[tokio::test]
async fn closing_ends_grandchildren() {
    for mode in ["launcher", "stubborn"] {
        let path = scratch(&format!("closing-{mode}.pids"));
        let endpoint = stdio_fixture(mode, &[path.to_str().unwrap()]);
        let client = McpClient::connect(&endpoint, &short()).await.unwrap();
        let pids = fs::read_to_string(path).unwrap();
        assert!(pids.split(' ').all(alive), "{pids}");
        client.close().await;
        all_end(&pids).await;
    }
}

#[tokio::test]
async fn dropping_ends_grandchildren() {
    let path = scratch("dropping.pids");
    let endpoint = stdio_fixture("stubborn", &[path.to_str().unwrap()]);
    let client = McpClient::connect(&endpoint, &short()).await.unwrap();
    let pids = fs::read_to_string(path).unwrap();
    assert!(pids.split(' ').all(alive), "{pids}");
    drop(client);
    all_end(&pids).await;
}

#[tokio::test]
async fn an_orderly_close_waits_for_nothing() {
    let limits = ConnectionLimits {
        close: Duration::from_secs(60),
        ..short()
    };
    let endpoint = stdio_fixture("handshake", &[]);
    let client = McpClient::connect(&endpoint, &limits).await.unwrap();
    let started = Instant::now();
    client.close().await;
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn killed_program_leaves_no_process() {
    for mode in ["launcher", "stubborn"] {
        let path = scratch(&format!("killed-{mode}.pids"));
        let mut keeper = Process::new(example("keeper"))
            .arg("python3")
            .arg(fixture("stdio_server.py"))
            .args([mode, path.to_str().unwrap()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(keeper.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let pids = fs::read_to_string(path).unwrap();
        assert!(pids.split(' ').all(alive), "{pids}");
        keeper.kill().unwrap();
        keeper.wait().unwrap();
        all_end(&pids).await;
    }
}
