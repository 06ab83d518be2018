//! Servers, baselines, changes, alerts and deliveries.

use serde_json::Value;

use super::parts::{
    anything, count, document, flag, list, maybe, number, object, text, time, value, word,
};
use crate::api::openapi::reference;

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let collisions = ("collisions", list(reference("Collision")));
    let server = ("server", reference("Server"));
    vec![
        ("Server", server_entry()),
        (
            "Servers",
            document(
                "servers",
                &[("servers", list(reference("Server"))), collisions.clone()],
            ),
        ),
        ("ServerDocument", document("server", &[server, collisions])),
        ("Baseline", baseline()),
        (
            "Baselines",
            document("baselines", &[("baselines", list(reference("Baseline")))]),
        ),
        ("BaselineDocument", baseline_document()),
        ("Change", change()),
        (
            "Changes",
            document("changes", &[("changes", list(waiting()))]),
        ),
        ("Approved", approved()),
        ("Alert", alert()),
        ("Alerts", alerts()),
        (
            "AlertDocument",
            document("alert", &[("alert", reference("Alert"))]),
        ),
        ("Deliveries", deliveries()),
        ("DeliveryStatus", delivery_status()),
    ]
}

fn server_entry() -> Value {
    let healths = [
        "idle", "starting", "up", "degraded", "down", "failed", "closed",
    ];
    let breaker = object(&[
        ("status", word(&["closed", "open", "half-open"])),
        ("retry_after", maybe(number())),
    ]);
    let tools = object(&[
        ("listed", count()),
        ("served", count()),
        ("hidden", count()),
        ("quarantined", count()),
        ("blocked", maybe(text())),
        ("list_age", number()),
    ]);
    let endpoint = object(&[("kind", word(&["command", "url"])), ("place", text())]);
    let error = object(&[("at", time()), ("text", text())]);
    object(&[
        ("name", text()),
        ("health", word(&healths)),
        ("since", time()),
        ("start", word(&["eager", "lazy"])),
        ("sessions", word(&["isolated", "shared"])),
        ("era", maybe(word(&["handshake", "stateless"]))),
        ("protocol_version", maybe(text())),
        ("links", count()),
        ("in_flight", count()),
        ("restarts", count()),
        ("latency_ms", maybe(number())),
        ("breaker", breaker),
        ("tools", maybe(tools)),
        ("endpoint?", endpoint),
        ("pids?", list(count())),
        ("last_error?", maybe(error.clone())),
        ("previous_error?", maybe(error)),
    ])
}

fn baseline() -> Value {
    let approval = object(&[("by", text()), ("at", time()), ("why", maybe(text()))]);
    object(&[
        ("server?", text()),
        ("tool", text()),
        ("version", text()),
        ("origin", text()),
        ("fingerprint", maybe(text())),
        ("format", maybe(text())),
        ("has_shape", flag()),
        ("schema_hash", maybe(text())),
        ("response_pattern_hash", maybe(text())),
        ("approved", approval),
    ])
}

fn baseline_document() -> Value {
    document(
        "baseline",
        &[
            ("server", text()),
            ("tool", text()),
            ("baseline", maybe(reference("Baseline"))),
            ("definition", value()),
            ("history", list(reference("Baseline"))),
            ("alerts", list(reference("Alert"))),
        ],
    )
}

/// One difference, with what proves that it matters.
fn change() -> Value {
    object(&[
        ("id", text()),
        ("rule", text()),
        ("facet", text()),
        ("pointer", text()),
        ("kind", text()),
        ("class", text()),
        ("message", text()),
        ("approved", flag()),
        ("judgement?", anything()),
        ("before?", value()),
        ("after?", value()),
        ("rename?", anything()),
        ("effect?", anything()),
        ("words?", anything()),
        ("reasons?", list(anything())),
    ])
}

fn waiting() -> Value {
    object(&[
        ("server", text()),
        ("scope", text()),
        ("tool", text()),
        ("alerts", list(text())),
        ("kind", text()),
        ("findings", list(text())),
        ("results", list(text())),
        ("seen_at", time()),
        ("changes", list(reference("Change"))),
    ])
}

fn approved() -> Value {
    let entry = object(&[
        ("server", text()),
        ("tool", text()),
        ("approved", word(&["tool", "gone", "change"])),
        ("id?", text()),
        ("left?", count()),
    ]);
    document(
        "approved",
        &[
            ("approved", list(entry)),
            ("by", text()),
            ("reason", text()),
        ],
    )
}

fn alert() -> Value {
    object(&[
        ("id", text()),
        ("server", text()),
        ("scope", text()),
        ("tool", text()),
        ("change_type", text()),
        ("severity", word(&["low", "medium", "high"])),
        ("class", text()),
        ("status", word(&["open", "approved", "closed"])),
        ("first_seen", time()),
        ("last_seen", time()),
        ("times", count()),
        ("drift", value()),
    ])
}

fn alerts() -> Value {
    document(
        "alerts",
        &[
            ("alerts", list(reference("Alert"))),
            ("count", count()),
            ("next", maybe(text())),
        ],
    )
}

fn deliveries() -> Value {
    let delivery = object(&[
        ("target", text()),
        ("status", text()),
        ("tries", count()),
        ("error", maybe(text())),
        ("at", time()),
    ]);
    document(
        "deliveries",
        &[("alert", text()), ("deliveries", list(delivery))],
    )
}

fn delivery_status() -> Value {
    let error = object(&[("at", time()), ("error", text())]);
    let target = object(&[
        ("name", text()),
        ("channel", text()),
        ("host", text()),
        ("pending", count()),
        ("delivered", count()),
        ("failed", count()),
        ("last_success", maybe(time())),
        ("last_error", maybe(error)),
        ("next_try", maybe(time())),
    ]);
    document(
        "delivery-status",
        &[
            ("targets", list(target)),
            ("dropped", count()),
            ("overflowed", count()),
            ("repeated", count()),
            ("store_error", maybe(text())),
        ],
    )
}
