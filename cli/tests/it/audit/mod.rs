//! The commands about the audit log, on logs written by the same writer as the guard's.

mod read;
mod tail;
mod verify;

use std::path::Path;
use std::sync::Arc;

use toolwarden_guard::Durability;
use toolwarden_guard::audit::RecordContent;
use toolwarden_live_guard::audit::{AuditOptions, AuditWriter};

use crate::sandbox::{CommandOutput, Sandbox, command_output};

/// 2026-09-21T14:13:20Z.
const START: i64 = 1_790_000_000_000;

/// A place with a log of every kind of record.
fn filled() -> Sandbox {
    let place = Sandbox::new();
    append(&place.path("audit.db"), every_kind());
    place
}

/// A place with a log of so many decisions, a second apart.
fn long(count: i64) -> Sandbox {
    let place = Sandbox::new();
    append(&place.path("audit.db"), (0..count).map(decision));
    place
}

fn append(path: &Path, contents: impl IntoIterator<Item = RecordContent>) {
    let writer = AuditWriter::open(path, AuditOptions::new(Durability::Group)).unwrap();
    let tickets: Vec<_> = contents
        .into_iter()
        .map(|content| writer.begin(content).unwrap())
        .collect();
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    writer.close().unwrap();
}

fn audit(place: &Sandbox, args: &[&str]) -> CommandOutput {
    let mut command = place.command();
    command.arg("audit").args(args);
    command.env("TOOLWARDEN_STORE", "audit.db");
    command_output(command.output().unwrap())
}

/// Runs an `audit` command that must end with this code.
#[track_caller]
fn audit_to(code: i32, place: &Sandbox, args: &[&str]) -> CommandOutput {
    let said = audit(place, args);
    assert_eq!(said.code, code, "{args:?}: {said:#?}");
    said
}

fn decision(number: i64) -> RecordContent {
    RecordContent {
        at_ms: START + number * 1000,
        kind: "decision".into(),
        principal: Some("ada".into()),
        tool: Some("read_file".into()),
        session: None,
        code: "allowed".into(),
        allowed: Some(true),
        body: format!(r#"{{"id":"{number}","latency_ms":0.25,"reason":"All checks passed."}}"#),
    }
}

fn every_kind() -> Vec<RecordContent> {
    let denied =
        |number, principal: &str, tool: &str, code: &'static str, body: &str| RecordContent {
            principal: Some(principal.into()),
            tool: Some(tool.into()),
            code: code.into(),
            allowed: Some(false),
            body: body.to_owned(),
            ..decision(number)
        };
    let other = |number, kind: &'static str, code: &'static str, body: &str| RecordContent {
        kind: kind.into(),
        session: Some("s-1".into()),
        tool: None,
        code: code.into(),
        allowed: None,
        body: body.to_owned(),
        ..decision(number)
    };
    vec![
        other(0, "session", "opened", r#"{"id":"0","state":"start"}"#),
        decision(60),
        RecordContent {
            tool: Some(Arc::from("read_file")),
            ..other(
                61,
                "outcome",
                "succeeded",
                r#"{"call":"60","id":"61","latency_ms":3}"#,
            )
        },
        denied(
            120,
            "eve\u{1b}[31m\nadmin",
            "delete_file",
            "missing_permissions",
            r#"{"id":"120","latency_ms":0.5,"reason":"lacks \"files:write\", says\n\u001b[2Jpolicy"}"#,
        ),
        denied(
            3600,
            "bob smith",
            "=cmd|' /C calc'!A0",
            "unknown_tool",
            r#"{"id":"3600","latency_ms":1.5,"reason":"no such tool"}"#,
        ),
        other(
            3660,
            "transition",
            "taken",
            r#"{"from":"start","id":"3660","to":"review"}"#,
        ),
        other(
            3720,
            "escalation",
            "groups_not_granted",
            r#"{"groups":["admin"],"id":"3720","reason":"`admin` is not granted"}"#,
        ),
        RecordContent {
            principal: None,
            session: None,
            ..other(
                7200,
                "policy",
                "exchanged",
                r#"{"file":"policy.yaml","id":"7200"}"#,
            )
        },
    ]
}
