//! What the audit log costs beside plain SQLite: rows per second of every durability, and of batches
//! without chain and triggers, on the same disk in the same run.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark measures time, prints it, and ends where it cannot go on"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use toolwarden_guard::Durability;
use toolwarden_guard::audit::{ChainLink, RecordContent};
use toolwarden_live_guard::audit::{AuditOptions, AuditWriter, IntoRecord, verify};
use toolwarden_store::{RecordRow, Store, StoreError};

/// How long each line is measured.
const TIME: Duration = Duration::from_millis(700);
const TURNS: usize = 3;
const BATCHES: [usize; 4] = [1, 10, 100, 1_000];

/// What a decision leaves behind on its hot path: nothing is formatted yet.
struct Decided {
    at_ms: i64,
    number: u64,
    principal: Arc<str>,
    tool: Arc<str>,
    session: Arc<str>,
}

impl IntoRecord for Decided {
    fn content(self) -> RecordContent {
        RecordContent {
            at_ms: self.at_ms,
            kind: "decision".into(),
            principal: Some(self.principal),
            tool: Some(self.tool),
            session: Some(self.session),
            code: "allowed".into(),
            allowed: Some(true),
            body: format!(
                r#"{{"arguments":"sha256:3f1c9a0d5b7e","call":"call-{}","gates":["visible","permission","rate","arguments"],"latency_us":12,"policy":"sha256:77aa01","state":"ready"}}"#,
                self.number
            ),
        }
    }
}

/// Makes entries, each with a number.
#[derive(Clone)]
struct Source {
    principal: Arc<str>,
    tool: Arc<str>,
    session: Arc<str>,
}

impl Source {
    fn new() -> Self {
        Self {
            principal: Arc::from("agent:reports-7"),
            tool: Arc::from("files/read_text_file"),
            session: Arc::from("01JC4Z5T9Q8E7R6W5V4U3T2S1R"),
        }
    }

    fn entry(&self, number: u64) -> Decided {
        Decided {
            at_ms: 1_790_000_000_000 + i64::try_from(number).unwrap(),
            number,
            principal: Arc::clone(&self.principal),
            tool: Arc::clone(&self.tool),
            session: Arc::clone(&self.session),
        }
    }
}

fn main() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let at = |name: &str| folder.path().join(name);
    println!("| way | rows/s | µs/row | beside raw |\n|---|---:|---:|---:|");
    let mut raw = Vec::new();
    for batch in BATCHES {
        let (mut plain, mut chained) = (0.0_f64, 0.0_f64);
        // By turns and the best of each, for the disk is not equally fast at all times.
        for turn in 0..TURNS {
            plain = plain.max(raw_batches(&at(&format!("raw-{batch}-{turn}.db")), batch));
            chained = chained.max(chained_batches(
                &at(&format!("chain-{batch}-{turn}.db")),
                batch,
            ));
        }
        line(&format!("raw SQLite, batches of {batch}"), plain, None);
        line(
            &format!("chained, batches of {batch}"),
            chained,
            Some((plain, batch)),
        );
        raw.push(plain);
    }
    let one = raw.first().copied().unwrap();
    line(
        "sync, a thread",
        threads(&at("sync.db"), Durability::Sync, 1),
        Some((one, 1)),
    );
    for count in [1, 2, 16, 64] {
        let rate = threads(&at(&format!("group-{count}.db")), Durability::Group, count);
        let threads = if count == 1 {
            "a thread"
        } else {
            &format!("{count} threads")
        };
        line(&format!("group, {threads}"), rate, Some((one, 1)));
    }
    let most = raw.last().copied().unwrap();
    let (rate, submit) = queued(&at("async.db"));
    line("async, a thread, to the disk", rate, Some((most, 1_000)));
    println!("\nasync submit: {submit:.0} ns");
    println!("link: {:.0} ns", link_time());
    verification(&at("chain-1000-0.db"));
}

fn line(name: &str, rate: f64, raw: Option<(f64, usize)>) {
    let ratio = raw.map(|(raw, batch)| format!("{:.2} of {batch}", rate / raw));
    let ratio = ratio.unwrap_or_default();
    println!("| {name} | {rate:.0} | {:.1} | {ratio} |", 1e6 / rate);
}

/// The same columns and one index, without chain, head and triggers.
fn raw_batches(path: &Path, batch: usize) -> f64 {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = wal; PRAGMA synchronous = full;
             CREATE TABLE record (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL,
                principal TEXT, tool TEXT, session TEXT, code TEXT NOT NULL, allowed INTEGER,
                body TEXT NOT NULL, hash BLOB NOT NULL) STRICT;
             CREATE INDEX record_at ON record (at);",
        )
        .unwrap();
    let source = Source::new();
    rate(batch, |from| {
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let insert = "INSERT INTO record VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let mut insert = connection.prepare_cached(insert).unwrap();
        for number in from..from + batch as u64 {
            let it = source.entry(number).content();
            let seq = i64::try_from(number).unwrap();
            let columns = (
                seq,
                it.at_ms,
                &it.kind,
                &it.principal,
                &it.tool,
                &it.session,
                &it.code,
                it.allowed,
                &it.body,
                [0_u8; 32],
            );
            insert.execute(columns).unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
    })
}

/// What the writer does with a batch, on this thread.
fn chained_batches(path: &Path, batch: usize) -> f64 {
    let store = Store::open(path).unwrap();
    let source = Source::new();
    rate(batch, |from| {
        let appended: Result<(), StoreError> = store.append_records(|appender| {
            for number in from..from + batch as u64 {
                let it = source.entry(number).content();
                let (seq, hash) = (appender.head().seq, appender.head().hash);
                let link = ChainLink { seq, hash }.next(it.borrow());
                appender.append(&RecordRow {
                    seq: link.seq,
                    at_ms: it.at_ms,
                    kind: &it.kind,
                    principal: it.principal.as_deref(),
                    tool: it.tool.as_deref(),
                    session: it.session.as_deref(),
                    code: &it.code,
                    allowed: it.allowed,
                    body: &it.body,
                    hash: link.hash,
                })?;
            }
            Ok(())
        });
        appended.unwrap();
    })
}

/// Rows per second of a piece of work that writes one batch, given the first number.
fn rate(batch: usize, mut work: impl FnMut(u64)) -> f64 {
    let started = Instant::now();
    let mut rows = 0;
    while started.elapsed() < TIME {
        work(rows + 1);
        rows += batch as u64;
    }
    rows as f64 / started.elapsed().as_secs_f64()
}

/// The best of some turns with this many threads.
fn threads(path: &Path, durability: Durability, count: usize) -> f64 {
    let turns = (0..TURNS).map(|_| one_turn(path, durability, count));
    turns.fold(0.0, f64::max)
}

fn one_turn(path: &Path, durability: Durability, count: usize) -> f64 {
    let writer = AuditWriter::open(path, AuditOptions::new(durability)).unwrap();
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                let source = Source::new();
                rate(1, |number| writer.submit(source.entry(number)).unwrap())
            });
        }
    });
    writer.health().written as f64 / started.elapsed().as_secs_f64()
}

/// Rows per second until they are on the disk, and the nanoseconds of one submission.
fn queued(path: &Path) -> (f64, f64) {
    const ROWS: u64 = 200_000;
    const PIECE: usize = 1_000;
    let options = AuditOptions {
        capacity: 1 << 20,
        ..AuditOptions::new(Durability::Async)
    };
    let writer = AuditWriter::open(path, options).unwrap();
    let source = Source::new();
    let mut pieces = Vec::new();
    let mut rate: f64 = 0.0;
    for _ in 0..3 {
        let mut entries: Vec<_> = (0..ROWS).map(|number| source.entry(number)).collect();
        let started = Instant::now();
        while !entries.is_empty() {
            let piece = entries.split_off(entries.len().saturating_sub(PIECE));
            let begun = Instant::now();
            piece.into_iter().for_each(|it| writer.submit(it).unwrap());
            pieces.push(begun.elapsed().as_nanos() as f64 / PIECE as f64);
        }
        writer.flush().unwrap();
        rate = rate.max(ROWS as f64 / started.elapsed().as_secs_f64());
    }
    // The median: some pieces wait for the writer or for other processes.
    pieces.sort_by(f64::total_cmp);
    let submit = pieces.get(pieces.len() / 2).copied().unwrap();
    (rate, submit)
}

fn link_time() -> f64 {
    const ROWS: u32 = 200_000;
    let content = Source::new().entry(1).content();
    let started = Instant::now();
    let mut link = ChainLink::GENESIS;
    for _ in 0..ROWS {
        link = link.next(content.borrow());
    }
    assert_eq!(link.seq, u64::from(ROWS));
    started.elapsed().as_nanos() as f64 / f64::from(ROWS)
}

fn verification(path: &Path) {
    let store = Store::open(path).unwrap();
    let started = Instant::now();
    let found = verify(&store, None).unwrap();
    let records = found.chain.unwrap().records;
    let time = started.elapsed();
    let rate = records as f64 / time.as_secs_f64();
    println!("verify: {records} records in {time:.2?} ({rate:.0}/s)");
}
