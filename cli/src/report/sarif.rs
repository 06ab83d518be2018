use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{FindingLevel, FindingOrigin, FindingReport, ReportFinding, RuleInfo, fingerprint};
use crate::ci_escape::escape_json;

pub(super) fn render(report: &FindingReport) -> String {
    let mut rules: BTreeMap<String, (Option<RuleInfo>, FindingLevel)> = BTreeMap::new();
    for finding in &report.findings {
        let known = rules.entry(rule_id(finding));
        let known = known.or_insert((finding.detail.rule_info, finding.level));
        known.1 = max_level(known.1, finding.level);
    }
    let ids: Vec<&String> = rules.keys().collect();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let results: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| {
            let id = rule_id(finding);
            let digest = finding.detail.fingerprint.clone();
            let digest = digest.unwrap_or_else(|| {
                fingerprint([
                    &finding.check,
                    finding.rule,
                    &finding.tool,
                    &finding.pointer,
                ])
            });
            // Two findings of one rule about one thing are distinguished by their order.
            let nth = seen.entry(digest.clone()).or_default();
            *nth += 1;
            json!({
                "ruleId": id,
                "ruleIndex": ids.binary_search(&&id).unwrap_or_default(),
                "level": finding.level.as_str(),
                "message": { "text": format!("{}: {}", finding.tool, finding.message) },
                "locations": [location(finding)],
                "partialFingerprints": { "toolwarden/v1": format!("{digest}:{nth}") },
                "properties": { "rule": finding.rule, "tool": finding.tool },
            })
        })
        .collect();
    let rules: Vec<Value> = rules
        .iter()
        .map(|(id, (about, level))| rule(id, *about, *level))
        .collect();
    let sarif = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "toolwarden", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "results": results,
        }],
    });
    escape_json(serde_json::to_string_pretty(&sarif).unwrap_or_default()) + "\n"
}

fn rule_id(finding: &ReportFinding) -> String {
    let id = finding
        .detail
        .rule_info
        .map_or(finding.rule, |about| about.id);
    format!("{}/{id}", finding.check)
}

/// The rule as a reader of its first finding needs it.
fn rule(id: &str, about: Option<RuleInfo>, level: FindingLevel) -> Value {
    let (finds, help) = about.map_or(
        (
            "Something that the check does not accept.",
            "Read the message.",
        ),
        |about| (about.finds, about.help),
    );
    json!({
        "id": id,
        "shortDescription": { "text": finds },
        "fullDescription": { "text": format!("{finds} {help}") },
        "help": { "text": help, "markdown": help },
        "defaultConfiguration": { "level": level.as_str() },
    })
}

/// The gravest finding of a rule is its level.
const fn max_level(one: FindingLevel, other: FindingLevel) -> FindingLevel {
    match (one, other) {
        (FindingLevel::Error, _) | (_, FindingLevel::Error) => FindingLevel::Error,
        (FindingLevel::Warning, _) | (_, FindingLevel::Warning) => FindingLevel::Warning,
        (FindingLevel::Note, FindingLevel::Note) => FindingLevel::Note,
    }
}

fn location(finding: &ReportFinding) -> Value {
    let logical = json!([{ "name": finding.tool, "fullyQualifiedName": finding.pointer }]);
    match finding.detail.origin {
        FindingOrigin::File => json!({
            "physicalLocation": {
                "artifactLocation": { "uri": uri(&finding.file) },
                "region": { "startLine": finding.line, "startColumn": finding.column },
            },
            "logicalLocations": logical,
        }),
        FindingOrigin::Elsewhere => json!({ "logicalLocations": logical }),
    }
}

/// A path as a URI reference, relative to where the command was started if it lies there.
fn uri(path: &str) -> String {
    let folder = std::env::current_dir().ok();
    let inside = folder.and_then(|folder| {
        let inside = std::path::Path::new(path).strip_prefix(folder).ok()?;
        Some(inside.to_str()?.to_owned())
    });
    let path = inside.as_deref().unwrap_or(path);
    let path = path.strip_prefix("./").unwrap_or(path);
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
