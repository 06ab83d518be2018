//! Copies of the store of a gateway that runs.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::callers::{AnsweredCalls, POLICY, require_records};
use super::{ServedGateway, shop_settings};
use crate::sandbox::{CommandOutput, Sandbox, command_output};

fn backup(sandbox: &Sandbox, args: &[&str]) -> CommandOutput {
    let mut command = sandbox.command();
    command_output(
        command
            .args(["store", "backup"])
            .args(args)
            .output()
            .unwrap(),
    )
}

/// Runs a backup that must end with this code.
#[track_caller]
fn backup_to(code: i32, sandbox: &Sandbox, args: &[&str]) -> CommandOutput {
    let said = backup(sandbox, args);
    assert_eq!(said.code, code, "{args:?}: {said:#?}");
    said
}

/// The names in a folder.
fn names(sandbox: &Sandbox, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(sandbox.path(folder)).unwrap();
    let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// A store with a few records, of no gateway that runs.
fn filled(sandbox: &Sandbox) {
    sandbox.write("toolwarden.yaml", &shop_settings(POLICY));
    let mut served = ServedGateway::start(sandbox, &[]);
    let text = serde_json::json!({"text": "before"});
    served.call("shop__echo", &text);
    served.process.signal("-TERM");
    assert_eq!(served.process.end(), Some(0));
}

#[test]
fn a_copy_of_a_running_store_holds_every_answered_call() {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", &shop_settings(POLICY));
    std::fs::create_dir(sandbox.path("copies")).unwrap();
    let served = ServedGateway::start(&sandbox, &[]);
    let answered = AnsweredCalls::default();
    answered.while_calling(&served, || {
        for number in 0..5 {
            let before = answered.so_far();
            let copy = format!("copies/{number}.db");
            let said = backup_to(0, &sandbox, &["--store", "toolwarden.db", &copy]);
            assert!(said.out.contains("\nintact: "), "{said:?}");
            require_records(&sandbox, &copy, &before);
        }
    });
    let copies: Vec<String> = (0..5).map(|number| format!("{number}.db")).collect();
    assert_eq!(names(&sandbox, "copies"), copies);
    let mode = std::fs::metadata(sandbox.path("copies/4.db")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    let answered = answered.so_far();
    assert!(answered.len() > 50, "{}", answered.len());
    require_records(&sandbox, "toolwarden.db", &answered);
}

#[test]
fn backup_reports_what_it_did() {
    let sandbox = Sandbox::new();
    filled(&sandbox);
    let args = ["--config", "toolwarden.yaml", "copy.db", "--format", "json"];
    let document: Value = serde_json::from_str(&backup_to(0, &sandbox, &args).out).unwrap();
    assert_eq!(document["schema"], "toolwarden/store/backup/v1");
    assert_eq!(
        (&document["written"], &document["verified"]),
        (&true.into(), &true.into())
    );
    let verify = ["audit", "verify", "--format", "json", "--store"];
    let verified = |store| {
        let mut command = sandbox.command();
        let verified = command_output(command.args(verify).arg(store).output().unwrap());
        serde_json::from_str::<Value>(&verified.out).unwrap()
    };
    let (original, copy) = (verified("toolwarden.db"), verified("copy.db"));
    assert_eq!(original, copy);
    assert_eq!(document["head"], copy["head"]);
    assert_eq!(document["records"], copy["records"]);
    let length = std::fs::metadata(sandbox.path("copy.db")).unwrap().len();
    assert_eq!(document["bytes"], length);
}

#[test]
fn nothing_is_replaced_unless_it_is_asked_for() {
    let sandbox = Sandbox::new();
    filled(&sandbox);
    let from = ["--store", "toolwarden.db"];
    let with = |more: &[&'static str]| [&from[..], more].concat();
    backup_to(0, &sandbox, &with(&["copy.db"]));
    let first = std::fs::read(sandbox.path("copy.db")).unwrap();

    let said = backup_to(2, &sandbox, &with(&["copy.db"]));
    assert!(said.err.contains("copy.db already exists"), "{said:?}");
    assert!(said.err.contains("--force"), "{said:?}");
    assert_eq!(std::fs::read(sandbox.path("copy.db")).unwrap(), first);
    sandbox.write("copy.db", "an older copy");
    backup_to(0, &sandbox, &with(&["--force", "copy.db"]));
    assert_eq!(std::fs::read(sandbox.path("copy.db")).unwrap(), first);

    let said = backup_to(2, &sandbox, &with(&["--force", "./toolwarden.db"]));
    assert!(said.err.contains("is the store itself"), "{said:?}");
    std::os::unix::fs::symlink("toolwarden.db", sandbox.path("link.db")).unwrap();
    backup_to(2, &sandbox, &with(&["--force", "link.db"]));
    std::fs::create_dir(sandbox.path("folder")).unwrap();
    let said = backup_to(2, &sandbox, &with(&["--force", "folder"]));
    assert!(said.err.contains("folder is not a file"), "{said:?}");
    sandbox.write("other.db-wal", "");
    let said = backup_to(2, &sandbox, &with(&["--force", "other.db"]));
    assert!(said.err.contains("other.db-wal exists"), "{said:?}");
    let said = backup_to(3, &sandbox, &with(&["missing/copy.db"]));
    assert!(
        said.err.contains("cannot write missing/copy.db"),
        "{said:?}"
    );
    let said = backup_to(3, &sandbox, &["--store", "none.db", "new.db"]);
    assert!(said.err.contains("none.db does not exist"), "{said:?}");
    backup_to(
        2,
        &sandbox,
        &with(&["--config", "toolwarden.yaml", "new.db"]),
    );
    sandbox.write("notes.txt", "not a database, but my only copy of something");
    let said = backup_to(3, &sandbox, &["--store", "notes.txt", "new.db"]);
    assert!(said.err.contains("is not a store"), "{said:?}");
    assert!(!sandbox.path("new.db").exists() && !sandbox.path("none.db").exists());
    let left = names(&sandbox, ".");
    assert!(!left.iter().any(|it| it.contains("backup")), "{left:?}");
}

#[test]
fn a_log_that_was_tampered_with_is_copied_only_on_request() {
    let sandbox = Sandbox::new();
    filled(&sandbox);
    let store = rusqlite::Connection::open(sandbox.path("toolwarden.db")).unwrap();
    let statements = "DROP TRIGGER audit_record_is_not_rewritten;
        UPDATE audit_record SET principal = 'eve' WHERE seq = 2;";
    store.execute_batch(statements).unwrap();
    drop(store);
    let args = ["--store", "toolwarden.db", "copy.db"];
    let said = backup_to(1, &sandbox, &args);
    assert!(
        said.out.starts_with("refused: record 2 was changed\n"),
        "{said:?}"
    );
    assert!(!sandbox.path("copy.db").exists());
    let json = [&args[..], &["--format", "json"]].concat();
    let document: Value = serde_json::from_str(&backup_to(1, &sandbox, &json).out).unwrap();
    assert_eq!(
        (
            &document["written"],
            &document["verification"]["fault"]["record"]
        ),
        (&false.into(), &2.into())
    );
    let said = backup_to(0, &sandbox, &[&args[..], &["--unverified"]].concat());
    assert!(said.out.contains("was not verified"), "{said:?}");
    assert!(sandbox.path("copy.db").exists());
}
