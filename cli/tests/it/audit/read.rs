//! What `list`, `export` and `stats` show.

use std::io::Read;
use std::process::Stdio;

use serde_json::{Value, json};
use snapbox::{IntoData, assert_data_eq, str};

use super::{append, audit_to, decision, filled, long};
use crate::sandbox::Sandbox;

#[test]
fn lines_are_aligned_and_hostile_names_harmless() {
    let said = audit_to(0, &filled(), &["list"]);
    assert_data_eq!(said.out, str![[r#"
1 2026-09-21T14:13:20.000Z session    -                    ada                     opened              state="start"
2 2026-09-21T14:14:20.000Z allow      read_file            ada                     allowed             All checks passed.
3 2026-09-21T14:14:21.000Z outcome    read_file            ada                     succeeded
4 2026-09-21T14:15:20.000Z deny       delete_file          eve\u{1b}[31m\u{a}admin missing_permissions lacks "files:write", says\u{a}\u{1b}[2Jpolicy
5 2026-09-21T15:13:20.000Z deny       "=cmd|' /C calc'!A0" "bob smith"             unknown_tool        no such tool
6 2026-09-21T15:14:20.000Z transition -                    ada                     taken               start -> review
7 2026-09-21T15:15:20.000Z escalation -                    ada                     groups_not_granted  `admin` is not granted
8 2026-09-21T16:13:20.000Z policy     -                    -                       exchanged           file="policy.yaml"

"#]].raw());
}

#[test]
fn colours_are_put_around_what_was_decided() {
    let said = audit_to(0, &filled(), &["list", "--color", "always", "--limit", "4"]);
    let denied = said.out.lines().next().unwrap();
    assert!(
        denied.contains(" \u{1b}[1m\u{1b}[31mdeny      \u{1b}[0m \"=cmd"),
        "{denied:?}"
    );
}

#[test]
fn json_lines_hold_everything() {
    let said = audit_to(0, &filled(), &["list", "--format", "ndjson"]);
    assert_data_eq!(said.out, str![[r#"
{"seq":1,"at":"2026-09-21T14:13:20.000Z","kind":"session","principal":"ada","tool":null,"session":"s-1","code":"opened","allowed":null,"body":{"id":"0","state":"start"},"hash":"54d3408e3234dce8d5971a72261f9ed91da6da83866e6b2473ebd8310a0bedc7"}
{"seq":2,"at":"2026-09-21T14:14:20.000Z","kind":"decision","principal":"ada","tool":"read_file","session":null,"code":"allowed","allowed":true,"body":{"id":"60","latency_ms":0.25,"reason":"All checks passed."},"hash":"3f5902fb6d20847d935a9884a19c1435595bf8fc5624f8c4e2646a32e2968241"}
{"seq":3,"at":"2026-09-21T14:14:21.000Z","kind":"outcome","principal":"ada","tool":"read_file","session":"s-1","code":"succeeded","allowed":null,"body":{"call":"60","id":"61","latency_ms":3},"hash":"ffa57cda27a22613d1c3bf23d66b41e64345d553ac90c51f4dd58527e902f57c"}
{"seq":4,"at":"2026-09-21T14:15:20.000Z","kind":"decision","principal":"eve\u001b[31m\nadmin","tool":"delete_file","session":null,"code":"missing_permissions","allowed":false,"body":{"id":"120","latency_ms":0.5,"reason":"lacks \"files:write\", says\n\u001b[2Jpolicy"},"hash":"297c6837ad18c7e3874ba8a7dbf028836be6658549482b40c8713eac3caeedf5"}
{"seq":5,"at":"2026-09-21T15:13:20.000Z","kind":"decision","principal":"bob smith","tool":"=cmd|' /C calc'!A0","session":null,"code":"unknown_tool","allowed":false,"body":{"id":"3600","latency_ms":1.5,"reason":"no such tool"},"hash":"a821d2c6d9a64a35dc31758552dfa8c418fe900415998327a8f8c9962efbfd77"}
{"seq":6,"at":"2026-09-21T15:14:20.000Z","kind":"transition","principal":"ada","tool":null,"session":"s-1","code":"taken","allowed":null,"body":{"from":"start","id":"3660","to":"review"},"hash":"1584ff5521b92f4abcd1bb7dc8e4f9880e6b97fe4c83a8e54efb66f5e7a6608d"}
{"seq":7,"at":"2026-09-21T15:15:20.000Z","kind":"escalation","principal":"ada","tool":null,"session":"s-1","code":"groups_not_granted","allowed":null,"body":{"groups":["admin"],"id":"3720","reason":"`admin` is not granted"},"hash":"4c039cc1021606f585188e506ec160d9d078040fbc7373701738b315ec6bab2f"}
{"seq":8,"at":"2026-09-21T16:13:20.000Z","kind":"policy","principal":null,"tool":null,"session":null,"code":"exchanged","allowed":null,"body":{"file":"policy.yaml","id":"7200"},"hash":"5794416dd9e3d3391368bfea872aa139d83d24b797944906945c0da745673f24"}

"#]].raw());
}

#[test]
fn one_document_holds_the_same_records() {
    let place = filled();
    let lines = audit_to(0, &place, &["export"]).out;
    let lines: Vec<Value> = lines
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    for command in ["list", "export"] {
        let document = audit_to(0, &place, &[command, "--format", "json"]).out;
        let document: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(
            document,
            json!({"schema": "toolwarden/audit/records/v1", "records": lines})
        );
    }
}

#[test]
fn csv_is_quoted_and_not_computed() {
    let place = filled();
    let said = audit_to(0, &place, &["export", "--format", "csv", "--denied"]);
    let tail = audit_to(0, &place, &["tail", "--format", "csv", "--denied"]);
    assert_eq!(
        tail.out, said.out,
        "the end of a log is written the same way"
    );
    let shown = said.out.replace('\r', "<CR>").replace('\u{1b}', "<ESC>");
    assert_data_eq!(shown, str![[r#"
seq,at,kind,principal,tool,session,code,allowed,reason,body,hash<CR>
4,2026-09-21T14:15:20.000Z,decision,eve\u{1b}[31m\nadmin,delete_file,,missing_permissions,false,"lacks ""files:write"", says\n\u{1b}[2Jpolicy","{""id"":""120"",""latency_ms"":0.5,""reason"":""lacks \""files:write\"", says\n\u001b[2Jpolicy""}",297c6837ad18c7e3874ba8a7dbf028836be6658549482b40c8713eac3caeedf5<CR>
5,2026-09-21T15:13:20.000Z,decision,bob smith,'=cmd|' /C calc'!A0,,unknown_tool,false,no such tool,"{""id"":""3600"",""latency_ms"":1.5,""reason"":""no such tool""}",a821d2c6d9a64a35dc31758552dfa8c418fe900415998327a8f8c9962efbfd77<CR>

"#]].raw());
}

#[test]
fn every_filter_narrows() {
    let place = filled();
    for (args, expected) in [
        (&[][..], &[1, 2, 3, 4, 5, 6, 7, 8][..]),
        (&["--denied"], &[4, 5]),
        (&["--tool", "read_file"], &[2, 3]),
        (&["--principal", "bob smith"], &[5]),
        (&["--session", "s-1"], &[1, 3, 6, 7]),
        (&["--code", "allowed"], &[2]),
        (&["--kind", "escalation"], &[7]),
        (&["--since", "2026-09-21T15:13:20Z"], &[5, 6, 7, 8]),
        (&["--until", "2026-09-21T14:14:20.001Z"], &[1, 2]),
        (
            &[
                "--since",
                "2026-09-21T14:14:20Z",
                "--until",
                "2026-09-21T15:13:20Z",
                "--principal",
                "ada",
            ],
            &[2, 3],
        ),
        (&["--since", "90"], &[]),
        (&["--tool", "nothing"], &[]),
    ] {
        for command in ["list", "tail", "export"] {
            let said = audit_to(
                0,
                &place,
                &[&[command, "--format", "ndjson"], args].concat(),
            );
            assert_eq!(numbers(&said.out), expected, "{command} {args:?}");
        }
    }
}

#[test]
fn an_age_is_counted_from_now() {
    let place = filled();
    let now = jiff::Timestamp::now().as_millisecond();
    let at = |ago| toolwarden_guard::audit::RecordContent {
        at_ms: now - ago,
        ..decision(0)
    };
    append(&place.path("audit.db"), [at(4_000_000), at(10_000)]);
    // The fixed times of the other records may lie ahead of the clock of this machine.
    for (since, expected) in [("90", vec![10]), ("30m", vec![10]), ("1.5h", vec![9, 10])] {
        let said = audit_to(0, &place, &["list", "--format", "ndjson", "--since", since]);
        let mut shown = numbers(&said.out);
        shown.retain(|seq| *seq > 8);
        assert_eq!(shown, expected, "{since}");
    }
}

#[test]
fn the_newest_are_shown_unless_all_are_asked_for() {
    let place = long(1_200);
    let count = |args: &[&str]| {
        let said = audit_to(0, &place, args);
        let first = said.out.lines().next().map(|it| it.trim_start().to_owned());
        (said.out.lines().count(), first.unwrap())
    };
    let (lines, first) = count(&["list"]);
    assert_eq!(lines, 50);
    assert!(first.starts_with("1151 "), "{first}");
    assert_eq!(count(&["list", "--limit", "0"]).0, 1_200);
    assert_eq!(count(&["list", "--limit", "7"]).0, 7);
    assert_eq!(count(&["tail"]).0, 10);
    assert_eq!(count(&["tail", "-n", "3"]).0, 3);
    assert_eq!(audit_to(0, &place, &["tail", "-n", "0"]).out, "");
}

#[test]
fn files_are_written_whole() {
    let place = filled();
    let said = audit_to(0, &place, &["export", "--output", "out.ndjson"]);
    assert_eq!((&*said.out, &*said.err), ("", "8 records in out.ndjson\n"));
    assert_eq!(
        place.read("out.ndjson"),
        audit_to(0, &place, &["export"]).out
    );
}

#[test]
fn a_reader_may_leave() {
    let place = long(5_000);
    for args in [
        &["list", "--limit", "0"][..],
        &["list", "--limit", "0", "--format", "json"],
        &["export"],
        &["export", "--format", "csv"],
        &["tail", "-f", "-n", "5000"],
    ] {
        let mut command = place.command();
        command
            .arg("audit")
            .args(args)
            .args(["--store", "audit.db"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut some = [0; 100];
        child.stdout.take().unwrap().read_exact(&mut some).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{args:?}");
    }
}

#[test]
fn statistics_fit_on_a_screen() {
    let place = filled();
    assert_data_eq!(
        audit_to(0, &place, &["stats"]).out,
        str![[r#"
8 records: 3 decision, 1 escalation, 1 outcome, 1 policy, 1 session, 1 transition
2026-09-21T14:13:20.000Z to 2026-09-21T16:13:20.000Z
calls: 1 allowed, 2 denied (66.7 %)
deciding took: p50 0.500 ms, p95 1.500 ms (3 decisions)

tool                    calls  allowed   denied
"=cmd|' /C calc'!A0"        1        0        1
delete_file                 1        0        1
read_file                   1        1        0

principal                  calls  allowed   denied
ada                            1        1        0
"bob smith"                    1        0        1
eve\u{1b}[31m\u{a}admin        1        0        1

denied because         times
missing_permissions        1
unknown_tool               1

escalation            times
groups_not_granted        1

"#]]
        .raw()
    );
    assert_data_eq!(
        audit_to(0, &place, &["stats", "--by", "hour"]).out,
        str![[r#"
hour                    calls  allowed   denied
2026-09-21T14:00:00Z        2        1        1
2026-09-21T15:00:00Z        1        0        1

"#]]
        .raw()
    );
    assert_data_eq!(
        audit_to(
            0,
            &place,
            &[
                "stats",
                "--by",
                "principal",
                "--since",
                "2026-09-21T15:00:00Z"
            ]
        )
        .out,
        str![[r#"
principal      calls  allowed   denied
"bob smith"        1        0        1

"#]]
        .raw()
    );
    assert_data_eq!(
        audit_to(
            0,
            &place,
            &["stats", "--by", "code", "--tool", "delete_file", "--denied"]
        )
        .out,
        str![[r#"
code                   calls  allowed   denied
missing_permissions        1        0        1

"#]]
        .raw()
    );
    assert_data_eq!(
        audit_to(0, &place, &["stats", "--by", "tool", "--principal", "ada"]).out,
        str![[r#"
tool         calls  allowed   denied
read_file        1        1        0

"#]]
        .raw()
    );
    assert_data_eq!(
        audit_to(0, &place, &["stats", "--format", "json"]).out,
        str![[r#"
{
  "schema": "toolwarden/audit/stats/v1",
  "first": "2026-09-21T14:13:20.000Z",
  "last": "2026-09-21T16:13:20.000Z",
  "records": 8,
  "allowed": 1,
  "denied": 2,
  "latency_ms": {
    "p50": 0.5,
    "p95": 1.5,
    "decisions": 3
  },
  "kinds": [
    {
      "kind": "decision",
      "records": 3,
      "allowed": 1,
      "denied": 2
    },
    {
      "kind": "escalation",
      "records": 1,
      "allowed": 0,
      "denied": 0
    },
    {
      "kind": "outcome",
      "records": 1,
      "allowed": 0,
      "denied": 0
    },
    {
      "kind": "policy",
      "records": 1,
      "allowed": 0,
      "denied": 0
    },
    {
      "kind": "session",
      "records": 1,
      "allowed": 0,
      "denied": 0
    },
    {
      "kind": "transition",
      "records": 1,
      "allowed": 0,
      "denied": 0
    }
  ],
  "tools": [
    {
      "tool": "=cmd|' /C calc'!A0",
      "records": 1,
      "allowed": 0,
      "denied": 1
    },
    {
      "tool": "delete_file",
      "records": 1,
      "allowed": 0,
      "denied": 1
    },
    {
      "tool": "read_file",
      "records": 1,
      "allowed": 1,
      "denied": 0
    }
  ],
  "principals": [
    {
      "principal": "ada",
      "records": 1,
      "allowed": 1,
      "denied": 0
    },
    {
      "principal": "bob smith",
      "records": 1,
      "allowed": 0,
      "denied": 1
    },
    {
      "principal": "eve\u001b[31m\nadmin",
      "records": 1,
      "allowed": 0,
      "denied": 1
    }
  ],
  "denials": [
    {
      "code": "missing_permissions",
      "records": 1,
      "allowed": 0,
      "denied": 1
    },
    {
      "code": "unknown_tool",
      "records": 1,
      "allowed": 0,
      "denied": 1
    }
  ],
  "escalations": [
    {
      "code": "groups_not_granted",
      "records": 1,
      "allowed": 0,
      "denied": 0
    }
  ]
}

"#]]
        .raw()
    );
    assert_data_eq!(
        audit_to(0, &place, &["stats", "--by", "code", "--format", "json"]).out,
        str![[r#"
{
  "schema": "toolwarden/audit/stats/v1",
  "by": "code",
  "counts": [
    {
      "code": "allowed",
      "records": 1,
      "allowed": 1,
      "denied": 0
    },
    {
      "code": "missing_permissions",
      "records": 1,
      "allowed": 0,
      "denied": 1
    },
    {
      "code": "unknown_tool",
      "records": 1,
      "allowed": 0,
      "denied": 1
    }
  ]
}

"#]]
        .raw()
    );
}

#[test]
fn without_a_store_nothing_is_made() {
    let place = Sandbox::new();
    for args in [
        &["list"][..],
        &["tail"],
        &["tail", "--follow"],
        &["verify"],
        &["export", "--output", "out"],
        &["stats"],
        &["prune", "--keep", "1", "--yes"],
    ] {
        let said = audit_to(3, &place, args);
        assert_eq!(said.out, "", "{args:?}");
        assert_data_eq!(
            said.err,
            str![[r#"
error: there is no audit log: audit.db does not exist
  help: name the store with --store or TOOLWARDEN_STORE; this command does not create one

"#]]
            .raw()
        );
    }
    assert!(!place.path("audit.db").exists() && !place.path("out").exists());
}

#[test]
fn empty_log_is_reported() {
    let place = Sandbox::new();
    append(&place.path("audit.db"), []);
    let empty = "No records: nothing was decided with this store yet.\n";
    for command in ["list", "tail", "stats", "verify"] {
        assert_eq!(audit_to(0, &place, &[command]).out, empty, "{command}");
    }
    assert_eq!(audit_to(0, &place, &["export"]).out, "");
    assert_eq!(
        audit_to(0, &place, &["list", "--format", "json"]).out,
        "{\"schema\": \"toolwarden/audit/records/v1\", \"records\": [\n]}\n"
    );
    let none = audit_to(0, &place, &["prune", "--keep", "0", "--yes"]);
    assert_eq!(none.out, "nothing to remove\n");
    let place = filled();
    let none = audit_to(0, &place, &["list", "--tool", "nothing"]);
    assert_eq!(none.out, "No record matches.\n");
}

fn numbers(lines: &str) -> Vec<i64> {
    let records = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.map(|it| it["seq"].as_i64().unwrap()).collect()
}
