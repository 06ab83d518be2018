//! Tools, decisions, sessions and the workflow.

use serde_json::Value;
use toolwarden_guard::{Gate, ReasonCode};

use super::builders::{
    any_object, any_value, count, document, flag, list, nullable, number, object, one_of, text,
    time,
};
use crate::api::openapi::reference;

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("Tool", tool()),
        ("Treatment", tool_action()),
        ("Collision", collision()),
        ("Tools", tools()),
        (
            "ToolDocument",
            document("tool", &[("tool", reference("Tool"))]),
        ),
        ("Decision", decision()),
        ("Completion", completion()),
        ("Explanation", explanation()),
        ("Groups", groups()),
        ("States", states()),
        ("Session", session()),
        ("Sessions", sessions()),
        ("SessionDocument", session_document()),
    ]
}

fn tool() -> Value {
    object(&[
        ("name", nullable(text())),
        ("server", text()),
        ("tool", text()),
        ("definition", any_value()),
        ("groups?", list(text())),
        ("treatment?", reference("Treatment")),
        ("collision?", nullable(text())),
    ])
}

fn tool_action() -> Value {
    let kinds = ["serve", "hide", "quarantine", "block-server"];
    object(&[
        ("kind", one_of(&kinds)),
        ("why", nullable(text())),
        ("alert", nullable(text())),
    ])
}

fn collision() -> Value {
    object(&[
        ("name", text()),
        ("servers", list(text())),
        ("text", text()),
    ])
}

fn tools() -> Value {
    let away = object(&[("server", text()), ("reason", text())]);
    document(
        "tools",
        &[
            ("tools", list(reference("Tool"))),
            ("count", count()),
            ("servers_away", list(away)),
            ("next", nullable(text())),
        ],
    )
}

fn decision() -> Value {
    let codes: Vec<&str> = ReasonCode::ALL.iter().map(|code| code.as_str()).collect();
    document(
        "decision",
        &[
            ("allowed", flag()),
            ("code", one_of(&codes)),
            ("gate", nullable(gate())),
            ("reason", text()),
            ("advice", text()),
            ("pointers", list(text())),
            ("retryAfter", nullable(number())),
            ("latency_ms", nullable(number())),
            ("call", nullable(text())),
            ("expires", nullable(time())),
            ("leads_to", nullable(text())),
            ("checks_result", nullable(flag())),
        ],
    )
}

fn gate() -> Value {
    let gates: Vec<&str> = Gate::ALL.iter().map(|gate| gate.as_str()).collect();
    one_of(&gates)
}

fn completion() -> Value {
    let outcomes = ["succeeded", "failed", "suspended", "abandoned"];
    document(
        "completion",
        &[
            ("call", text()),
            ("outcome", one_of(&outcomes)),
            ("rejected", nullable(text())),
            ("state", text()),
            ("moved", flag()),
        ],
    )
}

fn explanation() -> Value {
    let step = object(&[
        ("gate", gate()),
        ("passes", nullable(flag())),
        ("code", nullable(text())),
        ("reason", nullable(text())),
    ]);
    let server = object(&[
        ("name", text()),
        ("tool", text()),
        ("health", text()),
        ("lists_it", flag()),
        ("list_age", nullable(number())),
        ("last_error", nullable(text())),
    ]);
    let causes = [
        "visible",
        "collision",
        "other_name",
        "not_listed_yet",
        "not_listed",
        "no_server",
        "unknown",
        "quarantined",
        "hidden",
        "blocked",
        "gate",
        "server_away",
    ];
    document(
        "explanation",
        &[
            ("answer", text()),
            ("cause", one_of(&causes)),
            ("remedy", text()),
            ("visible", flag()),
            ("callable", flag()),
            ("principal", text()),
            ("tool", text()),
            ("session", nullable(text())),
            ("gates", list(step)),
            ("server", nullable(server)),
            ("treatment", nullable(reference("Treatment"))),
            ("collision", nullable(reference("Collision"))),
            ("suggestions", list(text())),
        ],
    )
}

fn groups() -> Value {
    let group = object(&[
        ("name", text()),
        ("description", nullable(text())),
        ("tools", list(text())),
        ("when", nullable(text())),
        ("on", flag()),
        ("granted", flag()),
    ]);
    document("groups", &[("principal", text()), ("groups", list(group))])
}

fn states() -> Value {
    let state = object(&[
        ("name", text()),
        ("initial", flag()),
        ("reachable", flag()),
        ("dead_end", flag()),
    ]);
    let transition = object(&[
        ("from", nullable(text())),
        ("to", nullable(text())),
        ("tools", list(text())),
    ]);
    document(
        "states",
        &[("states", list(state)), ("transitions", list(transition))],
    )
}

fn session() -> Value {
    let conversation = object(&[
        ("era", one_of(&["handshake", "stateless"])),
        ("protocol_version", text()),
        ("client", nullable(text())),
        ("mcp_session_id", nullable(text())),
        ("listening", flag()),
    ]);
    object(&[
        ("id", text()),
        ("principal", text()),
        ("session", text()),
        ("state", text()),
        ("groups", list(text())),
        ("opened", time()),
        ("last_used", time()),
        ("conversations", list(conversation)),
    ])
}

fn sessions() -> Value {
    document(
        "sessions",
        &[
            ("sessions", list(reference("Session"))),
            ("count", count()),
            ("next", nullable(text())),
        ],
    )
}

fn session_document() -> Value {
    document(
        "session",
        &[
            ("principal", text()),
            ("state", text()),
            ("log", any_object()),
        ],
    )
}
