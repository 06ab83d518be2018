//! Files that programs write: lock files, snapshots, and those of toolwatch.

use toolwarden_drift::toolwatch::{ResponsePattern, read_alerts, read_baselines, schema_hash};
use toolwarden_model::json::tokens;
use toolwarden_trials::{Snapshot, VersionedSnapshot};
use toolwarden_watch::{LockFile, LockLines};

use crate::{parsed, text};

/// A lock file that is read, written and read again is the same, and so is its text.
pub fn lock_file(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    let lines = LockLines::of(text);
    let Ok(lock) = LockFile::parse(text) else {
        return;
    };
    let count = text.split('\n').count();
    for (key, server) in &lock.servers {
        for tool in server.tools.keys() {
            let line = lines.tool(key, tool);
            assert!(
                line.is_some_and(|line| (1..=count).contains(&line)),
                "{tool} is at {line:?}"
            );
        }
    }
    let written = lock.render();
    let again = LockFile::parse(written.as_str());
    assert!(again.is_ok(), "{again:?}: {written}");
    if let Ok(again) = again {
        // Writing indents the definitions; nothing else changes.
        assert_eq!(without_layout(again.clone()), without_layout(lock));
        assert_eq!(again.render(), written);
    }
}

/// A lock file whose definitions have no white space between their tokens.
fn without_layout(mut lock: LockFile) -> LockFile {
    for server in lock.servers.values_mut() {
        for tool in server.tools.values_mut() {
            let compact: String = tokens(&tool.text).collect();
            tool.text = compact.into();
        }
    }
    lock
}

/// A snapshot that is read, written and read again is the same.
pub fn snapshot_file(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    let Ok(snapshot) = Snapshot::read(text) else {
        return;
    };
    let written = match &snapshot {
        VersionedSnapshot::V1(snapshot) => snapshot.to_text(),
        VersionedSnapshot::V2(snapshot) => snapshot.to_text(),
    };
    let again = Snapshot::read(&written);
    assert!(again.is_ok(), "{again:?}: {written}");
    if let Ok(again) = again {
        assert_eq!(again, snapshot);
    }
}

/// An error names a place in the document. Hashes have 64 digits.
pub fn toolwatch_file(data: &[u8]) {
    let Some(parsed) = parsed(data) else {
        return;
    };
    let document = &parsed.value;
    for error in [read_baselines(document).err(), read_alerts(document).err()]
        .into_iter()
        .flatten()
    {
        assert!(error.pointer.find(document).is_some(), "{error:?}");
    }
    let mut pattern = ResponsePattern::default();
    pattern.observe(document);
    for hash in [schema_hash(document), pattern.hash()] {
        assert_eq!(hash.len(), 64, "{hash}");
    }
}
