//! Tools that are learned from servers.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_guard::{DiscoveredTools, ToolIdentity, ToolPolicy, UnusableSchema, VariantTool};
use toolwarden_model::json::Object;

use super::live_guard::LiveGuard;
use super::log_entry::object;

/// The maximum number of names of one kind in a record; the counts are always complete.
const MAX_NAMES: usize = 50;

impl LiveGuard {
    /// Replaces everything learned from servers before with the tools they have now.
    ///
    /// Tools that the policy names keep its rules and get the schemas and the version it does not give. The
    /// guard adds the others as given, the first of each name, unless the policy hides them
    /// (`unlisted: hide`). `quarantine` names the tools that may not be called, with reasons; tools that the policy
    /// quarantines stay quarantined. All this survives a change of the policy.
    ///
    /// Tools that are shared with the previous call are reused unchecked, and known schemas are not
    /// compiled again. A schema that cannot be used is reported, and every call of its tool is denied. A
    /// change of names or quarantine is recorded.
    pub fn discover(
        &self,
        tools: impl IntoIterator<Item = impl Into<Arc<ToolPolicy>>>,
        quarantine: BTreeMap<String, String>,
    ) -> Vec<UnusableSchema> {
        self.discover_variants(tools, quarantine, Vec::new())
    }

    /// Like [`Self::discover`], with tools that servers define differently for clients of some variant;
    /// these definitions decide the calls of such clients ([`Call::variant`](super::Call)).
    pub fn discover_variants(
        &self,
        tools: impl IntoIterator<Item = impl Into<Arc<ToolPolicy>>>,
        quarantine: BTreeMap<String, String>,
        variants: Vec<VariantTool>,
    ) -> Vec<UnusableSchema> {
        self.discover_served(tools, quarantine, variants, BTreeMap::new())
    }

    /// Like [`Self::discover_variants`], with the identity of each tool by the name it is shown under: a
    /// tool keeps its rules under any exposed name.
    pub fn discover_served(
        &self,
        tools: impl IntoIterator<Item = impl Into<Arc<ToolPolicy>>>,
        quarantine: BTreeMap<String, String>,
        variants: Vec<VariantTool>,
        identities: BTreeMap<Arc<str>, ToolIdentity>,
    ) -> Vec<UnusableSchema> {
        let mut parts = self.shared.parts();
        let tools = tools.into_iter().map(Into::into);
        let before = &parts.discovered;
        let next = DiscoveredTools::new(tools, quarantine, before).with_variants(variants, before);
        let next = next.with_identities(identities);
        let faults = next.faults();
        if next.is_same(&parts.discovered) {
            return faults;
        }
        let detail = changes(&parts.discovered, &next);
        let before = std::mem::replace(&mut parts.discovered, next);
        self.shared.activate(parts);
        // The old value is dropped outside the lock, so that other threads do not wait.
        drop(before);
        if let Some(detail) = detail {
            self.record_policy_event("discovered", detail);
        }
        faults
    }
}

impl LiveGuard {
    /// Why the guard cannot determine which rules of the policy apply to a tool of a server.
    #[must_use]
    pub fn rule_conflict(&self, identity: &ToolIdentity) -> Option<String> {
        self.shared.parts().policy.rule_conflict(identity)
    }

    /// Whether any group has a condition.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        self.shared.current().guard.has_conditions()
    }

    /// Whether the policy says that callers make the calls of a tool themselves.
    #[must_use]
    pub fn is_called_by_client(&self, tool: &str) -> bool {
        self.shared.parts().policy.is_external(tool)
    }
}

/// The changed names, for a record; `None` if they are the same.
fn changes(before: &DiscoveredTools, after: &DiscoveredTools) -> Option<Object> {
    let mut changed = Vec::new();
    if !before.names().eq(after.names()) {
        let (old, new): (BTreeSet<&str>, BTreeSet<&str>) =
            (before.names().collect(), after.names().collect());
        changed.push(("added", count_and_sample(new.difference(&old))));
        changed.push(("removed", count_and_sample(old.difference(&new))));
    }
    if before.quarantine() != after.quarantine() {
        let told_why = after.quarantine().iter();
        let added = told_why.filter(|(name, why)| before.quarantine().get(*name) != Some(*why));
        changed.push(("quarantined", count_and_sample(added.map(|(name, _)| name))));
        let freed = before.quarantine().keys();
        let freed = freed.filter(|name| !after.quarantine().contains_key(*name));
        changed.push(("released", count_and_sample(freed)));
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

/// The number of names, and the first of them.
fn count_and_sample<N: AsRef<str>>(names: impl Iterator<Item = N>) -> (usize, Vec<Value>) {
    let mut told = Vec::new();
    let mut count = 0;
    for name in names {
        count += 1;
        if count <= MAX_NAMES {
            told.push(name.as_ref().into());
        }
    }
    (count, told)
}
