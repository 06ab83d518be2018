//! Tools that are learned from servers while a guard is in use.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolwarden_model::Fingerprint;

use super::compile::{Checks, Compiled, SchemaFault};
use super::groups::Groups;
use super::{Guard, Names, Quarantine, Tool, Tools};
use crate::input::Check;
use crate::policy::{OutputMode, ToolPolicy, Unlisted};

/// Tools as servers describe them, with their schemas compiled, and which of all tools are quarantined.
#[derive(Clone, Debug, Default)]
pub struct Discovered {
    /// In the order given, each name once.
    tools: Vec<Found>,
    by_name: Arc<Places>,
    quarantine: BTreeMap<String, Arc<str>>,
}

/// Where in a list the tool of a name is.
type Places = Names<Arc<str>, usize>;

#[derive(Clone, Debug)]
struct Found {
    policy: Arc<ToolPolicy>,
    compiled: Compiled,
    /// What the two schemas are known by.
    fingerprints: [Fingerprint; 2],
}

impl Discovered {
    /// Takes tools, the first of each name, and the tools that are quarantined with the
    /// reason. What `before` has compiled is not compiled again; tools that it shares are not even
    /// looked at.
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
            numbered(tools)
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
                Some(same) => Found {
                    policy,
                    ..same.clone()
                },
                None => Found::new(policy, checks.get_or_insert_with(|| before.checks())),
            }
        });
        Self {
            tools: found.collect(),
            by_name,
            quarantine: quarantine
                .into_iter()
                .map(|(name, why)| (name, why.into()))
                .collect(),
        }
    }

    /// The names of the tools, in the order given.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.tools.iter().map(|it| it.policy.name.as_str())
    }

    /// Which tools are quarantined, and why.
    #[must_use]
    pub const fn quarantine(&self) -> &BTreeMap<String, Arc<str>> {
        &self.quarantine
    }

    /// Whether there is a tool of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The schemas that cannot be used. No call of these tools passes.
    #[must_use]
    pub fn faults(&self) -> Vec<SchemaFault> {
        let faults = self.tools.iter();
        faults
            .flat_map(|found| found.compiled.faults(&found.policy))
            .collect()
    }

    /// Whether two say the same.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        let same = |(one, two): (&Found, &Found)| {
            Arc::ptr_eq(&one.policy, &two.policy) || one.policy == two.policy
        };
        self.tools.len() == other.tools.len()
            && self.quarantine == other.quarantine
            && self.tools.iter().zip(&other.tools).all(same)
    }

    /// The same without one tool.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let tools = self.tools.iter().map(|it| Arc::clone(&it.policy));
        let kept = tools.filter(|it| it.name != name);
        let mut next = Self::new(kept, BTreeMap::new(), self);
        next.quarantine.clone_from(&self.quarantine);
        next
    }

    fn checks(&self) -> Checks {
        let mut checks = Checks::holding(2 * self.tools.len());
        for found in &self.tools {
            let [input, output] = found.fingerprints;
            checks.remember(input, &found.compiled.input);
            checks.remember(output, &found.compiled.output);
        }
        checks
    }
}

/// The first tool of each name, and their places.
fn numbered(tools: Vec<Arc<ToolPolicy>>) -> (Vec<Arc<ToolPolicy>>, Arc<Places>) {
    let mut by_name = Places::with_capacity_and_hasher(tools.len(), Default::default());
    let mut kept = Vec::with_capacity(tools.len());
    for tool in tools {
        if !by_name.contains_key(tool.name.as_str()) {
            by_name.insert(Arc::from(tool.name.as_str()), kept.len());
            kept.push(tool);
        }
    }
    (kept, Arc::new(by_name))
}

impl Found {
    fn new(policy: Arc<ToolPolicy>, checks: &mut Checks) -> Self {
        let (one, input) = checks.check(&policy.input_schema);
        let (two, output) = checks.check(&policy.output_schema);
        Self {
            policy,
            compiled: Compiled { input, output },
            fingerprints: [one, two],
        }
    }
}

impl Guard {
    /// This guard together with what was learned from servers. Tools the policy names keep its rules
    /// and get the schemas and the version it does not give, with a schema of results also what becomes of
    /// those that fail it, unless the policy says so; the others are added as they are, unless
    /// the policy hides them. What either side quarantines is quarantined.
    #[must_use]
    pub fn with_discovered(&self, discovered: &Discovered) -> Self {
        if discovered.tools.is_empty() && discovered.quarantine.is_empty() {
            return self.clone();
        }
        let mut groups = Groups::clone(&self.groups);
        let mut tools = Tools::clone(&self.tools);
        tools.list.reserve(discovered.tools.len());
        tools.by_name.reserve(discovered.tools.len());
        for found in &discovered.tools {
            if let Some(listed) = tools.present_mut(&found.policy.name) {
                listed.complete(found);
            } else if self.unlisted == Unlisted::Serve {
                let patterns = &self.patterns;
                tools.add_compiled(
                    &found.policy,
                    found.compiled.clone(),
                    &mut groups,
                    |added| {
                        added.listed = false;
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
        let mut guard = self.clone();
        guard.tools = Arc::new(tools);
        guard.groups = Arc::new(groups);
        guard
    }
}

impl Tools {
    /// A tool that is there, to be changed.
    fn present_mut(&mut self, name: &str) -> Option<&mut Tool> {
        let id = *self.by_name.get(name)?;
        self.list.get_mut(id as usize).map(Arc::make_mut)
    }
}

impl Tool {
    fn complete(&mut self, found: &Found) {
        if matches!(*self.input, Check::Nothing) {
            self.input = Arc::clone(&found.compiled.input);
        }
        if matches!(*self.output, Check::Nothing) {
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
