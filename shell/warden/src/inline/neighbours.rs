//! What new tools look like beside the tools of other servers: names that collide, and texts that refer to
//! other servers. Honest servers do this too, so that it raises an alert and withholds nothing.

use serde_json::{Value, json};
use toolwarden_drift::text::{Detector, Finding, Named, scan, scan_together};
use toolwarden_drift::{ChangeType, Class, Severity};
use toolwarden_model::Fingerprint;
use toolwarden_store::{NewAlert, Raised, ServerKey};

use super::desk::{Desk, variant_of};
use super::error::WatchError;
use super::findings;
use super::list::ReadList;
use super::notice::RaisedNotice;
use super::treat::is_suspicious;
use crate::parts::FINDING;

/// The most tools of other servers that new ones are compared with.
const MOST_NEIGHBOURS: usize = 20_000;

impl Desk {
    /// Raises alerts about tools that were pinned just now.
    pub(super) fn look_around(
        &self,
        key: &ServerKey,
        read: &ReadList,
        registered: &[String],
    ) -> Result<(), WatchError> {
        if registered.is_empty() {
            return Ok(());
        }
        let new = read.listing.observed.iter();
        let new = new.filter(|seen| registered.contains(&seen.name) && read.has_tool(&seen.name));
        let new: Vec<_> = new.collect();
        let nothing = Value::Null;
        let mut named: Vec<Named<'_>> = new
            .iter()
            .map(|seen| Named {
                server: &key.name,
                name: &seen.name,
                definition: seen.definition(),
            })
            .collect();
        let others = self.servers.iter().filter(|(it, _)| it.name != key.name);
        let others = others.flat_map(|(key, known)| {
            // The same tool of another instance of a server passes for nothing else.
            let others = known.texts.iter().filter(|(name, text)| {
                let same = new.iter().find(|seen| seen.name == **name);
                same.is_none_or(|seen| seen.text() != text.get())
            });
            others.map(|(name, _)| Named {
                server: &key.name,
                name,
                definition: &nothing,
            })
        });
        named.extend(others.take(MOST_NEIGHBOURS));
        for (index, finding) in scan_together(&named) {
            if let Some(seen) = new.get(index).filter(|_| is_suspicious(&finding)) {
                self.raise_name_finding(key, &seen.name, &finding)?;
            }
        }
        for seen in new {
            let own = scan(seen.definition()).into_iter();
            let own = own.filter(|it| it.detector == Detector::ConfusableName && is_suspicious(it));
            for finding in own {
                self.raise_name_finding(key, &seen.name, &finding)?;
            }
        }
        Ok(())
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
