//! A process that is killed at any moment loses no record that was acknowledged as written.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use toolwarden_guard::Durability;
use toolwarden_guard::audit::RecordContent;
use toolwarden_live_guard::audit::{AuditOptions, AuditWriter, prune, verify};
use toolwarden_store::{PruneRange, RecordFilter, Store};

use super::tamper::random;
use super::{START, bodies, content};

const ROUNDS: u64 = 200;
const THREADS: u64 = 4;
const STORE: &str = "TOOLWARDEN_AUDIT_CRASH_STORE";
const ROUND: &str = "TOOLWARDEN_AUDIT_CRASH_ROUND";

#[test]
fn nothing_acknowledged_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    drop(Store::open(&path).unwrap());
    let mut state = 20_261_124;
    let mut acknowledged = BTreeSet::new();
    let mut total = 0;
    for round in 0..ROUNDS {
        let after = Duration::from_millis(10 + random(&mut state) % 30);
        let told = killed(&path, round, after);
        total += told.len();
        acknowledged.extend(told);
        let store = Store::open(&path).unwrap();
        let found = verify(&store, None).unwrap();
        assert!(found.is_intact(), "round {round}: {found:?}");
        let kept: BTreeSet<String> = bodies(&store, &RecordFilter::default())
            .into_iter()
            .collect();
        let lost: Vec<_> = acknowledged.difference(&kept).collect();
        assert!(lost.is_empty(), "round {round}: {lost:?}");
        if round % 20 == 19 {
            // Keeps the log short, and lets crashes also hit retention.
            prune(&store, PruneRange::Keep(100), START, "test").unwrap();
            acknowledged.clear();
        }
    }
    assert!(total > 1_000, "only {total} records were acknowledged");
}

/// Starts a process that appends, kills it, and returns the records it acknowledged.
fn killed(path: &Path, round: u64, after: Duration) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "audit::crash::appends_until_killed",
            "--exact",
            "--nocapture",
        ])
        .env(STORE, path)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    child.kill().unwrap();
    let mut told = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "it was killed");
    let told = String::from_utf8(told).unwrap();
    let whole = told
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'));
    whole
        .filter(|line| line.starts_with('{'))
        .map(str::to_owned)
        .collect()
}

/// Not a test on its own: the process that the other test kills.
#[test]
fn appends_until_killed() {
    let Some(path) = std::env::var_os(STORE).map(PathBuf::from) else {
        return;
    };
    let round = std::env::var(ROUND).unwrap();
    let durability = match round.parse::<u64>().unwrap() % 2 {
        0 => Durability::Group,
        _ => Durability::Sync,
    };
    let writer = AuditWriter::open(&path, AuditOptions::new(durability)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (writer, round) = (&writer, &round);
            scope.spawn(move || {
                for number in 0_u64.. {
                    let body = format!(r#"{{"call":"{round}-{thread}-{number}"}}"#);
                    let line = format!("{body}\n");
                    let content = RecordContent { body, ..content(1) };
                    writer.submit(content).unwrap();
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}
