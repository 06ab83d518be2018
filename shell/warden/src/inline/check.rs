//! Holds what a server lists to its pins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use toolwarden_drift::text::{Finding, scan};
use toolwarden_drift::{ChangeType, Options, ToolDrift, shadowing};
use toolwarden_store::Approval;

use super::desk::{Desk, server_key, summarize};
use super::error::WatchError;
use super::list::ReadList;
use super::notice::Figure;
use super::seen::{Checked, SeenList, ToolFinding, Treatment};
use super::treat::{is_suspicious, treatments};
use crate::judge::{Judged, judge};
use crate::observation::INSTRUCTIONS;
use crate::pins::Pins;
use crate::record::{Recorded, Recording, record};
use crate::settings::OnDrift;
use crate::{Observation, UNKNOWN_VERSION};

impl Desk {
    pub(super) fn check(&mut self, seen: SeenList) -> Result<Arc<Checked>, WatchError> {
        let fingerprint = seen.fingerprint();
        if let Some(answer) = self.answer(&seen, fingerprint) {
            self.figures.count(Figure::Known);
            return Ok(answer);
        }
        self.poll()?;
        let (read, judged, recorded) = self.hold(&seen)?;
        self.figures.count(Figure::Judged);
        self.tell(&seen.server, &judged.drift.tools, &recorded);
        let checked = Arc::new(told(&seen, &read, judged, &recorded));
        self.remember(seen, fingerprint, &read, &checked);
        // What was pinned just now is news to others, and this answer is not asked for again: the
        // next one is of the new pins.
        self.pinned()?;
        Ok(checked)
    }

    /// Judges a list and keeps what is found, by pins that nobody replaced in between.
    fn hold(&self, seen: &SeenList) -> Result<(ReadList, Judged, Recorded), WatchError> {
        let key = server_key(&seen.server);
        let approval = self.approval();
        let recording = Recording {
            approval: &approval,
            version: UNKNOWN_VERSION,
            // Also where not everything was seen: what comes later is new.
            seal: true,
            alert_on: &ChangeType::ALL,
            alert_on_equivalent: false,
            wanted: &[],
        };
        loop {
            let pins = Pins::of_store(&self.store, &key)?;
            let mut read = ReadList::new(seen.whole);
            for (place, tool) in seen.tools.iter().enumerate() {
                read.add_tool(place, tool, &pins);
            }
            if let Some(instructions) = &seen.instructions {
                read.add_instructions(instructions);
            }
            let mut judged = judge(&pins, &mut read.listing, &Options::default(), &[])?;
            set_aside(&mut judged, &read, seen.settings.on_finding);
            let recorded = record(&self.store, &pins, &read.listing, &judged, &recording)?;
            if !recorded.overtaken {
                return Ok((read, judged, recorded));
            }
        }
    }

    pub(super) fn approval(&self) -> Approval {
        Approval {
            by: self.options.by.clone(),
            at: self.options.clock.wall(),
            why: None,
        }
    }
}

/// Tools seen for the first time that are not to be pinned: those that share a name, and those whose
/// text speaks against them. They are drift, so that somebody has to approve them.
fn set_aside(judged: &mut Judged, read: &ReadList, on_finding: OnDrift) {
    let mut aside: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    let newcomers: BTreeSet<&String> = judged.newcomers.iter().collect();
    for seen in &read.listing.observed {
        if !newcomers.contains(&seen.name) {
            continue;
        }
        let findings = scan(seen.definition());
        let is_bad = on_finding != OnDrift::Serve && findings.iter().any(is_suspicious);
        let is_doubled = read.doubled.contains(&seen.name);
        if is_bad || is_doubled {
            let known = aside.entry(seen.name.clone()).or_default();
            known.extend(findings);
            if is_doubled {
                known.push(shadowing(&seen.name));
            }
        }
    }
    judged.newcomers.retain(|name| !aside.contains_key(name));
    let added = aside.into_iter();
    let added = added.map(|(tool, findings)| ToolDrift::Added { tool, findings });
    judged.drift.tools.extend(added);
}

fn told(seen: &SeenList, read: &ReadList, judged: Judged, recorded: &Recorded) -> Checked {
    let drift = judged.drift.tools;
    let (mut all, block_server) = treatments(read, &drift, recorded, &seen.settings);
    let instructions = all.get(INSTRUCTIONS).cloned().unwrap_or(Treatment::Serve);
    if !read.has_tool(INSTRUCTIONS) {
        all.remove(INSTRUCTIONS);
    }
    Checked {
        treatments: all,
        instructions,
        block_server,
        changes: drift.iter().map(|it| summarize(it, recorded)).collect(),
        findings: findings(read, &drift, &recorded.registered),
        registered: recorded.registered.clone(),
        drift,
    }
}

/// What the text of new tools and of changes carries.
fn findings(read: &ReadList, drift: &[ToolDrift], registered: &[String]) -> Vec<ToolFinding> {
    let registered: BTreeSet<&String> = registered.iter().collect();
    let mut told = Vec::new();
    let mut tell = |tool: &str, findings: &mut dyn Iterator<Item = Finding>| {
        told.extend(findings.filter(is_suspicious).map(|finding| ToolFinding {
            tool: tool.to_owned(),
            finding,
        }));
    };
    let is_new = |seen: &&Observation| registered.contains(&seen.name);
    for seen in read.listing.observed.iter().filter(is_new) {
        tell(&seen.name, &mut scan(seen.definition()).into_iter());
    }
    for tool in drift {
        match tool {
            ToolDrift::Added { findings, .. } => {
                tell(tool.tool(), &mut findings.iter().cloned());
            }
            ToolDrift::Changed(drift) | ToolDrift::Renamed { drift, .. } => {
                let reasons = drift.changes.iter().flat_map(|change| &change.reasons);
                tell(tool.tool(), &mut reasons.cloned());
            }
            ToolDrift::Removed { .. } => {}
        }
    }
    told
}
