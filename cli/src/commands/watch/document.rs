//! A comparison as JSON.

use serde_json::{Value, json};
use toolwarden_drift::text::Finding;
use toolwarden_drift::{Change, Drift, Judgement, Rename, SchemaDrift, ToolDrift};
use toolwarden_model::json::Object;
use toolwarden_schema::{Callers, Side, Unknown, Witness};

use super::diff::Comparison;

pub(super) fn render(comparison: &Comparison<'_>) -> String {
    let tools: Vec<Value> = comparison.drift.tools.iter().map(tool).collect();
    let mut document = Object::new();
    let mut put = |key: &str, value: Value| document.insert(key.to_owned(), value);
    put("schema", json!("toolwarden/watch/diff/v1"));
    put("old", json!(comparison.args.old.display().to_string()));
    put("new", json!(comparison.args.new.display().to_string()));
    put(
        "policy",
        json!(match comparison.options.callers {
            Callers::Declared => "declared",
            Callers::Open => "open",
        }),
    );
    put("unchanged", json!(comparison.drift.unchanged));
    put("tools", Value::Array(tools));
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn tool(tool: &ToolDrift) -> Value {
    let mut entry = Object::new();
    let outcome = match tool {
        ToolDrift::Changed(_) => "changed",
        ToolDrift::Added { .. } => "added",
        ToolDrift::Removed { .. } => "removed",
        ToolDrift::Renamed { .. } => "renamed",
    };
    entry.insert("tool".to_owned(), json!(tool.tool()));
    entry.insert("outcome".to_owned(), json!(outcome));
    entry.insert("class".to_owned(), json!(tool.class().as_str()));
    entry.insert("change_type".to_owned(), json!("schema_change"));
    entry.insert(
        "severity".to_owned(),
        json!(tool.class().severity().as_str()),
    );
    match tool {
        ToolDrift::Changed(drift) => changed(&mut entry, drift),
        ToolDrift::Renamed { rename, drift } => {
            entry.insert("rename".to_owned(), renamed(rename));
            changed(&mut entry, drift);
        }
        ToolDrift::Added { findings, .. } => {
            let reasons: Vec<Value> = findings.iter().map(finding).collect();
            entry.insert("reasons".to_owned(), Value::Array(reasons));
        }
        ToolDrift::Removed { .. } => {}
    }
    Value::Object(entry)
}

fn changed(entry: &mut Object, drift: &Drift) {
    for (key, schema) in [("input", &drift.input), ("output", &drift.output)] {
        if let Some(schema) = schema {
            entry.insert(key.to_owned(), schema_drift(schema));
        }
    }
    let changes = drift.changes.iter().map(change).collect();
    entry.insert("changes".to_owned(), Value::Array(changes));
}

fn schema_drift(drift: &SchemaDrift) -> Value {
    let mut entry = Object::new();
    entry.insert("declared".to_owned(), judgement(&drift.declared));
    entry.insert("open".to_owned(), judgement(&drift.open));
    if let Some(replayed) = &drift.replayed {
        let mut observed = Object::new();
        observed.insert("calls".to_owned(), json!(replayed.calls));
        observed.insert("accepted_before".to_owned(), json!(replayed.accepted));
        observed.insert("rejected_now".to_owned(), json!(replayed.rejected));
        if let Some(first) = &replayed.first {
            observed.insert("first_rejected".to_owned(), witness(first));
        }
        entry.insert("observed".to_owned(), Value::Object(observed));
    }
    Value::Object(entry)
}

fn judgement(judgement: &Judgement) -> Value {
    let mut entry = Object::new();
    entry.insert("verdict".to_owned(), json!(judgement.as_str()));
    match judgement {
        Judgement::Equivalent => {}
        Judgement::Compatible(gained) => {
            if let Some(gained) = gained {
                entry.insert("accepted_now".to_owned(), gained.clone());
            }
        }
        Judgement::Breaking(found) => {
            entry.insert("witness".to_owned(), witness(found));
        }
        Judgement::Unknown(unknown) => {
            entry.insert("reason".to_owned(), json!(unknown.reason.text()));
            entry.insert("obstacles".to_owned(), obstacles(unknown));
        }
    }
    Value::Object(entry)
}

fn obstacles(unknown: &Unknown) -> Value {
    let obstacles = unknown.obstacles.iter();
    obstacles
        .map(|obstacle| {
            let side = match obstacle.side {
                Side::Old => "old",
                Side::New => "new",
            };
            json!({"side": side, "pointer": obstacle.pointer.as_str(), "keyword": obstacle.keyword})
        })
        .collect()
}

fn witness(witness: &Witness) -> Value {
    let mut entry = Object::new();
    entry.insert("value".to_owned(), witness.value.clone());
    entry.insert("keyword".to_owned(), json!(witness.keyword));
    entry.insert(
        "schema_pointer".to_owned(),
        json!(witness.schema_pointer.as_str()),
    );
    entry.insert(
        "value_pointer".to_owned(),
        json!(witness.value_pointer.as_str()),
    );
    entry.insert("message".to_owned(), json!(witness.message));
    Value::Object(entry)
}

fn change(change: &Change) -> Value {
    let mut entry = Object::new();
    let mut put = |key: &str, value: Value| entry.insert(key.to_owned(), value);
    put("id", json!(change.id.to_string()));
    put("rule", json!(change.rule));
    put("facet", json!(change.facet.as_str()));
    put("pointer", json!(change.pointer.as_str()));
    put("kind", json!(change.kind.as_str()));
    put("class", json!(change.class.as_str()));
    put("message", json!(change.message));
    if let Some(found) = &change.judgement {
        put("judgement", judgement(found));
    }
    if let Some(before) = &change.before {
        put("before", before.clone());
    }
    if let Some(after) = &change.after {
        put("after", after.clone());
    }
    if let Some(rename) = &change.rename {
        put("rename", renamed(rename));
    }
    if !change.reasons.is_empty() {
        put("reasons", change.reasons.iter().map(finding).collect());
    }
    Value::Object(entry)
}

fn renamed(rename: &Rename) -> Value {
    let mut entry = Object::new();
    entry.insert("from".to_owned(), json!(rename.from));
    entry.insert("to".to_owned(), json!(rename.to));
    entry.insert(
        "likeness".to_owned(),
        json!((rename.likeness * 100.0).round() / 100.0),
    );
    if let Some(adapter) = &rename.adapter {
        entry.insert("adapter".to_owned(), json!(adapter));
    }
    Value::Object(entry)
}

pub(super) fn finding(finding: &Finding) -> Value {
    let mut entry = Object::new();
    entry.insert("detector".to_owned(), json!(finding.detector.as_str()));
    entry.insert("weight".to_owned(), json!(finding.weight.as_str()));
    entry.insert("pointer".to_owned(), json!(finding.pointer.as_str()));
    entry.insert("message".to_owned(), json!(finding.message));
    if let Some(decoded) = &finding.decoded {
        entry.insert("decoded".to_owned(), json!(decoded));
    }
    Value::Object(entry)
}
