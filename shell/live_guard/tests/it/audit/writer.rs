//! The writer when the log is too slow or cannot be written.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use toolwarden_guard::Durability;
use toolwarden_guard::audit::RecordContent;
use toolwarden_live_guard::audit::{AuditError, AuditOptions, AuditWriter, IntoRecord};

use super::{content, log, verified};

const BREAK: &str = "ALTER TABLE audit_record RENAME TO elsewhere";
const MEND: &str = "ALTER TABLE elsewhere RENAME TO audit_record";

fn wait_until(what: impl Fn() -> bool) {
    let started = Instant::now();
    while !what() {
        assert!(started.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An entry that becomes a record only when the test sends its content.
struct BlockingRecord(mpsc::Receiver<RecordContent>);

impl IntoRecord for BlockingRecord {
    fn content(self) -> RecordContent {
        self.0.recv().unwrap()
    }
}

#[test]
fn a_full_queue_refuses() {
    let (_folder, path) = log(0);
    let options = AuditOptions {
        capacity: 3,
        ..AuditOptions::new(Durability::Async)
    };
    let writer = AuditWriter::open(&path, options).unwrap();
    let mut held = Vec::new();
    for _ in 0..3 {
        let (sender, receiver) = mpsc::channel();
        writer.submit(BlockingRecord(receiver)).unwrap();
        held.push(sender);
    }
    let (_, receiver) = mpsc::channel();
    let told = writer.submit(BlockingRecord(receiver)).unwrap_err();
    assert!(matches!(told, AuditError::Full { capacity: 3 }), "{told}");
    assert_eq!(writer.health().queued, 3);
    held.into_iter().for_each(|it| it.send(content(1)).unwrap());
    writer.flush().unwrap();
    assert_eq!((writer.health().queued, writer.health().written), (0, 3));
    writer.close().unwrap();
    assert_eq!(verified(&path).head.seq, 3);
}

#[test]
fn a_group_is_acknowledged_after_its_commit() {
    let (_folder, path) = log(0);
    let writer = AuditWriter::open(&path, AuditOptions::new(Durability::Group)).unwrap();
    let blocker = Connection::open(&path).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (1..=8)
            .map(|number| {
                scope.spawn({
                    let writer = &writer;
                    move || writer.submit(content(number))
                })
            })
            .collect();
        wait_until(|| writer.health().queued == 8);
        assert!(waiters.iter().all(|it| !it.is_finished()));
        blocker.execute_batch("COMMIT").unwrap();
        for waiter in waiters {
            waiter.join().unwrap().unwrap();
        }
    });
    // A separate connection sees only committed records.
    assert_eq!(verified(&path).head.seq, 8);
}

#[test]
fn waiting_submitters_get_the_failure_and_nothing_is_written_later() {
    for durability in [Durability::Sync, Durability::Group] {
        let (_folder, path) = log(2);
        let writer = AuditWriter::open(&path, AuditOptions::new(durability)).unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute_batch(BREAK).unwrap();
        for number in 0..3 {
            let told = writer.submit(content(number)).unwrap_err();
            assert!(matches!(told, AuditError::Unwritable { .. }), "{told}");
        }
        assert!(writer.health().failure.is_some());
        other.execute_batch(MEND).unwrap();
        writer.submit(content(9)).unwrap();
        assert!(writer.health().failure.is_none());
        writer.close().unwrap();
        let found = verified(&path);
        assert!(found.is_intact(), "{found:?}");
        assert_eq!(found.head.seq, 3, "only what was acknowledged");
    }
}

#[test]
fn queued_records_outlast_a_failure() {
    let (_folder, path) = log(2);
    let writer = AuditWriter::open(&path, AuditOptions::new(Durability::Async)).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch(BREAK).unwrap();
    writer.submit(content(1)).unwrap();
    wait_until(|| writer.health().failure.is_some());
    let told = writer.submit(content(2)).unwrap_err();
    assert!(matches!(told, AuditError::Unwritable { .. }), "{told}");
    assert!(writer.flush().is_err());
    assert_eq!(writer.health().queued, 1);
    other.execute_batch(MEND).unwrap();
    wait_until(|| writer.health().failure.is_none());
    writer.submit(content(3)).unwrap();
    writer.close().unwrap();
    let found = verified(&path);
    assert!(found.is_intact(), "{found:?}");
    assert_eq!(found.head.seq, 4);
}

#[test]
fn closing_reports_lost_records() {
    let (_folder, path) = log(2);
    let writer = AuditWriter::open(&path, AuditOptions::new(Durability::Async)).unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch(BREAK)
        .unwrap();
    writer.submit(content(1)).unwrap();
    let told = writer.close().unwrap_err();
    assert!(
        matches!(told, AuditError::Lost { records: 1, .. }),
        "{told}"
    );
}

/// Otherwise SQLite would keep writing into a file that no longer has its name.
#[test]
fn a_file_that_was_moved_is_not_written() {
    for durability in [Durability::Sync, Durability::Group] {
        let (folder, path) = log(2);
        let writer = AuditWriter::open(&path, AuditOptions::new(durability)).unwrap();
        let aside = folder.path().join("aside.db");
        std::fs::rename(&path, &aside).unwrap();
        assert!(writer.submit(content(1)).is_err(), "gone");
        assert!(writer.submit(content(1)).is_err(), "no new one is made");
        std::fs::create_dir(&path).unwrap();
        assert!(writer.submit(content(1)).is_err(), "a directory");
        std::fs::remove_dir(&path).unwrap();
        std::fs::rename(&aside, &path).unwrap();
        writer.submit(content(1)).unwrap();
        drop(writer);
        assert_eq!(verified(&path).head.seq, 3);
    }
}

/// An entry whose conversion panics.
struct Broken;

impl IntoRecord for Broken {
    fn content(self) -> RecordContent {
        std::panic::resume_unwind(Box::new("no content"))
    }
}

#[test]
fn submitters_do_not_wait_for_an_ended_writer() {
    let (_folder, path) = log(0);
    let writer = AuditWriter::open(&path, AuditOptions::new(Durability::Group)).unwrap();
    for _ in 0..2 {
        let told = writer.submit(Broken).unwrap_err();
        assert!(matches!(told, AuditError::Closed), "{told}");
    }
    assert!(writer.close().is_err());
}
