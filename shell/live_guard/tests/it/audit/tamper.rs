//! An attacker with access to the file changes it, after removing the triggers.

use std::path::Path;

use rusqlite::Connection;
use toolwarden_guard::audit::{ChainFault, ChainLink};
use toolwarden_live_guard::audit::verify;
use toolwarden_store::{RecordFilter, Store};

use super::{bodies, fault, head, log, verified};

/// Changes the file as its owner could.
pub(super) fn edit(path: &Path, statements: &str) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "DROP TRIGGER audit_record_is_not_rewritten; DROP TRIGGER audit_record_is_not_removed;
             DROP TRIGGER audit_head_only_moves_on; DROP TRIGGER audit_head_is_not_removed;",
        )
        .unwrap();
    connection.execute_batch(statements).unwrap();
}

#[track_caller]
fn check(statements: &str, expected: &ChainFault) {
    let (_folder, path) = log(40);
    edit(&path, statements);
    assert_eq!(&fault(&path), expected, "{statements}");
}

#[test]
fn every_column_counts() {
    for assignment in [
        "at = at + 1",
        "kind = 'outcome'",
        "principal = 'eve'",
        "principal = NULL",
        "tool = 'other'",
        "tool = ''",
        "session = 's-2'",
        "session = session || char(0)",
        "code = 'allowed '",
        "allowed = 1 - allowed",
        "allowed = NULL",
        "allowed = 7",
        "body = '{}'",
        "body = body || ' '",
        "body = CAST(x'ff' AS TEXT)",
        "hash = zeroblob(32)",
        "hash = x''",
        "hash = (SELECT hash FROM audit_record WHERE seq = 19)",
    ] {
        let statement = format!("UPDATE audit_record SET {assignment} WHERE seq = 20");
        check(&statement, &ChainFault::Changed { seq: 20 });
    }
}

#[test]
fn every_place_counts() {
    let changed = |seq| ChainFault::Changed { seq };
    let missing = |seq| ChainFault::Missing { seq };
    let start = ChainFault::StartMissing {
        expected: 1,
        first: 2,
    };
    check("DELETE FROM audit_record WHERE seq = 1", &start);
    check("DELETE FROM audit_record WHERE seq = 20", &missing(20));
    let tail = ChainFault::TailMissing {
        expected: 40,
        found: 39,
    };
    check("DELETE FROM audit_record WHERE seq = 40", &tail);
    let tail = ChainFault::TailMissing {
        expected: 40,
        found: 0,
    };
    check("DELETE FROM audit_record", &tail);
    check(
        "UPDATE audit_record SET seq = 1000 WHERE seq = 20;
         UPDATE audit_record SET seq = 20 WHERE seq = 21;
         UPDATE audit_record SET seq = 21 WHERE seq = 1000",
        &changed(20),
    );
    check(
        "DELETE FROM audit_record WHERE seq = 20;
         UPDATE audit_record SET seq = -seq WHERE seq > 20;
         UPDATE audit_record SET seq = -seq - 1 WHERE seq < 0;
         UPDATE audit_head SET seq = 39",
        &changed(20),
    );
    check(
        "UPDATE audit_record SET seq = 1000 WHERE seq = 20",
        &missing(20),
    );
    check(
        "UPDATE audit_record SET seq = 1000 WHERE seq = 40",
        &missing(40),
    );
    let unexpected = |seq| ChainFault::Unexpected { seq };
    check(
        "UPDATE audit_record SET seq = 0 WHERE seq = 20",
        &unexpected(0),
    );
    check(
        "UPDATE audit_record SET seq = -5 WHERE seq = 20",
        &unexpected(-5),
    );
    let copy = "SELECT 41, at, kind, principal, tool, session, code, allowed, body, hash
                FROM audit_record WHERE seq = 40";
    check(&format!("INSERT INTO audit_record {copy}"), &changed(41));
    check(
        &format!("INSERT INTO audit_record {copy}; UPDATE audit_head SET seq = 41"),
        &changed(41),
    );
    let differs = ChainFault::HeadDiffers { seq: 40 };
    check("UPDATE audit_head SET hash = zeroblob(32)", &differs);
    let beyond = ChainFault::BeyondHead { seq: 40 };
    check("UPDATE audit_head SET seq = 39", &beyond);
}

/// A chain without a key cannot reveal this on its own; a head noted elsewhere can.
#[test]
fn a_cut_tail_needs_a_noted_head() {
    let (_folder, path) = log(40);
    let noted = head(&path);
    edit(
        &path,
        "DELETE FROM audit_record WHERE seq > 30;
         UPDATE audit_head SET seq = 30, hash = (SELECT hash FROM audit_record WHERE seq = 30)",
    );
    assert!(verified(&path).is_intact());
    let told = |noted| {
        let store = Store::open(&path).unwrap();
        verify(&store, Some(noted)).unwrap().chain
    };
    assert_eq!(told(noted), Err(ChainFault::NotedMissing { seq: 40 }));
    let before = ChainLink { seq: 30, ..noted };
    assert_eq!(told(before), Err(ChainFault::NotedDiffers { seq: 30 }));
}

/// Pseudo-random numbers that are the same in every run.
pub(super) const fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Flips any byte of the file: the log never counts as intact if its content changed.
#[test]
fn no_flipped_byte_passes_for_intact() {
    let (folder, path) = log(600);
    let all = RecordFilter::default();
    let original = bodies(&Store::open(&path).unwrap(), &all);
    let original_head = head(&path);
    let bytes = std::fs::read(&path).unwrap();
    let size = u64::try_from(bytes.len()).unwrap();
    let copy = folder.path().join("copy.db");
    let mut state = 20_261_123;
    let (mut told, mut intact) = (0, 0);
    for _ in 0..400 {
        let mut bytes = bytes.clone();
        let place = usize::try_from(random(&mut state) % size).unwrap();
        bytes[place] ^= u8::try_from(1 + random(&mut state) % 255).unwrap();
        for extra in ["copy.db-wal", "copy.db-shm"] {
            // The previous copy left it, if SQLite could not close it.
            drop(std::fs::remove_file(folder.path().join(extra)));
        }
        std::fs::write(&copy, bytes).unwrap();
        let found = Store::open(&copy).and_then(|store| {
            let found = verify(&store, None)?;
            Ok((found, store))
        });
        match found {
            Ok((found, store)) if found.is_intact() => {
                assert_eq!(found.head, original_head, "byte {place}");
                assert_eq!(bodies(&store, &all), original, "byte {place}");
                intact += 1;
            }
            _ => told += 1,
        }
    }
    assert!(told > 100, "{told} told, {intact} without effect");
}
