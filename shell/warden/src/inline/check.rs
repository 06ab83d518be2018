//! Holds what a server lists to its pins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use toolwarden_drift::text::{Finding, scan};
use toolwarden_drift::{ChangeType, Options, ToolDrift, shadowing};
use toolwarden_store::{Approval, NewBaseline, Origin, ServerKey};

use super::desk::{Desk, server_key, summarize};
use super::error::WatchError;
use super::list::{ReadList, tool_name};
use super::notice::Figure;
use super::seen::{Checked, SeenList, ToolFinding, Treatment};
use super::treat::{is_suspicious, treatments};
use crate::judge::{Judged, judge};
use crate::observation::INSTRUCTIONS;
use crate::pins::{Pin, Pins};
use crate::record::{Recorded, Recording, record};
use crate::settings::OnDrift;
use crate::{Observation, UNKNOWN_VERSION};

/// The most variants of one server: what clients say of themselves is theirs to choose.
const MOST_VARIANTS: usize = 64;
/// The most variants that are remembered because they are offered what all are.
const MOST_PLAIN_VARIANTS: usize = 4_096;

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
        self.tell(&seen.key(), &judged.drift.tools, &recorded);
        let checked = Arc::new(told(&seen, &read, judged, &recorded));
        self.remember(seen, fingerprint, &read, &checked);
        // What was pinned just now is news to others, and this answer is not asked for again: the
        // next one is of the new pins.
        self.pinned()?;
        Ok(checked)
    }

    /// Judges a list and keeps what is found, by pins that nobody replaced in between.
    fn hold(&mut self, seen: &SeenList) -> Result<(ReadList, Judged, Recorded), WatchError> {
        let key = seen.key();
        let approval = self.approval();
        if seen.variant.is_some() && self.is_plain_variant(seen, &key)? {
            return Ok((ReadList::new(false), Judged::default(), Recorded::default()));
        }
        if seen.variant.is_some() {
            self.prepare_variant(seen, &key, &approval)?;
        }
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
            read.listing
                .unchanged
                .extend(seen.unchanged.iter().cloned());
            let mut judged = judge(&pins, &mut read.listing, &Options::default(), &[])?;
            set_aside(&mut judged, &read, seen.settings.on_finding);
            let recorded = record(&self.store, &pins, &read.listing, &judged, &recording)?;
            if recorded.overtaken {
                continue;
            }
            if seen.variant.is_some() && !pins.sealed {
                self.store.keep_server(&key, true, approval.at)?;
            }
            return Ok((read, judged, recorded));
        }
    }

    /// Whether a variant of clients is offered just what the gateway is. Nothing is kept of such a variant
    /// but that it was seen: what it is offered later besides is new.
    fn is_plain_variant(&mut self, seen: &SeenList, key: &ServerKey) -> Result<bool, WatchError> {
        if self.store.server(key)?.is_some() {
            return Ok(false);
        }
        if seen.tools.is_empty() {
            if self.plain_variants.len() >= MOST_PLAIN_VARIANTS {
                self.plain_variants.clear();
            }
            self.plain_variants.insert(key.clone());
            return Ok(true);
        }
        if self.plain_variants.remove(key) {
            self.store.keep_server(key, true, self.approval().at)?;
        }
        Ok(false)
    }

    /// Gives a variant the pins of the gateway's own list for tools that it has none for: a tool that is
    /// pinned already is compared with that pin, not pinned anew because a client with other
    /// capabilities came.
    fn prepare_variant(
        &self,
        seen: &SeenList,
        key: &ServerKey,
        approval: &Approval,
    ) -> Result<(), WatchError> {
        let names: Vec<String> = seen.tools.iter().filter_map(|it| tool_name(it)).collect();
        let names = || names.iter().map(String::as_str);
        let own = Pins::of_tools(&self.store, key, names())?;
        if !own.known {
            let servers = self.store.servers()?;
            let variants = servers.iter().filter(|it| it.key.name == key.name).count();
            if variants > MOST_VARIANTS {
                return Err(WatchError::TooManyVariants {
                    server: key.name.clone(),
                    most: MOST_VARIANTS,
                });
            }
        }
        let base = Pins::of_tools(&self.store, &server_key(&seen.server), names())?;
        let missing = base.tools.iter();
        let missing = missing.filter(|(name, _)| !own.tools.contains_key(*name));
        let missing: Vec<(&String, &Pin)> = missing.collect();
        if missing.is_empty() {
            return Ok(());
        }
        self.store.write(|store| {
            let server = store.keep_server(key, false, approval.at)?;
            for (tool, pin) in missing {
                let Some(kept) = pin.definition else {
                    continue;
                };
                // Another process may have been faster.
                if store.baseline(server.id, tool)?.is_some() {
                    continue;
                }
                let text = store.definition(kept.fingerprint)?;
                let copy = NewBaseline {
                    tool,
                    origin: Origin::Registered,
                    definition: Some((kept, &text)),
                    shape: None,
                    old: pin.old.clone(),
                    version: &pin.version,
                    approval,
                };
                store.add_baseline(server.id, &copy)?;
            }
            Ok(())
        })
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
