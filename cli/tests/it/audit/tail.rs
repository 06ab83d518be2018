//! `tail --follow`, while others write.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::{append, audit_to, decision, long};
use crate::sandbox::Sandbox;

struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn start(place: &Sandbox, args: &[&str]) -> Self {
        let mut command = place.command();
        command.args(["audit", "tail", "--follow", "--store", "audit.db"]);
        command.args(args).stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let mut lines = out.lines().map_while(Result::ok);
            lines.try_for_each(|line| send.send(line)).ok();
        });
        Self { child, lines }
    }

    fn next(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    /// Ends it with a signal; gives its code and what it still said.
    fn end(self, signal: &str) -> (Option<i32>, Vec<String>, String) {
        let pid = self.child.id().to_string();
        let killed = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(killed.success());
        let output = self.child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), self.lines.iter().collect(), err)
    }
}

fn seq(line: &str) -> u64 {
    let record: serde_json::Value = serde_json::from_str(line).unwrap();
    record["seq"].as_u64().unwrap()
}

#[test]
fn records_of_others_are_seen_and_removal_is_survived() {
    let place = long(5);
    let path = place.path("audit.db");
    let follower = Follower::start(&place, &["-n", "2", "--format", "ndjson"]);
    assert_eq!([seq(&follower.next()), seq(&follower.next())], [4, 5]);
    append(&path, [decision(6)]);
    assert_eq!(seq(&follower.next()), 6);
    audit_to(0, &place, &["prune", "--keep", "0", "--yes"]);
    let checkpoint = follower.next();
    assert!(
        checkpoint.contains("\"kind\":\"checkpoint\""),
        "{checkpoint}"
    );
    append(&path, [decision(7)]);
    assert_eq!(seq(&follower.next()), 8);
    assert_eq!(follower.end("-TERM"), (Some(0), vec![], String::new()));
}

#[test]
fn only_what_is_wanted_is_followed() {
    let place = long(5);
    let path = place.path("audit.db");
    let follower = Follower::start(&place, &["-n", "1", "--tool", "write_file"]);
    let mine = |number| toolwarden_guard::audit::RecordContent {
        tool: Some("write_file".into()),
        ..decision(number)
    };
    // Nothing to start with matches, so the first line tells that it follows.
    append(&path, [decision(6), mine(7), decision(8)]);
    assert!(follower.next().contains(" write_file "));
    append(&path, [decision(9), mine(10)]);
    assert!(follower.next().starts_with("10 "));
    assert_eq!(follower.end("-INT"), (Some(0), vec![], String::new()));
}

#[test]
fn moved_log_is_reported() {
    let place = long(1);
    let follower = Follower::start(&place, &[]);
    follower.next();
    std::fs::rename(place.path("audit.db"), place.path("elsewhere.db")).unwrap();
    let output = follower.child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("no longer the file that was opened"), "{err}");
}
