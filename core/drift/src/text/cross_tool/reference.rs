use std::collections::{BTreeMap, BTreeSet};

use super::super::character::quote;
use super::super::finding::{Detector, TextFinding, Weight};
use super::super::finding_collector::FindingCollector;
use super::super::name_words::segments;
use super::super::walk::{StringRole, for_each_string};
use super::ServerTool;

pub(super) fn scan(tools: &[ServerTool<'_>]) -> Vec<(usize, TextFinding)> {
    let mut servers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for tool in tools {
        servers.entry(tool.name).or_default().insert(tool.server);
    }
    servers.retain(|name, _| is_distinctive(name));
    let mut findings = Vec::new();
    if servers.is_empty() {
        return findings;
    }
    for (index, tool) in tools.iter().enumerate() {
        let mut found = Vec::new();
        scan_tool(tool, &servers, &mut found);
        findings.extend(found.into_iter().map(|finding| (index, finding)));
    }
    findings
}

fn scan_tool(
    tool: &ServerTool<'_>,
    servers: &BTreeMap<&str, BTreeSet<&str>>,
    findings: &mut Vec<TextFinding>,
) {
    // A word that is also a key or a value of its own need not mean the other tool.
    let mut own = BTreeSet::new();
    for_each_string(tool.definition, |_, text, _| {
        if servers.contains_key(text) {
            own.insert(text.to_owned());
        }
    });
    for_each_string(tool.definition, |pointer, text, role| {
        if role != StringRole::Text {
            return;
        }
        let mut notes = FindingCollector::new(Detector::CrossServerReference, pointer);
        for token in tokens(text) {
            let Some(owners) = servers.get(token) else {
                continue;
            };
            let owner = match owners.first() {
                Some(owner) if !owners.contains(tool.server) => owner,
                _ => continue,
            };
            let weight = if own.contains(token) {
                Weight::Low
            } else {
                Weight::Medium
            };
            let message = format!("names {}, a tool of server {}", quote(token), quote(owner));
            notes.add(weight, message, None);
        }
        notes.finish(findings);
    });
}

/// A single word is too common to mean a tool unless it is very long.
const LONG_WORD: usize = 16;

/// Whether a name found in prose can only mean the tool.
pub(in super::super) fn is_distinctive(name: &str) -> bool {
    let words = segments(name).len();
    match words {
        0 => false,
        1 => name.chars().count() >= LONG_WORD,
        // `read-only` and `built-in` are English.
        2 => name.contains(['_', '.', '/', ':']) || !name.contains('-'),
        _ => true,
    }
}

/// What could be a name in a text: runs of letters and what joins them, and the parts of a run.
pub(in super::super) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':')))
        .map(|run| run.trim_matches(['-', '.', '/', ':']))
        .filter(|run| !run.is_empty())
        .flat_map(|run| {
            let parts = run
                .split(['.', '/', ':'])
                .filter(move |part| part.len() < run.len());
            std::iter::once(run).chain(parts)
        })
}
