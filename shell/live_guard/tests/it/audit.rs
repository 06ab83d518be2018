//! The audit log on real files: verification detects changes, and a checkpoint accounts for removed
//! records.

mod crash;
mod tamper;
mod writer;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;
use toolwarden_guard::Durability;
use toolwarden_guard::audit::{ChainFault, ChainLink, HeadCheck, RecordContent};
use toolwarden_live_guard::audit::{AuditOptions, AuditWriter, Verification, prune, verify};
use toolwarden_store::{CountBy, PruneRange, PrunedRecords, RecordFilter, Store};

const START: i64 = 1_790_000_000_000;

fn content(number: i64) -> RecordContent {
    let allowed = number % 3 != 0;
    RecordContent {
        at_ms: START + number * 1_000,
        kind: "decision".into(),
        principal: Some(format!("agent-{}", number % 2).into()),
        tool: (number % 5 != 0).then(|| format!("tool-{}", number % 4).into()),
        session: Some("s-1".into()),
        code: if allowed { "allowed" } else { "rate_limited" }.into(),
        allowed: Some(allowed),
        body: format!(r#"{{"call":{number}}}"#),
    }
}

/// A log with records from 1 on.
fn log(records: i64) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    append(&path, 1..=records);
    (folder, path)
}

fn append(path: &Path, numbers: impl Iterator<Item = i64>) {
    let writer = AuditWriter::open(path, AuditOptions::new(Durability::Async)).unwrap();
    numbers.for_each(|number| writer.submit(content(number)).unwrap());
    writer.close().unwrap();
}

fn verified(path: &Path) -> Verification {
    verify(&Store::open(path).unwrap(), None).unwrap()
}

fn head(path: &Path) -> ChainLink {
    verified(path).head
}

fn fault(path: &Path) -> ChainFault {
    verified(path).chain.unwrap_err()
}

/// The bodies of the records that match a filter.
fn bodies(store: &Store, filter: &RecordFilter) -> Vec<String> {
    let mut bodies = Vec::new();
    let each = |row: &toolwarden_store::RecordRow<'_>| {
        bodies.push(row.body.to_owned());
        ControlFlow::Continue(())
    };
    store.records(filter, each).unwrap();
    bodies
}

#[test]
fn records_are_found_and_counted() {
    let (_folder, path) = log(30);
    let store = Store::open(&path).unwrap();
    let found = |filter: &RecordFilter| {
        let bodies = bodies(&store, filter);
        let numbers = bodies.iter().map(|body| {
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            body["call"].as_i64().unwrap()
        });
        numbers.collect::<Vec<_>>()
    };
    let all = RecordFilter::default();
    assert_eq!(found(&all), (1..=30).collect::<Vec<_>>());
    let filter = RecordFilter {
        since_ms: Some(START + 10_000),
        until_ms: Some(START + 20_000),
        denied: true,
        newest_first: true,
        limit: Some(2),
        ..RecordFilter::default()
    };
    assert_eq!(found(&filter), [18, 15]);
    let filter = RecordFilter {
        tool: Some("tool-1".to_owned()),
        principal: Some("agent-1".to_owned()),
        session: Some("s-1".to_owned()),
        code: Some("allowed".to_owned()),
        kind: Some("decision".to_owned()),
        after_seq: Some(1),
        ..RecordFilter::default()
    };
    assert_eq!(found(&filter), [13, 17, 29]);
    let never = RecordFilter {
        since_ms: Some(i64::MAX),
        ..RecordFilter::default()
    };
    assert_eq!(found(&never), [0; 0]);
    let counted = |by, filter| {
        let counts = store.count_records(filter, by).unwrap().into_iter();
        let lines = counts.map(|it| {
            let key = it.key.unwrap_or_else(|| "-".to_owned());
            format!("{key} {} {} {}", it.records, it.allowed, it.denied)
        });
        lines.collect::<Vec<_>>()
    };
    assert_eq!(
        counted(CountBy::Code, &all),
        ["allowed 20 20 0", "rate_limited 10 0 10"]
    );
    assert_eq!(
        counted(CountBy::Tool, &all),
        [
            "- 6 4 2",
            "tool-0 6 4 2",
            "tool-1 6 4 2",
            "tool-2 6 4 2",
            "tool-3 6 4 2"
        ]
    );
    assert_eq!(
        counted(CountBy::Hour, &filter),
        ["2026-09-21T14:00:00Z 3 3 0"]
    );
    assert_eq!(counted(CountBy::Kind, &never), [""; 0]);
}

#[test]
fn removed_records_are_accounted_for() {
    let (_folder, path) = log(50);
    let store = Store::open(&path).unwrap();
    let old = head(&path);
    let cut = PruneRange::Before(START + 21_000);
    let first = prune(&store, cut, START, "ada").unwrap().unwrap();
    assert_eq!((first.records, first.through), (20, 20));
    assert_eq!(
        verified(&path).chain.unwrap().records,
        31,
        "and the checkpoint"
    );
    assert_eq!(
        prune(&store, PruneRange::Keep(31), START, "ada").unwrap(),
        None
    );
    append(&path, 51..=60);
    let second = prune(&store, PruneRange::Keep(5), START, "ada")
        .unwrap()
        .unwrap();
    assert_eq!(
        (second.records, second.through),
        (36, 56),
        "the old checkpoint went too"
    );
    let found = verified(&path);
    assert!(found.is_intact(), "{found:?}");
    assert_eq!(
        found.removed,
        ChainLink {
            seq: 56,
            hash: second.hash
        }
    );
    let noted = |link| verify(&store, Some(link)).unwrap().chain.unwrap().noted;
    assert_eq!(noted(old), HeadCheck::Removed);
    assert_eq!(noted(found.removed), HeadCheck::Confirmed);
    assert_eq!(noted(found.head), HeadCheck::Confirmed);
    let all = prune(&store, PruneRange::Before(i64::MAX), START, "ada")
        .unwrap()
        .unwrap();
    assert_eq!((all.records, all.through), (6, 62));
    assert_eq!(
        verified(&path).chain.unwrap().records,
        1,
        "the checkpoint stays"
    );
    append(&path, 61..=70);
    assert!(verified(&path).is_intact());
}

#[test]
fn an_unaccounted_removal_is_detected() {
    let cases: [(&str, ChainFault); 4] = [
        (
            "DELETE FROM audit_record WHERE seq <= 25",
            ChainFault::StartMissing {
                expected: 21,
                first: 26,
            },
        ),
        (
            "UPDATE audit_head SET removed_through = 25,
                removed_hash = (SELECT hash FROM audit_record WHERE seq = 25);
             DELETE FROM audit_record WHERE seq <= 25",
            ChainFault::RemovalUnproven { through: 25 },
        ),
        (
            "UPDATE audit_head SET removed_hash = zeroblob(32)",
            ChainFault::Changed { seq: 21 },
        ),
        (
            "UPDATE audit_record SET body = replace(body, '20', '19') WHERE kind = 'checkpoint'",
            ChainFault::Changed { seq: 51 },
        ),
    ];
    for (edit, expected) in cases {
        let (_folder, path) = log(50);
        let store = Store::open(&path).unwrap();
        let removal: PrunedRecords = prune(&store, PruneRange::Keep(30), START, "ada")
            .unwrap()
            .unwrap();
        assert_eq!(removal.through, 20);
        drop(store);
        tamper::edit(&path, edit);
        assert_eq!(fault(&path), expected, "{edit}");
    }
}

#[test]
fn the_store_itself_refuses_what_it_can() {
    let (_folder, path) = log(3);
    let connection = Connection::open(&path).unwrap();
    for statement in [
        "UPDATE audit_record SET body = '' WHERE seq = 2",
        "DELETE FROM audit_record WHERE seq = 2",
        "DELETE FROM audit_head",
        "UPDATE audit_head SET seq = 2",
        "UPDATE audit_head SET removed_through = 4",
        "INSERT INTO audit_head VALUES (2, 0, x'', 0, x'')",
    ] {
        assert!(connection.execute(statement, []).is_err(), "{statement}");
    }
    assert!(verified(&path).is_intact());
}

#[test]
fn several_stores_append_to_one_chain() {
    let (_folder, path) = log(1);
    std::thread::scope(|scope| {
        for durability in [Durability::Sync, Durability::Group, Durability::Async] {
            let path = &path;
            for _ in 0..2 {
                scope.spawn(move || {
                    let writer = AuditWriter::open(path, AuditOptions::new(durability)).unwrap();
                    (0..50).for_each(|number| writer.submit(content(number)).unwrap());
                    writer.close().unwrap();
                });
            }
        }
    });
    let found = verified(&path);
    assert!(found.is_intact(), "{found:?}");
    assert_eq!(found.head.seq, 301);
}
