//! The audit log, the gateway itself, and errors.

use serde_json::{Value, json};

use super::parts::{anything, count, document, flag, list, maybe, object, text, time, value, word};
use crate::api::openapi::error_words;

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("Error", error()),
        ("Audit", audit()),
        ("Verification", verification()),
        ("Config", document("config", &[("settings", value())])),
        ("Health", document("health", &[("status", word(&["up"]))])),
        ("Ready", ready()),
        ("Version", version()),
        ("OpenApi", anything()),
    ]
}

fn error() -> Value {
    let error = object(&[
        ("code", word(&error_words())),
        ("message", text()),
        ("remedy", text()),
    ]);
    document("error", &[("error", error)])
}

fn audit() -> Value {
    let record = object(&[
        ("seq", count()),
        ("at", maybe(time())),
        ("kind", text()),
        ("principal", maybe(text())),
        ("tool", maybe(text())),
        ("session", maybe(text())),
        ("code", text()),
        ("allowed", maybe(flag())),
        ("body", value()),
        ("hash", text()),
    ]);
    document(
        "audit",
        &[("records", list(record)), ("next", maybe(text()))],
    )
}

/// As `toolwarden audit verify` tells it.
fn verification() -> Value {
    let noted = object(&[
        ("head", text()),
        ("status", word(&["confirmed", "removed"])),
    ]);
    let fault = object(&[
        ("code", text()),
        ("record", json!({"type": "integer"})),
        ("message", text()),
        ("meaning", text()),
    ]);
    let schema = json!({"type": "string", "const": "toolwarden/audit/verification/v1"});
    object(&[
        ("schema", schema),
        ("intact", flag()),
        ("records", maybe(count())),
        ("removed_through", count()),
        ("head", maybe(text())),
        ("noted", maybe(noted)),
        ("fault", maybe(fault)),
        ("damage", list(text())),
    ])
}

fn ready() -> Value {
    let reason = object(&[("code", text()), ("text", text())]);
    document(
        "ready",
        &[
            ("ready", flag()),
            ("reasons", list(reason.clone())),
            ("degraded", list(reason)),
        ],
    )
}

fn version() -> Value {
    document(
        "version",
        &[
            ("name", text()),
            ("version", text()),
            ("api", word(&["v1"])),
            ("handshake_versions", list(text())),
        ],
    )
}
