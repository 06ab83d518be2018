//! The audit log, the gateway itself, and errors.

use serde_json::{Value, json};

use super::builders::{
    any_object, any_value, count, document, flag, list, nullable, object, one_of, text, time,
};
use crate::api::openapi::error_kinds;

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("Error", error()),
        ("Audit", audit()),
        ("Verification", verification()),
        ("Config", document("config", &[("settings", any_value())])),
        ("Health", document("health", &[("status", one_of(&["up"]))])),
        ("Ready", ready()),
        ("Version", version()),
        ("OpenApi", any_object()),
    ]
}

fn error() -> Value {
    let error = object(&[
        ("code", one_of(&error_kinds())),
        ("message", text()),
        ("remedy", text()),
    ]);
    document("error", &[("error", error)])
}

fn audit() -> Value {
    let record = object(&[
        ("seq", count()),
        ("at", nullable(time())),
        ("kind", text()),
        ("principal", nullable(text())),
        ("tool", nullable(text())),
        ("session", nullable(text())),
        ("code", text()),
        ("allowed", nullable(flag())),
        ("body", any_value()),
        ("hash", text()),
    ]);
    document(
        "audit",
        &[("records", list(record)), ("next", nullable(text()))],
    )
}

/// As `toolwarden audit verify` reports it.
fn verification() -> Value {
    let noted = object(&[
        ("head", text()),
        ("status", one_of(&["confirmed", "removed"])),
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
        ("records", nullable(count())),
        ("removed_through", count()),
        ("head", nullable(text())),
        ("noted", nullable(noted)),
        ("fault", nullable(fault)),
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
            ("api", one_of(&["v1"])),
            ("handshake_versions", list(text())),
        ],
    )
}
