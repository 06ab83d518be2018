//! Servers, baselines, changes, alerts and deliveries.

use serde_json::Value;

use super::builders::{
    any_object, any_value, count, document, flag, list, nullable, number, object, one_of, text,
    time,
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
        ("status", one_of(&["closed", "open", "half-open"])),
        ("retry_after", nullable(number())),
    ]);
    let tools = object(&[
        ("listed", count()),
        ("served", count()),
        ("hidden", count()),
        ("quarantined", count()),
        ("blocked", nullable(text())),
        ("list_age", number()),
    ]);
    let endpoint = object(&[("kind", one_of(&["command", "url"])), ("place", text())]);
    let error = object(&[("at", time()), ("text", text())]);
    object(&[
        ("name", text()),
        ("health", one_of(&healths)),
        ("since", time()),
        ("start", one_of(&["eager", "lazy"])),
        ("sessions", one_of(&["isolated", "shared"])),
        ("era", nullable(one_of(&["handshake", "stateless"]))),
        ("protocol_version", nullable(text())),
        ("links", count()),
        ("in_flight", count()),
        ("restarts", count()),
        ("latency_ms", nullable(number())),
        ("breaker", breaker),
        ("tools", nullable(tools)),
        ("endpoint?", endpoint),
        ("pids?", list(count())),
        ("last_error?", nullable(error.clone())),
        ("previous_error?", nullable(error)),
    ])
}

fn baseline() -> Value {
    let approval = object(&[("by", text()), ("at", time()), ("why", nullable(text()))]);
    object(&[
        ("server?", text()),
        ("tool", text()),
        ("version", text()),
        ("origin", text()),
        ("fingerprint", nullable(text())),
        ("format", nullable(text())),
        ("has_shape", flag()),
        ("schema_hash", nullable(text())),
        ("response_pattern_hash", nullable(text())),
        ("approved", approval),
    ])
}

fn baseline_document() -> Value {
    document(
        "baseline",
        &[
            ("server", text()),
            ("tool", text()),
            ("baseline", nullable(reference("Baseline"))),
            ("definition", any_value()),
            ("history", list(reference("Baseline"))),
            ("alerts", list(reference("Alert"))),
        ],
    )
}

/// One change with its evidence.
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
        ("judgement?", any_object()),
        ("before?", any_value()),
        ("after?", any_value()),
        ("rename?", any_object()),
        ("effect?", any_object()),
        ("words?", any_object()),
        ("reasons?", list(any_object())),
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
        ("approved", one_of(&["tool", "gone", "change"])),
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
        ("severity", one_of(&["low", "medium", "high"])),
        ("class", text()),
        ("status", one_of(&["open", "approved", "closed"])),
        ("first_seen", time()),
        ("last_seen", time()),
        ("times", count()),
        ("drift", any_value()),
    ])
}

fn alerts() -> Value {
    document(
        "alerts",
        &[
            ("alerts", list(reference("Alert"))),
            ("count", count()),
            ("next", nullable(text())),
        ],
    )
}

fn deliveries() -> Value {
    let delivery = object(&[
        ("target", text()),
        ("status", text()),
        ("tries", count()),
        ("error", nullable(text())),
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
        ("last_success", nullable(time())),
        ("last_error", nullable(error)),
        ("next_try", nullable(time())),
    ]);
    document(
        "delivery-status",
        &[
            ("targets", list(target)),
            ("dropped", count()),
            ("overflowed", count()),
            ("repeated", count()),
            ("store_error", nullable(text())),
        ],
    )
}
