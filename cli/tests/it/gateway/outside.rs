//! Other programs that open the store of a gateway that runs.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use super::callers::{AnsweredCalls, POLICY, require_records};
use super::{ServedGateway, shop_settings};
use crate::sandbox::Sandbox;

/// Opens a database as often as asked, reads it, and closes it as its only connection.
const READER: &str = "\
import sqlite3, sys
for _ in range(int(sys.argv[2])):
    connection = sqlite3.connect(sys.argv[1], timeout=60)
    connection.execute('SELECT count(*), max(seq) FROM audit_record').fetchone()
    connection.close()
";

fn read_from_outside(sandbox: &Sandbox, times: u32) {
    let read = Command::new("python3")
        .args(["-c", READER])
        .arg(sandbox.path("toolwarden.db"))
        .arg(times.to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(read.status.success(), "{read:?}");
}

#[test]
fn an_outside_reader_takes_nothing_away() {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", &shop_settings(POLICY));
    let served = ServedGateway::start(&sandbox, &[]);
    let answered = AnsweredCalls::default();
    let journal = sandbox.path("toolwarden.db-wal");
    for _ in 0..10 {
        answered.while_calling(&served, || read_from_outside(&sandbox, 10));
        // The same between calls, when no transaction protects the journal.
        read_from_outside(&sandbox, 1);
        assert!(journal.exists(), "the journal of a store in use is gone");
    }
    let result = served.call("shop__echo", &json!({"text": "afterwards"}));
    assert!(result["structuredContent"].is_object(), "{result}");
    let mut answered = answered.so_far();
    assert!(answered.len() > 100, "{}", answered.len());
    answered.insert("afterwards".to_owned());
    require_records(&sandbox, "toolwarden.db", &answered);
    drop(served);
    require_records(&sandbox, "toolwarden.db", &answered);
}

#[test]
fn a_journal_that_is_removed_loses_no_record() {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", &shop_settings(POLICY));
    let mut served = ServedGateway::start(&sandbox, &[]);
    let answered = AnsweredCalls::default();
    answered.while_calling(&served, || {
        std::thread::sleep(Duration::from_millis(300));
    });
    for ending in ["wal", "shm"] {
        std::fs::remove_file(sandbox.path(&format!("toolwarden.db-{ending}"))).unwrap();
    }
    let echo = |served: &ServedGateway| served.call("shop__echo", &json!({"text": "afterwards"}));
    for _ in 0..3 {
        let refused = echo(&served);
        let code = &refused["_meta"]["toolwarden/denial"]["code"];
        assert_eq!(code, "audit_unavailable", "{refused}");
    }
    served.process.signal("-KILL");
    served.process.end();
    let answered = answered.so_far();
    assert!(!answered.is_empty());
    require_records(&sandbox, "toolwarden.db", &answered);

    let served = ServedGateway::start(&sandbox, &[]);
    let result = echo(&served);
    assert!(result["structuredContent"].is_object(), "{result}");
    require_records(&sandbox, "toolwarden.db", &answered);
}
