use std::path::Path;

use rusqlite::Connection;
use toolwarden_store::{Origin, Store, StoreError};

use super::{approval, fresh, key, new};

/// Opening must fail and leave every byte as it was.
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
fn a_damaged_store_is_told() {
    let (_folder, store) = fresh();
    let approval = approval();
    let server = store.keep_server(&key(), true, approval.at).unwrap();
    let text = format!(r#"{{"description":"{}"}}"#, "long ".repeat(20_000));
    let row = new("click", &text, Origin::Pinned, &approval);
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
    let server = store.keep_server(&key(), true, approval.at).unwrap();
    store
        .add_baseline(server.id, &new("click", "{}", Origin::Pinned, &approval))
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
        "one of them made it"
    );
}

#[cfg(unix)]
#[test]
fn nobody_else_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, store) = fresh();
    let mode = std::fs::metadata(store.path())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}
