//! The contents of the store as JSON: the entries of `toolwarden/watch/…/v1` and of the gateway's API.

use serde_json::{Value, json};
use toolwarden_drift::drift_json;
use toolwarden_store::{Alert, Baseline};

use crate::approval::{ApprovedItem, PendingApproval};

/// An alert.
#[must_use]
pub fn alert(alert: &Alert) -> Value {
    // INVARIANT: the store holds only documents that were written as JSON.
    let drift: Value = serde_json::from_str(&alert.document).unwrap_or(Value::Null);
    json!({
        "id": alert.id,
        "server": alert.server.name,
        "scope": alert.server.scope,
        "tool": alert.tool,
        "change_type": alert.change_type,
        "severity": alert.severity,
        "class": alert.class,
        "status": alert.status.as_str(),
        "first_seen": format!("{:.3}", alert.first_seen),
        "last_seen": format!("{:.3}", alert.last_seen),
        "times": alert.times,
        "drift": drift,
    })
}

/// A baseline.
#[must_use]
pub fn baseline(baseline: &Baseline) -> Value {
    json!({
        "tool": baseline.tool,
        "version": baseline.version,
        "origin": baseline.origin.as_str(),
        "fingerprint": baseline.definition.map(|kept| kept.fingerprint.to_string()),
        "format": baseline.definition.map(|kept| kept.format.id()),
        "has_shape": baseline.shape.is_some(),
        "schema_hash": baseline.old.schema,
        "response_pattern_hash": baseline.old.response,
        "approved": {
            "by": baseline.approval.by,
            "at": format!("{:.3}", baseline.approval.at),
            "why": baseline.approval.why,
        },
    })
}

/// An approval.
#[must_use]
pub fn approved_item(approved: &ApprovedItem) -> Value {
    match approved {
        ApprovedItem::Tool { server, tool } => {
            json!({"server": server, "tool": tool, "approved": "tool"})
        }
        ApprovedItem::RemovedTool { server, tool } => {
            json!({"server": server, "tool": tool, "approved": "gone"})
        }
        ApprovedItem::Change {
            server,
            tool,
            id,
            left,
        } => {
            json!({"server": server, "tool": tool, "approved": "change", "id": id, "left": left})
        }
    }
}

/// The pending approvals of one tool, with every change in full.
#[must_use]
pub fn pending_approval(pending: &PendingApproval) -> Value {
    let changes = pending.changes.iter().map(|change| {
        let mut entry = drift_json::change_to_json(change);
        if let Value::Object(members) = &mut entry {
            let is_approved = pending.approved.contains(&change.id.to_string());
            members.insert("approved".to_owned(), json!(is_approved));
        }
        entry
    });
    let alerts = pending.alerts.iter().map(|(id, _)| id);
    json!({
        "server": pending.server.key.name,
        "scope": pending.server.key.scope,
        "tool": pending.sighting.tool,
        "alerts": alerts.collect::<Vec<_>>(),
        "kind": pending.kind(),
        "findings": pending.findings,
        "results": pending.results,
        "seen_at": format!("{:.3}", pending.sighting.at),
        "changes": changes.collect::<Vec<_>>(),
    })
}
