//! What new tools look like beside the tools of other servers: names that collide, and texts that refer to
//! other servers. Honest servers do this too, so that it raises an alert and withholds nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use toolwarden_drift::text::{Detector, Finding, Named, scan, scan_together};
use toolwarden_drift::{ChangeType, Class, Severity};
use toolwarden_model::Fingerprint;
use toolwarden_store::{NewAlert, Raised, ServerKey, Store};

use super::desk::{Desk, Job, variant_of};
use super::error::WatchError;
use super::findings;
use super::list::ReadList;
use super::notice::{Figure, RaisedNotice};
use super::treat::{SUSPICIOUS, is_suspicious};
use crate::parts::FINDING;

/// The most tools of other servers that new ones are compared with.
const MOST_NEIGHBOURS: usize = 20_000;

/// A tool that was pinned just now.
struct NewTool {
    name: String,
    definition: Value,
}

impl Desk {
    /// Has another thread look for findings about tools that were pinned just now, and raises alerts about
    /// what it finds.
    pub(super) fn look_around(&self, key: &ServerKey, read: &ReadList, registered: &[String]) {
        let registered: BTreeSet<&String> = registered.iter().collect();
        let new = read.listing.observed.iter();
        let new = new.filter(|seen| registered.contains(&seen.name) && read.has_tool(&seen.name));
        let texts: BTreeMap<&str, &str> = new
            .clone()
            .map(|seen| (seen.name.as_str(), seen.text()))
            .collect();
        if texts.is_empty() {
            return;
        }
        let new: Vec<NewTool> = new
            .map(|seen| NewTool {
                name: seen.name.clone(),
                definition: seen.definition().clone(),
            })
            .collect();
        let others = self.servers.iter().filter(|(it, _)| it.name != key.name);
        let others = others.flat_map(|(key, known)| {
            // The same tool of another instance of a server passes for nothing else.
            let others = known.texts.iter().filter(|(name, text)| {
                let same = texts.get(name.as_str());
                same.is_none_or(|same| *same != text.get())
            });
            others.map(|(name, _)| (key.name.clone(), name.clone()))
        });
        let others: Vec<(String, String)> = others.take(MOST_NEIGHBOURS).collect();
        let (asked, jobs) = (key.clone(), self.jobs.clone());
        let search = move |_: &Store| {
            let found = name_findings(&asked.name, &new, &others);
            let Some(jobs) = jobs.upgrade().filter(|_| !found.is_empty()) else {
                return;
            };
            let job: Job = Box::new(move |desk| desk.raise_name_findings(&asked, &found));
            // The watch may have ended.
            let _unheard = jobs.blocking_send(job);
        };
        if self.submit(&key.name, Box::new(search)).is_err() {
            self.figures.count(Figure::Failure);
        }
    }

    fn raise_name_findings(&self, key: &ServerKey, found: &[(String, Finding)]) {
        for (tool, finding) in found {
            if self.raise_name_finding(key, tool, finding).is_err() {
                self.figures.count(Figure::Failure);
            }
        }
    }

    fn raise_name_finding(
        &self,
        key: &ServerKey,
        tool: &str,
        finding: &Finding,
    ) -> Result<(), WatchError> {
        let Some(server) = self.store.server(key)? else {
            return Ok(());
        };
        let (class, severity) = (Class::Trust, Severity::Medium);
        let rule = finding.detector.as_str();
        let excerpt = findings::excerpt(finding);
        let parts = [&key.name, &key.scope, tool, FINDING, rule, &excerpt];
        let id = Fingerprint::tagged("toolwarden/alert/v1", parts).to_string();
        let id: String = id.chars().take(12).collect();
        let at = self.options.clock.wall();
        let drift = json!({
            "tool": tool,
            "outcome": FINDING,
            "class": class.as_str(),
            "change_type": FINDING,
            "severity": severity.as_str(),
            "reasons": [{"detector": rule, "weight": finding.weight.as_str(), "message": excerpt}],
        });
        let old_form = json!({
            "tool_name": tool,
            "change_type": FINDING,
            "detected_at": format!("{at:.6}"),
            "severity": severity.as_str(),
        });
        let alert = NewAlert {
            id: &id,
            tool,
            change_type: FINDING,
            severity: severity.as_str(),
            class: class.as_str(),
            at,
            document: &drift.to_string(),
            old_form: &old_form.to_string(),
        };
        let raised = self.store.write(|store| store.raise(server.id, &alert))?;
        if raised == Raised::First {
            self.publish(RaisedNotice {
                id,
                server: key.name.clone(),
                variant: variant_of(key),
                tool: tool.to_owned(),
                severity,
                class,
                change_type: ChangeType::Schema,
                summary: format!("{rule}: {excerpt}"),
                at,
                drift,
            });
        }
        Ok(())
    }
}

/// What the names and texts of new tools of a server are found to be beside the tools of others.
fn name_findings(
    server: &str,
    new: &[NewTool],
    others: &[(String, String)],
) -> Vec<(String, Finding)> {
    let nothing = Value::Null;
    let own = new.iter().map(|tool| Named {
        server,
        name: &tool.name,
        definition: &tool.definition,
    });
    let others = others.iter().map(|(server, name)| Named {
        server,
        name,
        definition: &nothing,
    });
    let named: Vec<Named<'_>> = own.chain(others).collect();
    let together = scan_together(&named, SUSPICIOUS).into_iter();
    let together = together.filter_map(|(index, finding)| Some((new.get(index)?, finding)));
    let alone = new.iter().flat_map(|tool| {
        let found = scan(&tool.definition).into_iter();
        let found = found.filter(|it| it.detector == Detector::ConfusableName && is_suspicious(it));
        found.map(move |finding| (tool, finding))
    });
    let found = together.chain(alone);
    found
        .map(|(tool, finding)| (tool.name.clone(), finding))
        .collect()
}
