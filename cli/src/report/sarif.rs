use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Report;
use crate::ci_escape::in_json;

pub(super) fn render(report: &Report) -> String {
    let ids: BTreeSet<String> = report
        .findings
        .iter()
        .map(|it| format!("{}/{}", it.check, it.rule))
        .collect();
    let rules: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
    let results: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "ruleId": format!("{}/{}", finding.check, finding.rule),
                "level": finding.level.word(),
                "message": { "text": format!("{}: {}", finding.tool, finding.message) },
                "locations": [{
                    "physicalLocation": {
                        "artifactLocation": { "uri": uri(&finding.file) },
                        "region": { "startLine": finding.line, "startColumn": finding.column },
                    },
                    "logicalLocations": [{ "fullyQualifiedName": finding.pointer }],
                }],
            })
        })
        .collect();
    let sarif = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "toolwarden", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "results": results,
        }],
    });
    in_json(serde_json::to_string_pretty(&sarif).unwrap_or_default()) + "\n"
}

/// A path as a URI reference.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/@".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}
