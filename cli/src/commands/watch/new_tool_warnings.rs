//! What the text of tools carries that are pinned for the first time.

use std::collections::BTreeSet;

use toolwarden_drift::text::{TextFinding, Weight, scan};
use toolwarden_watch::{Observation, ServerListing};

use super::WatchSource;
use crate::commands::progress;
use crate::style::{self, escape_controls};

/// What a tool carries that honest tools rarely do.
pub(super) fn findings(seen: &Observation) -> Vec<TextFinding> {
    let mut findings = scan(seen.definition());
    findings.retain(|it| it.weight >= Weight::Medium);
    findings
}

/// Says what tools carry that were pinned just now: a person should read them before an agent does.
pub(super) fn warn_of_findings(source: &WatchSource, listing: &ServerListing, pinned: &[String]) {
    let pinned: BTreeSet<&String> = pinned.iter().collect();
    let observed = listing.observed.iter();
    for seen in observed.filter(|it| pinned.contains(&it.name)) {
        for finding in findings(seen) {
            print_finding(source, &seen.name, &finding);
        }
    }
}

fn print_finding(source: &WatchSource, tool: &str, finding: &TextFinding) {
    let warning = style::WARNING;
    let (server, tool) = (escape_controls(&source.key.name), escape_controls(tool));
    let decoded = finding.decoded.as_ref();
    let reads = decoded.map_or_else(String::new, |it| format!(" (reads: {it})"));
    progress::print_status(&format!(
        "{warning}Warning{warning:#}: `{tool}` of server `{server}` is suspicious ({} {}): {}{}",
        finding.weight,
        finding.detector,
        escape_controls(&finding.message),
        escape_controls(&reads)
    ));
}
