//! Tools that are learned from servers.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_guard::{Discovered, SchemaFault, ToolIdentity, ToolPolicy, VariantTool};
use toolwarden_model::json::Object;

use super::entry::object;
use super::live::LiveGuard;

/// The most names of one kind that a record holds; the counts are always whole.
const MOST_NAMES: usize = 50;

impl LiveGuard {
    /// Takes over what the servers have at present, all of it, in the place of what was learned before.
    ///
    /// Tools the policy names keep its rules and get the schemas and the version it does not give. The
    /// others are added as they are given, the first of each name, unless the policy hides them
    /// (`unlisted: hide`). `quarantine` says which tools may not be called, and why; what the
    /// policy quarantines stays so. All this outlives a change of the policy.
    ///
    /// Tools that are shared with the last call are taken over unseen, and schemas that were there
    /// before are not compiled again. A schema that cannot be used is told, and no call of its tool
    /// passes. A record is made where names or quarantine change.
    pub fn discover(
        &self,
        tools: impl IntoIterator<Item = impl Into<Arc<ToolPolicy>>>,
        quarantine: BTreeMap<String, String>,
    ) -> Vec<SchemaFault> {
        self.discover_variants(tools, quarantine, Vec::new())
    }

    /// As [`Self::discover`], with tools that servers define otherwise for clients of some variant; calls
    /// of such clients ([`Call::variant`](super::Call)) are decided by those definitions.
    pub fn discover_variants(
        &self,
        tools: impl IntoIterator<Item = impl Into<Arc<ToolPolicy>>>,
        quarantine: BTreeMap<String, String>,
        variants: Vec<VariantTool>,
    ) -> Vec<SchemaFault> {
        self.discover_served(tools, quarantine, variants, BTreeMap::new())
    }

    /// As [`Self::discover_variants`], with whose tools they are by the names they are shown under: a tool
    /// keeps its rules under whatever name it is shown.
    pub fn discover_served(
        &self,
        tools: impl IntoIterator<Item = impl Into<Arc<ToolPolicy>>>,
        quarantine: BTreeMap<String, String>,
        variants: Vec<VariantTool>,
        identities: BTreeMap<Arc<str>, ToolIdentity>,
    ) -> Vec<SchemaFault> {
        let mut parts = self.shared.parts();
        let tools = tools.into_iter().map(Into::into);
        let before = &parts.discovered;
        let next = Discovered::new(tools, quarantine, before).with_variants(variants, before);
        let next = next.with_identities(identities);
        let faults = next.faults();
        if next.is(&parts.discovered) {
            return faults;
        }
        let detail = changes(&parts.discovered, &next);
        let before = std::mem::replace(&mut parts.discovered, next);
        self.shared.use_parts(parts);
        // What is no longer known is taken apart without keeping others waiting.
        drop(before);
        if let Some(detail) = detail {
            self.note_policy("discovered", detail);
        }
        faults
    }
}

impl LiveGuard {
    /// Why it cannot be told which rules of the policy are meant for a tool of a server.
    #[must_use]
    pub fn rule_conflict(&self, identity: &ToolIdentity) -> Option<String> {
        self.shared.parts().policy.rule_conflict(identity)
    }

    /// Whether any group is on only under circumstances.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        self.shared.current().guard.has_conditions()
    }

    /// Whether the policy says that callers make the calls of a tool themselves.
    #[must_use]
    pub fn is_outside(&self, tool: &str) -> bool {
        self.shared.parts().policy.is_outside(tool)
    }
}

/// What a record says of other names; none where they are the same.
fn changes(before: &Discovered, after: &Discovered) -> Option<Object> {
    let mut changed = Vec::new();
    if !before.names().eq(after.names()) {
        let (old, new): (BTreeSet<&str>, BTreeSet<&str>) =
            (before.names().collect(), after.names().collect());
        changed.push(("added", told(new.difference(&old))));
        changed.push(("removed", told(old.difference(&new))));
    }
    if before.quarantine() != after.quarantine() {
        let told_why = after.quarantine().iter();
        let added = told_why.filter(|(name, why)| before.quarantine().get(*name) != Some(*why));
        changed.push(("quarantined", told(added.map(|(name, _)| name))));
        let freed = before.quarantine().keys();
        let freed = freed.filter(|name| !after.quarantine().contains_key(*name));
        changed.push(("released", told(freed)));
    }
    changed.retain(|(_, (count, _))| *count > 0);
    if changed.is_empty() {
        return None;
    }
    let mut detail = object(json!({
        "tools": after.names().len(),
        "in_quarantine": after.quarantine().len(),
    }));
    for (key, (count, names)) in changed {
        detail.insert(key.to_owned(), json!({"count": count, "names": names}));
    }
    Some(detail)
}

/// How many names there are, and the first of them.
fn told<N: AsRef<str>>(names: impl Iterator<Item = N>) -> (usize, Vec<Value>) {
    let mut told = Vec::new();
    let mut count = 0;
    for name in names {
        count += 1;
        if count <= MOST_NAMES {
            told.push(name.as_ref().into());
        }
    }
    (count, told)
}
