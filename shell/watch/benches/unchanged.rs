//! What a check of unchanged tools costs compared with parsing them, with pins in a store and in a lock file.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark measures time, prints it, and ends where it cannot go on"
)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;
use toolwarden_canon::split;
use toolwarden_drift::Options;
use toolwarden_model::Format;
use toolwarden_model::json::parse;
use toolwarden_store::{Approval, ServerKey, Store};
use toolwarden_watch::{
    CheckSource, LockFile, LockedServer, LockedTool, Observation, Pins, PinsError, RecordOptions,
    ServerListing, pin, run_check,
};

const SIZES: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];

fn main() {
    let Some(definitions) = definitions() else {
        return;
    };
    println!("tools    MB     parse      store (ratio)       lock (ratio)");
    for size in SIZES {
        measure(&definitions, size);
    }
}

/// The definitions of published servers.
fn definitions() -> Option<Vec<Value>> {
    let samples = toolwarden_testkit::corpus_definitions()?.into_iter();
    let mcp = samples.filter(|sample| sample.label == "mcp");
    let values = mcp.map(|sample| serde_json::from_str(&sample.text).unwrap());
    Some(values.collect())
}

fn measure(definitions: &[Value], size: usize) {
    let folder = tempfile::tempdir().unwrap();
    let texts = texts(definitions, size);
    let file = folder.path().join("tools.json");
    std::fs::write(&file, format!("[{}]", texts.join(",\n"))).unwrap();
    let key = ServerKey {
        name: "bench".to_owned(),
        scope: "default".to_owned(),
    };
    let approval = Approval {
        by: "bench".to_owned(),
        at: Timestamp::UNIX_EPOCH,
        why: None,
    };
    let observed: Vec<Observation> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| Observation::parse(&name(index), Format::Mcp, text).unwrap())
        .collect();
    let lock_path = folder.path().join("toolwarden.lock");
    lock(&observed, &key).write(&lock_path).unwrap();
    let store = Store::open(&folder.path().join("store.db")).unwrap();
    let listing = ServerListing {
        observed,
        is_complete: true,
        ..ServerListing::default()
    };
    pin(&store, &key, &listing, true, "1", &approval).unwrap();
    drop(listing);

    let rounds = (200_000 / size).clamp(3, 50);
    let parsing = fastest(rounds, || parse_all(&file));
    let by_store = fastest(rounds, || {
        let load = || Pins::from_store(&store, &key).unwrap();
        check(&file, load, &approval, size);
    });
    let by_lock = fastest(rounds, || {
        let lock = LockFile::read(&lock_path).unwrap();
        check(&file, || Pins::from_lock(&lock, &key), &approval, size);
    });
    let ratio = |time: Duration| time.as_secs_f64() / parsing.as_secs_f64();
    println!(
        "{size:>6} {:>5.1} {:>9.2?} {:>11.2?} ({:.2}) {:>11.2?} ({:.2})",
        texts.iter().map(String::len).sum::<usize>() as f64 / 1e6,
        parsing,
        by_store,
        ratio(by_store),
        by_lock,
        ratio(by_lock),
    );
}

fn name(index: usize) -> String {
    format!("tool_{index}")
}

fn texts(definitions: &[Value], size: usize) -> Vec<String> {
    let definitions = definitions.iter().cycle().take(size).enumerate();
    let named = definitions.map(|(index, definition)| {
        let mut definition = definition.clone();
        if let Some(members) = definition.as_object_mut() {
            members.insert("name".to_owned(), name(index).into());
        }
        definition.to_string()
    });
    named.collect()
}

fn lock(observed: &[Observation], key: &ServerKey) -> LockFile {
    let tools = observed.iter().map(|seen| {
        let tool = LockedTool {
            kept: seen.kept(),
            text: seen.shared_text(),
            version: "1".to_owned(),
            approval: None,
            shape: None,
        };
        (seen.name.clone(), tool)
    });
    let server = LockedServer {
        sealed: true,
        tools: tools.collect(),
    };
    LockFile {
        servers: BTreeMap::from([(key.clone(), server)]),
    }
}

/// The least that any reader of tools does: read the file and build the values.
fn parse_all(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    for item in split(&text).unwrap() {
        black_box(parse(item.text).unwrap());
    }
}

/// A check of a file whose tools are looked up in the pins and parsed only if they differ.
struct FileCheck<'f, F> {
    file: &'f Path,
    load: F,
    listing: ServerListing,
}

impl<'k, F: FnMut() -> Pins<'k>> CheckSource<'k> for FileCheck<'_, F> {
    type Error = PinsError;

    fn load_pins(&mut self) -> Result<Pins<'k>, PinsError> {
        Ok((self.load)())
    }

    fn read_listing(&mut self, pins: &Pins<'k>) {
        let text = std::fs::read_to_string(self.file).unwrap();
        for item in split(&text).unwrap() {
            if let Some(name) = pins.match_exact(item.text) {
                self.listing.unchanged.push(name.to_owned());
            }
        }
    }

    fn listing(&mut self) -> &mut ServerListing {
        &mut self.listing
    }
}

fn check<'k>(file: &Path, load: impl FnMut() -> Pins<'k>, approval: &Approval, size: usize) {
    let mut source = FileCheck {
        file,
        load,
        listing: ServerListing {
            is_complete: true,
            ..ServerListing::default()
        },
    };
    let recording = RecordOptions {
        approval,
        version: "1",
        seal: true,
        alert_on: &[],
        alert_on_equivalent: false,
        wanted: &[],
    };
    let outcome = run_check(&mut source, &Options::default(), &[], &recording)
        .unwrap()
        .outcome;
    assert_eq!(
        (outcome.unchanged.len(), outcome.drift.tools.len()),
        (size, 0)
    );
}

fn fastest(rounds: usize, mut run: impl FnMut()) -> Duration {
    let times = (0..rounds).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}
