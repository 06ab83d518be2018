//! Tools that the guard learns from servers at run time.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolwarden_model::Fingerprint;

use super::compile::{CompiledSchemas, SchemaCache, UnusableSchema};
use super::groups::GroupTable;
use super::tool_identity::ToolIdentity;
use super::{Guard, GuardedTool, NameMap, Quarantine, ToolTable};
use crate::input::SchemaCheck;
use crate::policy::{OutputMode, ToolPolicy, UnlistedTools};

/// Tools as servers describe them, with compiled schemas, and which of all tools are quarantined.
#[derive(Clone, Debug, Default)]
pub struct DiscoveredTools {
    /// In the order given, each name once.
    tools: Vec<DiscoveredTool>,
    by_name: Arc<ToolIndex>,
    quarantine: BTreeMap<String, Arc<str>>,
    variants: Vec<(VariantTool, CompiledSchemas, [Fingerprint; 2])>,
    /// The server and original name of each tool, by the name it is shown under.
    identities: BTreeMap<Arc<str>, ToolIdentity>,
}

/// A tool as a server defines it for clients with certain capabilities only.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantTool {
    /// The variant of clients.
    pub variant: Arc<str>,
    /// The definition; the tool keeps the rules it has for all clients.
    pub policy: Arc<ToolPolicy>,
    /// Why clients of this variant may not call it.
    pub quarantine: Option<Arc<str>>,
}

/// The index of each tool in a list, by name.
type ToolIndex = NameMap<Arc<str>, usize>;

#[derive(Clone, Debug)]
struct DiscoveredTool {
    policy: Arc<ToolPolicy>,
    compiled: CompiledSchemas,
    /// The fingerprints of the two schemas.
    fingerprints: [Fingerprint; 2],
}

impl DiscoveredTools {
    /// Takes the first tool of each name, and the quarantined tools with their reasons. Schemas that
    /// `before` has compiled are not compiled again; tools that it shares are not even examined.
    #[must_use]
    pub fn new(
        tools: impl IntoIterator<Item = Arc<ToolPolicy>>,
        quarantine: BTreeMap<String, String>,
        before: &Self,
    ) -> Self {
        let tools: Vec<Arc<ToolPolicy>> = tools.into_iter().collect();
        let same_names = tools.len() == before.tools.len()
            && tools
                .iter()
                .zip(&before.tools)
                .all(|(now, then)| Arc::ptr_eq(now, &then.policy) || now.name == then.policy.name);
        let (tools, by_name) = if same_names {
            (tools, Arc::clone(&before.by_name))
        } else {
            index_tools(tools)
        };
        let mut checks = None;
        let found = tools.into_iter().enumerate().map(|(at, policy)| {
            let place = if same_names {
                Some(at)
            } else {
                before.by_name.get(policy.name.as_str()).copied()
            };
            let known = place.and_then(|place| before.tools.get(place));
            match known.filter(|it| Arc::ptr_eq(&it.policy, &policy) || it.policy == policy) {
                Some(same) => DiscoveredTool {
                    policy,
                    ..same.clone()
                },
                None => DiscoveredTool::new(policy, checks.get_or_insert_with(|| before.checks())),
            }
        });
        Self {
            tools: found.collect(),
            by_name,
            quarantine: quarantine
                .into_iter()
                .map(|(name, why)| (name, why.into()))
                .collect(),
            variants: Vec::new(),
            identities: BTreeMap::new(),
        }
    }

    /// Adds the identity of each tool, by the name it is shown under: a tool keeps its rules under any
    /// name.
    #[must_use]
    pub fn with_identities(mut self, identities: BTreeMap<Arc<str>, ToolIdentity>) -> Self {
        self.identities = identities;
        self
    }

    /// Adds tools that servers define differently for some clients. Schemas that `before` has compiled are
    /// not compiled again.
    #[must_use]
    pub fn with_variants(mut self, variants: Vec<VariantTool>, before: &Self) -> Self {
        if variants.is_empty() {
            return self;
        }
        let mut checks = before.checks();
        let compiled = variants.into_iter().map(|tool| {
            let (one, input) = checks.check(&tool.policy.input_schema);
            let (two, output) = checks.check(&tool.policy.output_schema);
            (tool, CompiledSchemas { input, output }, [one, two])
        });
        self.variants = compiled.collect();
        self
    }

    /// The names of the tools, in the order given.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.tools.iter().map(|it| it.policy.name.as_str())
    }

    /// The quarantined tools, with the reasons.
    #[must_use]
    pub const fn quarantine(&self) -> &BTreeMap<String, Arc<str>> {
        &self.quarantine
    }

    /// Whether a tool with this name exists.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The schemas that cannot be used. The guard denies every call of these tools.
    #[must_use]
    pub fn faults(&self) -> Vec<UnusableSchema> {
        let found = self.tools.iter().map(|it| (&it.policy, &it.compiled));
        let variants = self
            .variants
            .iter()
            .map(|(it, compiled, _)| (&it.policy, compiled));
        found
            .chain(variants)
            .flat_map(|(policy, compiled)| compiled.faults(policy))
            .collect()
    }

    /// Whether both have the same content.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let same = |(one, two): (&DiscoveredTool, &DiscoveredTool)| {
            Arc::ptr_eq(&one.policy, &two.policy) || one.policy == two.policy
        };
        let variants = |of: &Self| {
            of.variants
                .iter()
                .map(|it| it.0.clone())
                .collect::<Vec<_>>()
        };
        self.tools.len() == other.tools.len()
            && self.quarantine == other.quarantine
            && self.identities == other.identities
            && variants(self) == variants(other)
            && self.tools.iter().zip(&other.tools).all(same)
    }

    /// A copy without one tool.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let tools = self.tools.iter().map(|it| Arc::clone(&it.policy));
        let kept = tools.filter(|it| it.name != name);
        let mut next = Self::new(kept, BTreeMap::new(), self);
        next.quarantine.clone_from(&self.quarantine);
        next.variants.clone_from(&self.variants);
        next.identities.clone_from(&self.identities);
        next
    }

    fn checks(&self) -> SchemaCache {
        let mut checks = SchemaCache::with_capacity(2 * self.tools.len());
        for found in &self.tools {
            let [input, output] = found.fingerprints;
            checks.remember(input, &found.compiled.input);
            checks.remember(output, &found.compiled.output);
        }
        for (_, compiled, [input, output]) in &self.variants {
            checks.remember(*input, &compiled.input);
            checks.remember(*output, &compiled.output);
        }
        checks
    }
}

/// The first tool of each name, and their indices.
fn index_tools(tools: Vec<Arc<ToolPolicy>>) -> (Vec<Arc<ToolPolicy>>, Arc<ToolIndex>) {
    let mut by_name = ToolIndex::with_capacity_and_hasher(tools.len(), Default::default());
    let mut kept = Vec::with_capacity(tools.len());
    for tool in tools {
        if !by_name.contains_key(tool.name.as_str()) {
            by_name.insert(Arc::from(tool.name.as_str()), kept.len());
            kept.push(tool);
        }
    }
    (kept, Arc::new(by_name))
}

impl DiscoveredTool {
    fn new(policy: Arc<ToolPolicy>, checks: &mut SchemaCache) -> Self {
        let (one, input) = checks.check(&policy.input_schema);
        let (two, output) = checks.check(&policy.output_schema);
        Self {
            policy,
            compiled: CompiledSchemas { input, output },
            fingerprints: [one, two],
        }
    }
}

impl Guard {
    /// Combines this guard with the tools learned from servers. Tools that the policy names keep its rules.
    /// They get the schemas and the version that the policy does not give; with an output schema they also
    /// get the output mode, unless the policy sets one. The guard adds the other tools unchanged, unless
    /// the policy hides them. A tool is quarantined if either side quarantines it.
    #[must_use]
    pub fn with_discovered(&self, discovered: &DiscoveredTools) -> Self {
        if discovered.tools.is_empty()
            && discovered.quarantine.is_empty()
            && discovered.variants.is_empty()
        {
            return self.clone();
        }
        let mut groups = GroupTable::clone(&self.groups);
        let mut tools = ToolTable::clone(&self.tools);
        tools.list.reserve(discovered.tools.len());
        tools.by_name.reserve(discovered.tools.len());
        for (shown, identity) in &discovered.identities {
            tools.add_shown_name(shown, identity, &self.rules_of(identity));
        }
        for found in &discovered.tools {
            if let Some(join_names) = tools.present_mut(&found.policy.name) {
                join_names.complete(found);
            } else if self.unlisted == UnlistedTools::Serve {
                let patterns = &self.patterns;
                tools.add_compiled(
                    &found.policy,
                    found.compiled.clone(),
                    &mut groups,
                    |added| {
                        added.join_names = false;
                        if let Some(identity) = discovered.identities.get(&added.name) {
                            added.counted_as = Arc::clone(&identity.qualified);
                            added.destination = Some(identity.destination());
                        }
                        for required in &mut added.required {
                            required.covered_by = patterns.covering(&required.permission);
                        }
                    },
                );
            }
        }
        for (name, why) in &discovered.quarantine {
            if let Some(tool) = tools.present_mut(name) {
                let why = Some(Arc::clone(why)).filter(|it| !it.is_empty());
                tool.quarantine = Some(Quarantine { why });
            }
        }
        for (shown, identity) in &discovered.identities {
            tools.withhold(shown, self.rules_of(identity).refused);
        }
        for (variant, compiled, _) in &discovered.variants {
            let shown = variant.policy.name.as_str();
            let identity = discovered.identities.get(shown);
            let join_names = match identity {
                Some(identity) => self
                    .rules_of(identity)
                    .rules
                    .and_then(|id| self.tool_by(id)),
                None => self.tool(shown),
            };
            tools.add_variant(variant, compiled, join_names);
            let refused = identity.and_then(|it| self.rules_of(it).refused);
            tools.withhold_variants(shown, refused);
        }
        let mut guard = self.clone();
        guard.tools = Arc::new(tools);
        guard.groups = Arc::new(groups);
        guard
    }
}

impl ToolTable {
    /// The tool as clients of a variant see it.
    pub(super) fn for_variant<'t>(
        &'t self,
        tool: &'t Arc<GuardedTool>,
        variant: Option<&str>,
    ) -> &'t Arc<GuardedTool> {
        let Some(variant) = variant.filter(|_| !self.variants.is_empty()) else {
            return tool;
        };
        let of_tool = self.variants.get(&tool.name);
        of_tool.and_then(|it| it.get(variant)).unwrap_or(tool)
    }

    /// Adds the definition that a server offers to a variant of clients. The tool keeps its rules; `join_names`
    /// is the policy's own entry for the tool, which no definition replaces.
    fn add_variant(
        &mut self,
        variant: &VariantTool,
        compiled: &CompiledSchemas,
        join_names: Option<&Arc<GuardedTool>>,
    ) {
        let Some(base) = self.by_name.get(variant.policy.name.as_str()) else {
            return;
        };
        let Some(base) = self.list.get(*base as usize) else {
            return;
        };
        let mut tool = GuardedTool::clone(base);
        let said = |check: fn(&GuardedTool) -> &Arc<SchemaCheck>| {
            join_names.is_some_and(|it| !matches!(**check(it), SchemaCheck::Nothing))
        };
        if !said(|it| &it.input) {
            tool.input = Arc::clone(&compiled.input);
        }
        if !said(|it| &it.output) {
            tool.output = Arc::clone(&compiled.output);
        }
        let by_policy = join_names.and_then(|it| it.quarantine.clone());
        let other_rules = tool
            .also
            .iter()
            .filter_map(|id| self.list.get(*id as usize));
        let by_policy =
            by_policy.or_else(|| other_rules.filter_map(|it| it.quarantine.clone()).next());
        let by_definition = variant.quarantine.clone().map(|why| Quarantine {
            why: Some(why).filter(|it| !it.is_empty()),
        });
        tool.quarantine = by_policy.or(by_definition);
        let of_tool = self.variants.entry(Arc::clone(&tool.name)).or_default();
        of_tool.insert(Arc::clone(&variant.variant), Arc::new(tool));
    }

    /// A mutable reference to an existing tool.
    pub(super) fn present_mut(&mut self, name: &str) -> Option<&mut GuardedTool> {
        let id = *self.by_name.get(name)?;
        self.list.get_mut(id as usize).map(Arc::make_mut)
    }
}

impl GuardedTool {
    fn complete(&mut self, found: &DiscoveredTool) {
        if matches!(*self.input, SchemaCheck::Nothing) {
            self.input = Arc::clone(&found.compiled.input);
        }
        if matches!(*self.output, SchemaCheck::Nothing) {
            self.output = Arc::clone(&found.compiled.output);
            if self.output_mode == OutputMode::default() {
                self.output_mode = found.policy.output_mode;
            }
        }
        if self.version.is_none() {
            self.version.clone_from(&found.policy.version);
        }
    }
}
