//! What the text of tools carries that are pinned for the first time.

use std::collections::BTreeSet;

use toolwarden_drift::text::{Finding, Weight, scan};
use toolwarden_warden::{Listing, Observation};

use super::Source;
use crate::commands::talk;
use crate::style::{self, visible};

/// What a tool carries that honest tools rarely do.
pub(super) fn findings(seen: &Observation) -> Vec<Finding> {
    let mut findings = scan(seen.definition());
    findings.retain(|it| it.weight >= Weight::Medium);
    findings
}

/// Says what tools carry that were pinned just now: a person should read them before an agent does.
pub(super) fn warn(source: &Source, listing: &Listing, pinned: &[String]) {
    let pinned: BTreeSet<&String> = pinned.iter().collect();
    let observed = listing.observed.iter();
    for seen in observed.filter(|it| pinned.contains(&it.name)) {
        for finding in findings(seen) {
            say(source, &seen.name, &finding);
        }
    }
}

fn say(source: &Source, tool: &str, finding: &Finding) {
    let warning = style::WARNING;
    let (server, tool) = (visible(&source.key.name), visible(tool));
    let decoded = finding.decoded.as_ref();
    let reads = decoded.map_or_else(String::new, |it| format!(" (reads: {it})"));
    talk::say(&format!(
        "{warning}Warning{warning:#}: `{tool}` of server `{server}` is suspicious ({} {}): {}{}",
        finding.weight,
        finding.detector,
        visible(&finding.message),
        visible(&reads)
    ));
}
