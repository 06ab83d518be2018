//! What `verify` finds, what it survives, and that others can verify an export.

use std::path::Path;
use std::process::Command;

use rusqlite::Connection;
use serde_json::Value;
use snapbox::{IntoData, assert_data_eq, str};
use toolwarden_live_guard::{AuditLog, Call, Clock, LiveGuard, LoadedPolicy};

use super::{append, audit, audit_to, decision, filled, long};
use crate::sandbox::{CommandOutput, Sandbox, command_output};

const POLICY: &str = "tools: {read_file: {}}";

/// Changes the log as the owner of the file could.
fn edit(place: &Sandbox, statements: &str) {
    let connection = Connection::open(place.path("audit.db")).unwrap();
    let triggers = "DROP TRIGGER IF EXISTS audit_record_is_not_rewritten;
        DROP TRIGGER IF EXISTS audit_record_is_not_removed;
        DROP TRIGGER IF EXISTS audit_head_only_moves_on;
        DROP TRIGGER IF EXISTS audit_head_is_not_removed;";
    connection.execute_batch(triggers).unwrap();
    connection.execute_batch(statements).unwrap();
}

const CUT_TAIL: &str = "DELETE FROM audit_record WHERE seq > 6;
    UPDATE audit_head SET seq = 6, hash = (SELECT hash FROM audit_record WHERE seq = 6)";

fn head(place: &Sandbox) -> String {
    let said = audit_to(0, place, &["verify", "--format", "json"]);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    document["head"].as_str().unwrap().to_owned()
}

#[test]
fn intact_log_is_reported_with_its_head() {
    let place = filled();
    assert_data_eq!(audit_to(0, &place, &["verify"]).out, str![[r#"
intact: 8 records, 1 to 8
head: 8:5794416dd9e3d3391368bfea872aa139d83d24b797944906945c0da745673f24
store this head elsewhere: the chain has no key, so only --head can detect a log that was truncated or recomputed

"#]].raw());
    assert_data_eq!(
        audit_to(0, &place, &["verify", "--format", "json"]).out,
        str![[r#"
{
  "schema": "toolwarden/audit/verification/v1",
  "intact": true,
  "records": 8,
  "removed_through": 0,
  "head": "8:5794416dd9e3d3391368bfea872aa139d83d24b797944906945c0da745673f24",
  "noted": null,
  "fault": null,
  "damage": []
}

"#]]
        .raw()
    );
}

#[test]
fn the_first_bad_record_is_named() {
    let place = filled();
    edit(&place, "UPDATE audit_record SET allowed = 1 WHERE seq = 4");
    assert_data_eq!(audit_to(1, &place, &["verify"]).out, str![[r#"
TAMPERED: record 4 was changed
  its content or the record before it does not match its hash; all records before it are intact
  the store claims the head 8:5794416dd9e3d3391368bfea872aa139d83d24b797944906945c0da745673f24; do not note it

"#]].raw());
    assert_data_eq!(
        audit_to(1, &place, &["verify", "--format", "json"]).out,
        str![[r#"
{
  "schema": "toolwarden/audit/verification/v1",
  "intact": false,
  "records": null,
  "removed_through": 0,
  "head": null,
  "noted": null,
  "fault": {
    "code": "changed",
    "record": 4,
    "message": "record 4 was changed",
    "meaning": "its content or the record before it does not match its hash; all records before it are intact"
  },
  "damage": []
}

"#]].raw()
    );
    audit_to(0, &place, &["--exit-zero", "verify"]);

    for (edits, told) in [
        (
            "DELETE FROM audit_record WHERE seq = 4",
            "record 4 is missing",
        ),
        (
            "DELETE FROM audit_record WHERE seq < 3",
            "record 1 is missing",
        ),
        (
            "DELETE FROM audit_record WHERE seq = 8",
            "should end with record 8",
        ),
        (
            "UPDATE audit_head SET hash = zeroblob(32)",
            "the head is not the hash of record 8",
        ),
        (
            "UPDATE audit_record SET body = '{}' WHERE seq = 8",
            "record 8 was changed",
        ),
        (
            "UPDATE audit_head SET removed_through = 2,
                removed_hash = (SELECT hash FROM audit_record WHERE seq = 2);
             DELETE FROM audit_record WHERE seq < 3",
            "no checkpoint says that the records up to 2 were removed",
        ),
    ] {
        let place = filled();
        edit(&place, edits);
        let said = audit_to(1, &place, &["verify"]);
        assert!(said.out.starts_with("TAMPERED: "), "{}", said.out);
        assert!(said.out.contains(told), "{}", said.out);
    }
}

#[test]
fn a_noted_head_shows_that_the_end_was_cut_off() {
    let place = filled();
    let noted = head(&place);
    place.write(
        "heads.txt",
        &format!("2026-09-21 5:0000\n2026-09-22 {noted}\n\n"),
    );
    let confirmed = audit_to(0, &place, &["verify", "--head", &noted]);
    assert_data_eq!(
        confirmed.out,
        str![[r#"
intact: 8 records, 1 to 8
noted: record 8 matches the noted head, so no record up to it was changed since
head: 8:5794416dd9e3d3391368bfea872aa139d83d24b797944906945c0da745673f24

"#]]
        .raw()
    );
    append(&place.path("audit.db"), [decision(9000)]);
    audit_to(0, &place, &["verify", "--head", "heads.txt"]);

    edit(&place, CUT_TAIL);
    audit_to(0, &place, &["verify"]);
    for given in [&*noted, "heads.txt"] {
        let said = audit_to(1, &place, &["verify", "--head", given]);
        assert_data_eq!(said.out, str![[r#"
TAMPERED: record 8, the noted head, is missing
  the log ends before it: the newest records were cut off, or this is another or older log
  the store claims the head 6:1584ff5521b92f4abcd1bb7dc8e4f9880e6b97fe4c83a8e54efb66f5e7a6608d; do not note it

"#]].raw());
    }
}

#[test]
fn a_noted_head_shows_that_the_log_was_written_anew() {
    let place = filled();
    let noted = head(&place);
    std::fs::remove_file(place.path("audit.db")).unwrap();
    append(&place.path("audit.db"), (0..9).map(decision));
    audit_to(0, &place, &["verify"]);
    let said = audit_to(1, &place, &["verify", "--head", &noted]);
    assert!(
        said.out
            .contains("record 8 is not the one whose hash was noted"),
        "{}",
        said.out
    );
}

#[test]
fn a_noted_head_that_was_removed_is_not_confirmed() {
    let place = filled();
    let records = audit_to(0, &place, &["export"]).out;
    let third: Value = serde_json::from_str(records.lines().nth(2).unwrap()).unwrap();
    let noted = format!("3:{}", third["hash"].as_str().unwrap());
    audit_to(0, &place, &["verify", "--head", &noted]);
    audit_to(0, &place, &["prune", "--keep", "2", "--yes"]);
    let said = audit_to(3, &place, &["verify", "--head", &noted]);
    let told = "noted: record 3 was removed since, so the noted head cannot be compared";
    assert!(said.out.contains(told), "{}", said.out);
    let said = audit_to(3, &place, &["verify", "--head", &noted, "--format", "json"]);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(document["head"], Value::Null);
    assert_eq!(document["noted"]["status"], "removed");
}

#[test]
fn what_is_no_head_is_refused() {
    let place = filled();
    place.write("empty.txt", "\n");
    for given in ["8:abc", "heads.txt", "empty.txt"] {
        let said = audit_to(2, &place, &["verify", "--head", given]);
        assert!(said.err.contains("as SEQ:HASH"), "{}", said.err);
    }
}

#[test]
fn a_log_stays_whole_when_it_is_shortened() {
    let place = filled();
    let noted = head(&place);
    let would = audit_to(0, &place, &["prune", "--before", "2026-09-21T15:00:00Z"]);
    assert_data_eq!(
        would.out,
        str![[r#"
would remove 4 records, 1 to 4; 4 would stay
nothing was changed; pass --yes to remove them

"#]]
        .raw()
    );
    assert_eq!(head(&place), noted);

    let done = audit_to(
        0,
        &place,
        &["prune", "--before", "2026-09-21T15:00:00Z", "--yes"],
    );
    assert_data_eq!(
        done.out,
        str![[r#"
removed 4 records, 1 to 4; a checkpoint record says so, by ada

"#]]
        .raw()
    );
    let verified = audit_to(0, &place, &["verify", "--head", &noted]).out;
    let timeless: Vec<&str> = verified
        .lines()
        .filter(|it| !it.starts_with("head"))
        .collect();
    assert_data_eq!(
        timeless.join("\n"),
        str![[r#"
intact: 5 records, 5 to 9
removed: 1 to 4, as a checkpoint record says
noted: record 8 matches the noted head, so no record up to it was changed since
"#]]
        .raw()
    );
    let listed = audit_to(
        0,
        &place,
        &["list", "--kind", "checkpoint", "--format", "ndjson"],
    );
    let checkpoint: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(checkpoint["principal"], "ada");
    assert_eq!(checkpoint["body"]["removed_through"], 4);

    audit_to(0, &place, &["prune", "--keep", "2", "--yes"]);
    audit_to(0, &place, &["verify"]);
    let again = audit_to(0, &place, &["prune", "--keep", "9", "--yes"]);
    assert_eq!(again.out, "nothing to remove\n");
}

#[test]
fn a_log_that_was_tampered_with_is_not_shortened() {
    let place = filled();
    edit(&place, "UPDATE audit_record SET allowed = 1 WHERE seq = 4");
    let said = audit_to(1, &place, &["prune", "--keep", "2", "--yes"]);
    assert_data_eq!(
        said.out,
        str![[r#"
refused: record 4 was changed; nothing was removed
  help: keep a copy of the store, then give --unverified

"#]]
        .raw()
    );
    assert_eq!(audit_to(0, &place, &["export"]).out.lines().count(), 8);
    audit_to(
        0,
        &place,
        &["prune", "--keep", "2", "--yes", "--unverified"],
    );
    audit_to(0, &place, &["verify"]);
}

#[test]
fn a_damaged_file_is_not_called_tampered_with() {
    let place = filled();
    edit(
        &place,
        "PRAGMA writable_schema = on;
         UPDATE sqlite_schema SET sql = 'CREATE INDEX audit_record_at ON audit_record (code)'
         WHERE name = 'audit_record_at'",
    );
    let said = audit_to(3, &place, &["verify"]);
    assert!(said.out.starts_with("intact: 8 records"), "{}", said.out);
    assert!(said.out.contains("\ndamaged: SQLite finds"), "{}", said.out);
    audit_to(1, &place, &["prune", "--keep", "2", "--yes"]);
}

#[test]
fn prune_needs_to_know_what() {
    let place = filled();
    assert_eq!(audit(&place, &["prune", "--yes"]).code, 2);
    let both = ["prune", "--before", "1d", "--keep", "2"];
    assert_eq!(audit(&place, &both).code, 2);
}

/// The script of docs/audit.md, on an export.
fn script(place: &Sandbox, export: &str) -> CommandOutput {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/audit.md");
    let document = std::fs::read_to_string(document).unwrap();
    let (_, script) = document.split_once("```python\n").unwrap();
    let (script, _) = script.split_once("```").unwrap();
    place.write("verify.py", script);
    let mut python = Command::new("python3");
    python.args([&place.path("verify.py"), &place.path(export)]);
    command_output(python.output().unwrap())
}

#[test]
fn others_can_verify_an_export() {
    let place = filled();
    let exported = |place: &Sandbox| {
        audit_to(0, place, &["export", "--output", "export.ndjson"]);
        script(place, "export.ndjson")
    };
    let intact = |head: String| format!("intact: head {head}\n");
    assert_eq!(exported(&place).out, intact(head(&place)));
    audit_to(0, &place, &["prune", "--keep", "6", "--yes"]);
    audit_to(0, &place, &["prune", "--keep", "5", "--yes"]);
    assert_eq!(exported(&place).out, intact(head(&place)));

    let export = place.read("export.ndjson");
    for (from, to) in [
        ("`admin`", "`user`"),
        ("\"seq\":7", "\"seq\":17"),
        ("15:14:20.000Z", "15:14:20.001Z"),
    ] {
        place.write("changed.ndjson", &export.replacen(from, to, 1));
        let said = script(&place, "changed.ndjson");
        assert_eq!(said.code, 1, "{from}: {said:?}");
    }
    edit(
        &place,
        "UPDATE audit_record SET body = 'x' || char(10) || 'y' WHERE seq = 7",
    );
    let said = exported(&place);
    assert_eq!(
        (said.code, &*said.err),
        (1, "record 7 was changed, or one is missing\n")
    );
}

#[test]
fn what_a_guard_writes_can_be_verified_by_others() {
    let place = Sandbox::new();
    place.write("policy.yaml", POLICY);
    let writer = toolwarden_live_guard::audit::AuditWriter::open(
        &place.path("audit.db"),
        toolwarden_live_guard::audit::AuditOptions::new(toolwarden_guard::Durability::Sync),
    );
    let log = AuditLog::Stored(std::sync::Arc::new(writer.unwrap()));
    let policy = LoadedPolicy::read(&place.path("policy.yaml")).unwrap();
    let guard = LiveGuard::new(policy.guard, log, Clock::default()).unwrap();
    for (tool, arguments) in [
        (
            "read_file",
            serde_json::json!({"path": "/é\u{2028}\u{1F600}", "size": 1e-7, "n": 1.0}),
        ),
        (
            "no\u{7}such",
            serde_json::json!({"\u{FFFF}": 1, "\u{10000}": 1e21}),
        ),
        ("read_file", serde_json::json!({"password": "hunter2"})),
    ] {
        let _decision = guard.intercept(&Call {
            tool,
            principal: "ada",
            arguments: std::sync::Arc::new(arguments),
            ..Call::default()
        });
    }
    drop(guard);
    let listed = audit_to(0, &place, &["list"]).out;
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(listed.contains(" deny  no\\u{7}such "), "{listed}");
    audit_to(0, &place, &["export", "--output", "export.ndjson"]);
    assert!(!place.read("export.ndjson").contains("hunter2"));
    let said = script(&place, "export.ndjson");
    assert_eq!(
        said.out,
        format!("intact: head {}\n", head(&place)),
        "{}",
        said.err
    );
}

#[test]
fn a_long_log_is_exported_in_order() {
    let place = long(3_000);
    let said = audit_to(0, &place, &["export"]);
    let numbers = said.out.lines().map(|line| {
        let record: Value = serde_json::from_str(line).unwrap();
        record["seq"].as_u64().unwrap()
    });
    assert!(numbers.eq(1..=3_000));
}
