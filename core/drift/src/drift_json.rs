//! Drift as JSON.

use serde_json::{Value, json};
use toolwarden_model::json::Object;
use toolwarden_schema::{SchemaSide, Unknown, Witness};

use crate::change::{CallEffect, Change, Judgement, ToolwatchSeverity};
use crate::definition_drift::Drift;
use crate::list_drift::ToolDrift;
use crate::rename::Rename;
use crate::schema::SchemaDrift;
use crate::shape::{Certainty, Frequency, ShapeDrift};
use crate::text::{TextFinding, WordRun, diff_words};
use crate::text_changes::changed_texts;

/// The drift of one tool as JSON: the entries of `toolwarden/watch/diff/v1` and of alerts.
#[must_use]
pub fn tool(tool: &ToolDrift) -> Value {
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
    entry.insert("change_type".to_owned(), json!(tool.change_type().as_str()));
    entry.insert(
        "severity".to_owned(),
        json!(ToolwatchSeverity::from(tool.class().severity()).as_str()),
    );
    match tool {
        ToolDrift::Changed(drift) => drift_to_json(&mut entry, drift),
        ToolDrift::Renamed { rename, drift } => {
            entry.insert("rename".to_owned(), rename_to_json(rename));
            drift_to_json(&mut entry, drift);
        }
        ToolDrift::Added { findings, .. } => {
            let reasons: Vec<Value> = findings.iter().map(finding_to_json).collect();
            entry.insert("reasons".to_owned(), Value::Array(reasons));
        }
        ToolDrift::Removed { .. } => {}
    }
    Value::Object(entry)
}

fn drift_to_json(entry: &mut Object, drift: &Drift) {
    for (key, schema) in [("input", &drift.input), ("output", &drift.output)] {
        if let Some(schema) = schema {
            entry.insert(key.to_owned(), schema_drift_to_json(schema));
        }
    }
    let changes = drift.changes.iter().map(change_to_json).collect();
    entry.insert("changes".to_owned(), Value::Array(changes));
    if let Some(shape) = &drift.results {
        entry.insert("results".to_owned(), results_to_json(shape));
    }
}

/// What observed results show beyond the changes, as JSON.
#[must_use]
pub fn results_to_json(drift: &ShapeDrift) -> Value {
    let evidence = |it: Frequency| json!({"seen": it.seen, "of": it.of});
    let changes = drift.changes.iter().map(|it| {
        let mut entry = Object::new();
        entry.insert("part".to_owned(), json!(it.channel.as_str()));
        entry.insert("path".to_owned(), json!(it.pointer));
        entry.insert("what".to_owned(), json!(it.what.to_string()));
        entry.insert("baseline".to_owned(), evidence(it.baseline));
        entry.insert("window".to_owned(), evidence(it.window));
        match it.certainty {
            Certainty::Certain => entry.insert("certain".to_owned(), json!(true)),
            Certainty::Significant { p, effect } => {
                entry.insert("effect".to_owned(), json!(effect));
                entry.insert("p".to_owned(), json!(p))
            }
        };
        Value::Object(entry)
    });
    let notes = drift.notes.iter().map(|it| {
        json!({"part": it.channel.as_str(), "path": it.pointer, "what": it.what.to_string(),
            "baseline": evidence(it.baseline), "window": evidence(it.window), "message": it.message})
    });
    let limits = drift.limits.iter().map(|it| Value::from(it.to_string()));
    json!({
        "measured": drift.too_few().is_none(),
        "changes": changes.collect::<Vec<_>>(),
        "notes": notes.collect::<Vec<_>>(),
        "limits": limits.collect::<Vec<_>>(),
    })
}

fn schema_drift_to_json(drift: &SchemaDrift) -> Value {
    let mut entry = Object::new();
    entry.insert("declared".to_owned(), judgement_to_json(&drift.declared));
    entry.insert("open".to_owned(), judgement_to_json(&drift.open));
    if let Some(replayed) = &drift.replay {
        let mut observed = Object::new();
        observed.insert("calls".to_owned(), json!(replayed.calls));
        observed.insert("accepted_before".to_owned(), json!(replayed.accepted));
        observed.insert("rejected_now".to_owned(), json!(replayed.rejected));
        if let Some(first) = &replayed.first {
            observed.insert("first_rejected".to_owned(), witness_to_json(first));
        }
        if !replayed.lost.is_empty() {
            let lost = replayed.lost.iter();
            let lost = lost.map(|it| json!({"call": it.index, "pointer": it.pointer.as_str(), "arguments": it.call}));
            observed.insert("ignored_now".to_owned(), lost.collect());
        }
        entry.insert("observed".to_owned(), Value::Object(observed));
    }
    Value::Object(entry)
}

fn judgement_to_json(judgement: &Judgement) -> Value {
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
            entry.insert("witness".to_owned(), witness_to_json(found));
        }
        Judgement::Unknown(unknown) => {
            entry.insert("reason".to_owned(), json!(unknown.reason.text()));
            entry.insert("obstacles".to_owned(), obstacles_to_json(unknown));
        }
    }
    Value::Object(entry)
}

fn obstacles_to_json(unknown: &Unknown) -> Value {
    let obstacles = unknown.obstacles.iter();
    obstacles
        .map(|obstacle| {
            let side = match obstacle.side {
                SchemaSide::Old => "old",
                SchemaSide::New => "new",
            };
            json!({"side": side, "pointer": obstacle.pointer.as_str(), "keyword": obstacle.keyword})
        })
        .collect()
}

fn witness_to_json(witness: &Witness) -> Value {
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

/// One change, as JSON.
#[must_use]
pub fn change_to_json(change: &Change) -> Value {
    let mut entry = Object::new();
    let mut put = |key: &str, value: Value| entry.insert(key.to_owned(), value);
    put("id", json!(change.id.to_string()));
    put("rule", json!(change.rule));
    put("facet", json!(change.evidence.facet.as_str()));
    put("pointer", json!(change.pointer.as_str()));
    put("kind", json!(change.kind.as_str()));
    put("class", json!(change.class.as_str()));
    put("message", json!(change.message));
    if let Some(found) = &change.evidence.judgement {
        put("judgement", judgement_to_json(found));
    }
    if let Some(before) = &change.before {
        put("before", before.clone());
    }
    if let Some(after) = &change.after {
        put("after", after.clone());
    }
    if let Some(rename) = &change.evidence.rename {
        put("rename", rename_to_json(rename));
    }
    if let Some(effect) = &change.evidence.effect {
        put("effect", effect_to_json(effect));
    }
    if let Some((before, after)) = changed_texts(change) {
        let runs = diff_words(&before, &after);
        let added = runs.iter().filter_map(|run| match run {
            WordRun::Added(words) => Some(json!(words)),
            WordRun::Kept(_) | WordRun::Removed(_) => None,
        });
        let removed = runs.iter().filter_map(|run| match run {
            WordRun::Removed(words) => Some(json!(words)),
            WordRun::Kept(_) | WordRun::Added(_) => None,
        });
        put(
            "words",
            json!({"added": added.collect::<Vec<_>>(), "removed": removed.collect::<Vec<_>>()}),
        );
    }
    if !change.evidence.reasons.is_empty() {
        put(
            "reasons",
            change
                .evidence
                .reasons
                .iter()
                .map(finding_to_json)
                .collect(),
        );
    }
    Value::Object(entry)
}

fn effect_to_json(effect: &CallEffect) -> Value {
    match effect {
        CallEffect::Ignored { call, pointer } => {
            json!({"ignored": {"call": call, "pointer": pointer.as_str()}})
        }
        CallEffect::Default {
            calls,
            replaced,
            switch,
            writes,
        } => {
            let mut entry = Object::new();
            if let Some((before, after)) = calls {
                entry.insert("call_before".to_owned(), before.clone());
                entry.insert("call_after".to_owned(), after.clone());
            }
            entry.insert("replaced".to_owned(), json!(replaced));
            entry.insert("switch".to_owned(), json!(switch));
            entry.insert("tool_writes".to_owned(), json!(writes));
            json!({"default": entry})
        }
    }
}

fn rename_to_json(rename: &Rename) -> Value {
    let mut entry = Object::new();
    entry.insert("from".to_owned(), json!(rename.from));
    entry.insert("to".to_owned(), json!(rename.to));
    entry.insert(
        "likeness".to_owned(),
        json!((rename.similarity * 100.0).round() / 100.0),
    );
    if let Some(adapter) = &rename.adapter {
        entry.insert("adapter".to_owned(), json!(adapter));
    }
    Value::Object(entry)
}

/// One finding of a text, as JSON.
#[must_use]
pub fn finding_to_json(finding: &TextFinding) -> Value {
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
