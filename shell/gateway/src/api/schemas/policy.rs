//! Tools, decisions, sessions and the workflow.

use serde_json::Value;
use toolwarden_guard::{Code, Gate};

use super::parts::{
    anything, count, document, flag, list, maybe, number, object, text, time, value, word,
};
use crate::api::openapi::reference;

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("Tool", tool()),
        ("Treatment", treatment()),
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
        ("name", maybe(text())),
        ("server", text()),
        ("tool", text()),
        ("definition", value()),
        ("groups?", list(text())),
        ("treatment?", reference("Treatment")),
        ("collision?", maybe(text())),
    ])
}

fn treatment() -> Value {
    let kinds = ["serve", "hide", "quarantine", "block-server"];
    object(&[
        ("kind", word(&kinds)),
        ("why", maybe(text())),
        ("alert", maybe(text())),
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
            ("next", maybe(text())),
        ],
    )
}

fn decision() -> Value {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    document(
        "decision",
        &[
            ("allowed", flag()),
            ("code", word(&codes)),
            ("gate", maybe(gate())),
            ("reason", text()),
            ("advice", text()),
            ("pointers", list(text())),
            ("retryAfter", maybe(number())),
            ("latency_ms", maybe(number())),
            ("call", maybe(text())),
            ("expires", maybe(time())),
            ("leads_to", maybe(text())),
            ("checks_result", maybe(flag())),
        ],
    )
}

fn gate() -> Value {
    let gates: Vec<&str> = Gate::ALL.iter().map(|gate| gate.as_str()).collect();
    word(&gates)
}

fn completion() -> Value {
    let outcomes = ["succeeded", "failed", "suspended", "abandoned"];
    document(
        "completion",
        &[
            ("call", text()),
            ("outcome", word(&outcomes)),
            ("rejected", maybe(text())),
            ("state", text()),
            ("moved", flag()),
        ],
    )
}

fn explanation() -> Value {
    let step = object(&[
        ("gate", gate()),
        ("passes", maybe(flag())),
        ("code", maybe(text())),
        ("reason", maybe(text())),
    ]);
    let server = object(&[
        ("name", text()),
        ("tool", text()),
        ("health", text()),
        ("lists_it", flag()),
        ("list_age", maybe(number())),
        ("last_error", maybe(text())),
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
            ("cause", word(&causes)),
            ("remedy", text()),
            ("visible", flag()),
            ("callable", flag()),
            ("principal", text()),
            ("tool", text()),
            ("session", maybe(text())),
            ("gates", list(step)),
            ("server", maybe(server)),
            ("treatment", maybe(reference("Treatment"))),
            ("collision", maybe(reference("Collision"))),
            ("suggestions", list(text())),
        ],
    )
}

fn groups() -> Value {
    let group = object(&[
        ("name", text()),
        ("description", maybe(text())),
        ("tools", list(text())),
        ("when", maybe(text())),
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
        ("from", maybe(text())),
        ("to", maybe(text())),
        ("tools", list(text())),
    ]);
    document(
        "states",
        &[("states", list(state)), ("transitions", list(transition))],
    )
}

fn session() -> Value {
    let conversation = object(&[
        ("era", word(&["handshake", "stateless"])),
        ("protocol_version", text()),
        ("client", maybe(text())),
        ("mcp_session_id", maybe(text())),
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
            ("next", maybe(text())),
        ],
    )
}

fn session_document() -> Value {
    document(
        "session",
        &[
            ("principal", text()),
            ("state", text()),
            ("log", anything()),
        ],
    )
}
