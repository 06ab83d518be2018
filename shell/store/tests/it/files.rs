use std::path::Path;

use rusqlite::Connection;
use toolwarden_store::{BaselineOrigin, ServerKey, Store, StoreError, sidecar_files};

use super::{approval, fresh, key, new};

/// Opening must fail and leave every byte unchanged.
fn refused(path: &Path) -> StoreError {
    let before = std::fs::read(path).unwrap();
    let error = Store::open(path).unwrap_err();
    assert_eq!(std::fs::read(path).unwrap(), before, "{error}");
    error
}

#[test]
fn other_files_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "not a database, but my only copy of something").unwrap();
    assert!(matches!(refused(&path), StoreError::NotAStore { .. }));

    let path = folder.path().join("other.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE mine (x)").unwrap();
    drop(other);
    assert!(matches!(refused(&path), StoreError::NotAStore { .. }));
}

#[test]
fn a_newer_store_is_refused_and_left_alone() {
    let (_folder, store) = fresh();
    let path = store.path().to_owned();
    drop(store);
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    newer.pragma_update(None, "journal_mode", "delete").unwrap();
    drop(newer);
    let error = refused(&path);
    assert!(
        matches!(error, StoreError::Newer { found: 99, .. }),
        "{error}"
    );
}

#[test]
fn damaged_store_is_reported() {
    let (_folder, store) = fresh();
    let approval = approval();
    let server = store.ensure_server(&key(), true, approval.at).unwrap();
    let text = format!(r#"{{"description":"{}"}}"#, "long ".repeat(20_000));
    let row = new("click", &text, BaselineOrigin::Pinned, &approval);
    store.add_baseline(server.id, &row).unwrap();
    let fingerprint = store.baselines(server.id).unwrap()[0]
        .definition
        .unwrap()
        .fingerprint;
    let path = store.path().to_owned();
    drop(store);

    let whole = std::fs::read(&path).unwrap();
    let at = whole
        .windows(9)
        .rposition(|bytes| bytes == b"long long")
        .unwrap();
    let mut flipped = whole.clone();
    flipped[at] = b'L';
    std::fs::write(&path, &flipped).unwrap();
    let error = Store::open(&path)
        .unwrap()
        .definition(fingerprint)
        .unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");

    std::fs::write(&path, &whole[..whole.len() / 3]).unwrap();
    let error = Store::open(&path)
        .and_then(|store| store.definition(fingerprint))
        .unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[test]
fn baselines_cannot_be_rewritten_even_by_hand() {
    let (_folder, store) = fresh();
    let approval = approval();
    let server = store.ensure_server(&key(), true, approval.at).unwrap();
    store
        .add_baseline(
            server.id,
            &new("click", "{}", BaselineOrigin::Pinned, &approval),
        )
        .unwrap();
    let by_hand = Connection::open(store.path()).unwrap();
    for statement in ["UPDATE baseline SET why = 'x'", "DELETE FROM baseline"] {
        let error = by_hand.execute(statement, []).unwrap_err();
        assert!(error.to_string().contains("only ever added"), "{error}");
    }
}

#[test]
fn many_open_a_new_store_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let keys: Vec<[u8; 16]> = std::thread::scope(|scope| {
        let open = || Store::open(&path).unwrap().value_key().unwrap();
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert!(
        keys.iter().all(|key| *key == keys[0]),
        "exactly one thread created the key"
    );
}

/// Closing the last connection removes the journal; other threads can still open the store at that
/// moment.
#[test]
fn a_store_is_opened_while_another_thread_closes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    Store::open(&path).unwrap().value_key().unwrap();
                }
            });
        }
    });
}

#[cfg(unix)]
#[test]
fn only_the_user_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let private = |path: &Path| {
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    };
    let (_folder, store) = fresh();
    let approval = approval();
    store.ensure_server(&key(), true, approval.at).unwrap();
    private(store.path());
    let [journal, index, _] = sidecar_files(store.path());
    private(&journal);
    private(&index);

    let folder = tempfile::tempdir().unwrap();
    let (link, target) = (folder.path().join("link.db"), folder.path().join("new.db"));
    std::os::unix::fs::symlink("new.db", &link).unwrap();
    drop(Store::open(&link).unwrap());
    private(&target);
    std::os::unix::fs::symlink("round.db", folder.path().join("round.db")).unwrap();
    let error = Store::open(&folder.path().join("round.db")).unwrap_err();
    assert!(matches!(error, StoreError::Open { .. }), "{error}");
}

/// Opens a database in another process, reads it and closes it as its only connection.
#[cfg(unix)]
fn read_from_outside(path: &Path) {
    let script = "\
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute('SELECT count(*) FROM server').fetchone()
connection.close()
";
    let mut python = std::process::Command::new("python3");
    let read = python.args(["-c", script]).arg(path).output().unwrap();
    assert!(read.status.success(), "{read:?}");
}

#[cfg(unix)]
#[test]
fn a_second_connection_of_the_process_does_not_release_the_locks_of_the_first() {
    let (_folder, store) = fresh();
    let approval = approval();
    store.ensure_server(&key(), true, approval.at).unwrap();
    let [journal, ..] = sidecar_files(store.path());
    let second = Store::open(store.path()).unwrap();
    read_from_outside(store.path());
    assert!(
        journal.exists(),
        "another process considered the store unused"
    );
    drop(second);
    drop(Store::open_existing(store.path()).unwrap().unwrap());
    read_from_outside(store.path());
    assert!(
        journal.exists(),
        "another process considered the store unused"
    );

    let later = ServerKey {
        name: "later".to_owned(),
        ..key()
    };
    store.ensure_server(&later, true, approval.at).unwrap();
    let other = Connection::open(store.path()).unwrap();
    let count: i64 = other
        .query_row("SELECT count(*) FROM server", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 2);
}

#[cfg(unix)]
#[test]
fn a_journal_that_is_removed_is_rescued_and_not_mixed_with_another() {
    let (_folder, store) = fresh();
    let approval = approval();
    let second = Store::open(store.path()).unwrap();
    store.ensure_server(&key(), true, approval.at).unwrap();
    let [journal, index, _] = sidecar_files(store.path());
    std::fs::remove_file(&journal).unwrap();
    std::fs::remove_file(&index).unwrap();
    for open in [&store, &second] {
        let error = open.require_same_file().unwrap_err();
        assert!(matches!(error, StoreError::Gone { .. }), "{error}");
    }
    let error = Store::open(store.path()).unwrap_err();
    assert!(matches!(error, StoreError::Gone { .. }), "{error}");
    assert!(!journal.exists());
    second.rescue_journal().unwrap();
    let path = store.path().to_owned();
    // Simulates a crash: closing the connections writes nothing.
    let copy = path.with_extension("copy");
    let mut copying = std::process::Command::new("cp");
    assert!(copying.args([&path, &copy]).status().unwrap().success());
    drop((store, second));
    for path in [path, copy] {
        let servers = Store::open(&path).unwrap().servers().unwrap();
        assert_eq!(servers.len(), 1, "{}", path.display());
    }
}

#[test]
fn a_copy_holds_what_was_there_and_replaces_nothing() {
    let (folder, store) = fresh();
    let approval = approval();
    store.ensure_server(&key(), true, approval.at).unwrap();
    let copy = folder.path().join("copy.db");
    let mut last = None;
    store
        .copy_to(&copy, |progress| last = Some(progress))
        .unwrap();
    let last = last.unwrap();
    assert_eq!(last.done, last.total);
    assert!(sidecar_files(&copy).iter().all(|it| !it.exists()));
    let copied = Store::open(&copy).unwrap();
    assert_eq!(copied.servers().unwrap(), store.servers().unwrap());
    assert_eq!(copied.value_key().unwrap(), store.value_key().unwrap());
    let error = store.copy_to(&copy, |_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Open { .. }), "{error}");
}

/// A store that another program created writable for everyone.
#[cfg(unix)]
#[test]
fn a_store_that_others_may_write_to_is_closed_to_them() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let open_to_all = |path: &Path| {
        let all = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(path, all).unwrap();
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    std::fs::write(&path, "").unwrap();
    open_to_all(&path);
    let store = Store::open(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
    let [journal, ..] = sidecar_files(&path);
    assert_eq!(mode(&journal), 0o600);
    open_to_all(&path);
    open_to_all(&journal);
    let again = Store::open_existing(&path).unwrap().unwrap();
    assert_eq!((mode(&path), mode(&journal)), (0o600, 0o600));
    drop((store, again));
    // A file that is not a store keeps its mode.
    let notes = folder.path().join("notes.txt");
    std::fs::write(&notes, "not a database, but my only copy of something").unwrap();
    open_to_all(&notes);
    assert!(Store::open(&notes).is_err());
    assert_eq!(mode(&notes), 0o666);
}

#[test]
fn servers_of_an_older_store_stay_open_if_they_were_left_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let named = |name: &str| ServerKey {
        name: name.to_owned(),
        scope: "default".to_owned(),
    };
    let store = Store::open(&path).unwrap();
    for (name, sealed) in [("browser", false), ("local", false), ("search", true)] {
        store
            .ensure_server(&named(name), sealed, approval().at)
            .unwrap();
    }
    drop(store);
    let older = Connection::open(&path).unwrap();
    let layout: i64 = older
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    older
        .execute_batch("ALTER TABLE server DROP COLUMN open")
        .unwrap();
    older
        .pragma_update(None, "user_version", layout - 1)
        .unwrap();
    drop(older);
    let store = Store::open(&path).unwrap();
    let open = |name: &str| store.server(&named(name)).unwrap().unwrap().open;
    assert_eq!(
        (open("browser"), open("local"), open("search")),
        (true, false, false)
    );
}
