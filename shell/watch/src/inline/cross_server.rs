//! Compares new tools with the tools of other servers: names that collide, and texts that refer to other
//! servers. Honest servers do this too, so it raises an alert and withholds nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use toolwarden_drift::text::{Detector, ServerTool, TextFinding, scan, scan_across_tools};
use toolwarden_drift::{ChangeClass, ToolwatchChangeType, ToolwatchSeverity};
use toolwarden_model::{Fingerprint, Severity};
use toolwarden_store::{AlertNovelty, NewAlert, ServerKey, Store};

use super::alert::{WatchAlert, WatchCounter};
use super::apply_policy::{MIN_SUSPICIOUS_WEIGHT, is_suspicious};
use super::error::WatchError;
use super::parsed_list::ParsedList;
use super::result_findings;
use super::store_thread::{StoreJob, StoreThread, variant_of};
use crate::tool_parts::FINDING_CHANGE_TYPE;

/// The maximum number of tools of other servers that new ones are compared with.
const MAX_OTHER_TOOLS: usize = 20_000;

/// A tool that was just pinned.
struct NewTool {
    name: String,
    definition: Value,
}

impl StoreThread {
    /// Has another thread scan newly pinned tools for findings, and raises alerts about them.
    pub(super) fn scan_new_tools(&self, key: &ServerKey, read: &ParsedList, registered: &[String]) {
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
            // The same tool of another instance of the server is not an imitation.
            let others = known.texts.iter().filter(|(name, text)| {
                let same = texts.get(name.as_str());
                same.is_none_or(|same| *same != text.get())
            });
            others.map(|(name, _)| (key.name.clone(), name.clone()))
        });
        let others: Vec<(String, String)> = others.take(MAX_OTHER_TOOLS).collect();
        let (asked, jobs) = (key.clone(), self.jobs.clone());
        let search = move |_: &Store| {
            let found = cross_server_findings(&asked.name, &new, &others);
            let Some(jobs) = jobs.upgrade().filter(|_| !found.is_empty()) else {
                return;
            };
            let job: StoreJob = Box::new(move |desk| desk.raise_name_findings(&asked, &found));
            // The watch may have ended.
            let _unheard = jobs.blocking_send(job);
        };
        if self.submit(&key.name, Box::new(search)).is_err() {
            self.counters.count(WatchCounter::Failure);
        }
    }

    fn raise_name_findings(&self, key: &ServerKey, found: &[(String, TextFinding)]) {
        for (tool, finding) in found {
            if self.raise_name_finding(key, tool, finding).is_err() {
                self.counters.count(WatchCounter::Failure);
            }
        }
    }

    fn raise_name_finding(
        &self,
        key: &ServerKey,
        tool: &str,
        finding: &TextFinding,
    ) -> Result<(), WatchError> {
        let Some(server) = self.store.server(key)? else {
            return Ok(());
        };
        let (class, severity) = (ChangeClass::Trust, Severity::Warning);
        let severity_word = ToolwatchSeverity::from(severity).as_str();
        let rule = finding.detector.as_str();
        let excerpt = result_findings::excerpt(finding);
        let parts = [
            &key.name,
            &key.scope,
            tool,
            FINDING_CHANGE_TYPE,
            rule,
            &excerpt,
        ];
        let id = Fingerprint::tagged("toolwarden/alert/v1", parts).to_string();
        let id: String = id.chars().take(12).collect();
        let at = self.options.clock.wall();
        let drift = json!({
            "tool": tool,
            "outcome": FINDING_CHANGE_TYPE,
            "class": class.as_str(),
            "change_type": FINDING_CHANGE_TYPE,
            "severity": severity_word,
            "reasons": [{"detector": rule, "weight": finding.weight.as_str(), "message": excerpt}],
        });
        let old_form = json!({
            "tool_name": tool,
            "change_type": FINDING_CHANGE_TYPE,
            "detected_at": format!("{at:.6}"),
            "severity": severity_word,
        });
        let alert = NewAlert {
            id: &id,
            tool,
            change_type: FINDING_CHANGE_TYPE,
            severity: severity_word,
            class: class.as_str(),
            at,
            document: &drift.to_string(),
            toolwatch_document: &old_form.to_string(),
        };
        let raised = self
            .store
            .write_transaction(|store| store.raise_alert(server.id, &alert))?;
        if raised == AlertNovelty::New {
            self.publish_alert(WatchAlert {
                id,
                server: key.name.clone(),
                variant: variant_of(key),
                tool: tool.to_owned(),
                severity,
                class,
                change_type: ToolwatchChangeType::Schema,
                summary: format!("{rule}: {excerpt}"),
                at,
                drift,
            });
        }
        Ok(())
    }
}

/// The findings in the names and texts of new tools of a server, compared with the tools of others.
fn cross_server_findings(
    server: &str,
    new: &[NewTool],
    others: &[(String, String)],
) -> Vec<(String, TextFinding)> {
    let nothing = Value::Null;
    let own = new.iter().map(|tool| ServerTool {
        server,
        name: &tool.name,
        definition: &tool.definition,
    });
    let others = others.iter().map(|(server, name)| ServerTool {
        server,
        name,
        definition: &nothing,
    });
    let named: Vec<ServerTool<'_>> = own.chain(others).collect();
    let together = scan_across_tools(&named, MIN_SUSPICIOUS_WEIGHT).into_iter();
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
