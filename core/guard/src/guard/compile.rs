use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;
use toolwarden_model::Fingerprint;
use toolwarden_model::json::Pointer;

use super::features::Features;
use super::groups::Groups;
use super::profile::{Patterns, Profile};
use super::{Guard, Names, PrincipalId, Principals, Quarantine, Required, Tool, ToolId, Tools};
use crate::input::Check;
use crate::policy::{DEFAULT_GROUP, EVERY, Grants, NamePattern, Policy, States, ToolPolicy};

/// A schema of a policy that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFault {
    /// The tool.
    pub tool: String,
    /// Where the schema stands in the policy.
    pub pointer: Pointer,
    /// What is wrong with it, in the validator's words.
    pub message: String,
}

impl Guard {
    /// Makes a policy ready to decide. A schema that cannot be used is told, and until it is mended
    /// no call of its tool passes.
    #[must_use]
    pub fn new(policy: Policy) -> (Self, Vec<SchemaFault>) {
        let mut groups = Groups::default();
        groups.intern(DEFAULT_GROUP);
        let mut patterns = Patterns::default();
        let mut tools = Tools {
            list: Vec::with_capacity(policy.tools.len()),
            by_name: Names::default(),
            states: BTreeSet::new(),
            leading: BTreeMap::new(),
            everywhere: false,
            variants: Names::default(),
        };
        let mut checks = Checks::default();
        for tool in &policy.tools {
            let quarantined = policy.quarantine.contains(&tool.name);
            let quarantine = quarantined.then(Quarantine::default);
            tools.add(tool, quarantine, &mut groups, &mut checks);
        }
        let features = Features::new(&policy, &mut groups);
        for (name, said) in &policy.groups {
            let id = groups.intern(name);
            groups.conditional |= said.when.is_some();
            if let Some(group) = groups.get_mut(id) {
                group.description.clone_from(&said.description);
                group.condition.clone_from(&said.when);
            }
        }
        let mut profiles = Profiles::default();
        let mut principals = Principals {
            list: Vec::with_capacity(policy.principals.len()),
            by_name: Names::default(),
            anyone: Arc::default(),
            roles: Names::default(),
        };
        let mut granting = Granting {
            policy: &policy,
            tools: &tools,
            groups: &mut groups,
            patterns: &mut patterns,
        };
        principals.anyone = profiles.shared(granting.profile(&policy.anyone));
        for (name, principal) in &policy.principals {
            let profile = profiles.shared(granting.profile(&principal.grants));
            let id = PrincipalId::try_from(principals.list.len()).unwrap_or(PrincipalId::MAX);
            let name: Arc<str> = name.as_str().into();
            principals.by_name.insert(Arc::clone(&name), id);
            principals.list.push((name, profile));
        }
        for (name, grants) in &policy.roles {
            let profile = profiles.shared(granting.profile(grants));
            principals.roles.insert(name.as_str().into(), profile);
        }
        let tools = tools.covered_by(&patterns);
        let states = policy.states.into_iter().filter(|(_, it)| it.single_use);
        let single_use = states.map(|(name, _)| name).collect();
        let guard = Self {
            tools: Arc::new(tools),
            features: Arc::new(features.covered_by(&patterns)),
            groups: Arc::new(groups),
            patterns: Arc::new(patterns),
            principals: Arc::new(principals),
            amended: Arc::default(),
            requests: policy.requests,
            sessions: policy.sessions,
            single_use: Arc::new(single_use),
            count_invalid: policy.count_invalid,
            unlisted: policy.unlisted,
            audit: policy.audit,
            zone: policy.zone,
        };
        (guard, checks.into_faults())
    }
}

/// Compiled schemas by what they say, so that equal ones are compiled and held once.
#[derive(Default)]
pub(super) struct Checks {
    known: Names<Fingerprint, Arc<Check>>,
    faults: Vec<SchemaFault>,
}

/// What a tool takes and returns, compiled.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pub(super) input: Arc<Check>,
    pub(super) output: Arc<Check>,
}

impl Checks {
    pub(super) fn into_faults(self) -> Vec<SchemaFault> {
        self.faults
    }

    fn compile(&mut self, tool: &ToolPolicy) -> Compiled {
        let compiled = Compiled {
            input: self.check(&tool.input_schema).1,
            output: self.check(&tool.output_schema).1,
        };
        self.faults.extend(compiled.faults(tool));
        compiled
    }

    /// A schema with what it is known by.
    pub(super) fn check(&mut self, schema: &Value) -> (Fingerprint, Arc<Check>) {
        let fingerprint = Fingerprint::of(schema);
        let check = self
            .known
            .entry(fingerprint)
            .or_insert_with(|| Arc::new(Check::new(schema)));
        (fingerprint, Arc::clone(check))
    }

    /// With room for so many.
    pub(super) fn holding(count: usize) -> Self {
        Self {
            known: Names::with_capacity_and_hasher(count, Default::default()),
            faults: Vec::new(),
        }
    }

    /// Takes over what was compiled before.
    pub(super) fn remember(&mut self, fingerprint: Fingerprint, check: &Arc<Check>) {
        self.known.insert(fingerprint, Arc::clone(check));
    }
}

impl Compiled {
    /// What is wrong with the schemas of a tool.
    pub(super) fn faults(&self, tool: &ToolPolicy) -> impl Iterator<Item = SchemaFault> {
        let both = [
            ("input_schema", &self.input),
            ("output_schema", &self.output),
        ];
        both.into_iter().filter_map(|(key, check)| match &**check {
            Check::Broken(broken) => Some(SchemaFault {
                tool: tool.name.clone(),
                pointer: tool.pointer.child(key).join(&broken.pointer),
                message: broken.message.clone(),
            }),
            Check::Nothing | Check::Schema { .. } => None,
        })
    }
}

impl Tools {
    /// Adds a tool, in the place of one of the same name if there is one.
    pub(super) fn add(
        &mut self,
        tool: &ToolPolicy,
        quarantine: Option<Quarantine>,
        groups: &mut Groups,
        checks: &mut Checks,
    ) {
        let compiled = checks.compile(tool);
        self.add_compiled(tool, compiled, groups, |added| {
            added.quarantine = quarantine
        });
    }

    /// As [`Self::add`], with the schemas compiled and something more to be said of the tool.
    pub(super) fn add_compiled(
        &mut self,
        tool: &ToolPolicy,
        compiled: Compiled,
        groups: &mut Groups,
        finish: impl FnOnce(&mut Tool),
    ) {
        let next = ToolId::try_from(self.list.len()).unwrap_or(ToolId::MAX);
        let id = self
            .by_name
            .get(tool.name.as_str())
            .copied()
            .unwrap_or(next);
        let name: Arc<str> = tool.name.as_str().into();
        let (own, reachable_by) = groups.of_tool(&tool.groups);
        let states = match &tool.states {
            States::Every => {
                self.everywhere = true;
                None
            }
            States::Only(states) => {
                let states = states.iter().map(|state| Arc::from(state.as_str()));
                let states: Box<[Arc<str>]> = states.collect();
                self.states.extend(states.iter().map(Arc::clone));
                Some(states)
            }
        };
        let next_state: Option<Arc<str>> = tool.next_state.as_deref().map(Arc::from);
        if let Some(next) = &next_state {
            self.leading.entry(Arc::clone(next)).or_default().push(id);
        }
        let required = tool.permissions.iter().map(|permission| Required {
            permission: permission.clone(),
            covered_by: Box::default(),
        });
        self.by_name.insert(Arc::clone(&name), id);
        let mut added = Tool {
            id,
            kind: tool.kind,
            version: tool.version.clone(),
            groups: own,
            reachable_by,
            states,
            next_state,
            binds: tool.binds.clone().into(),
            uses_state: tool.uses_state,
            outside: tool.outside,
            counted_as: Arc::clone(&name),
            also: Box::default(),
            required: required.collect(),
            limits: tool.limits,
            input: compiled.input,
            output: compiled.output,
            output_mode: tool.output_mode,
            quarantine: None,
            listed: true,
            gone: false,
            name,
        };
        finish(&mut added);
        let added = Arc::new(added);
        match self.list.get_mut(id as usize) {
            Some(place) => *place = added,
            None => self.list.push(added),
        }
    }

    /// The same tools, with the patterns that cover what they require.
    pub(super) fn covered_by(&self, patterns: &Patterns) -> Self {
        let list = self.list.iter().map(|tool| {
            if tool.required.is_empty() {
                return Arc::clone(tool);
            }
            let required = tool.required.iter().map(|required| Required {
                permission: required.permission.clone(),
                covered_by: patterns.covering(&required.permission),
            });
            Arc::new(Tool {
                required: required.collect(),
                ..Tool::clone(tool)
            })
        });
        Self {
            list: list.collect(),
            by_name: self.by_name.clone(),
            states: self.states.clone(),
            leading: self.leading.clone(),
            everywhere: self.everywhere,
            variants: self.variants.clone(),
        }
    }
}

/// Profiles, each held once.
#[derive(Default)]
struct Profiles(HashMap<Profile, Arc<Profile>>);

impl Profiles {
    fn shared(&mut self, profile: Profile) -> Arc<Profile> {
        let shared = self
            .0
            .entry(profile)
            .or_insert_with_key(|it| Arc::new(it.clone()));
        Arc::clone(shared)
    }
}

/// Turns grants into numbers.
struct Granting<'p> {
    policy: &'p Policy,
    tools: &'p Tools,
    groups: &'p mut Groups,
    patterns: &'p mut Patterns,
}

impl Granting<'_> {
    fn profile(&mut self, grants: &Grants) -> Profile {
        let mut profile = Profile::default();
        let mut says_groups = false;
        let policy = self.policy;
        let mut pending = vec![grants];
        let mut taken = BTreeSet::new();
        while let Some(grants) = pending.pop() {
            for name in &grants.roles {
                if taken.insert(name) {
                    pending.extend(policy.roles.get(name));
                }
            }
            says_groups |= grants.groups.is_some();
            self.add(&mut profile, grants);
        }
        if !says_groups {
            profile.groups.push(self.groups.intern(DEFAULT_GROUP));
        }
        profile.sort();
        let groups = policy.default_groups(grants);
        profile.default_groups = groups.map(|it| it.into_iter().map(Box::from).collect());
        profile.initial_state = policy.initial_state(grants).map(Arc::from);
        profile
    }

    fn add(&mut self, profile: &mut Profile, grants: &Grants) {
        for group in grants.groups.iter().flatten() {
            if group == EVERY {
                profile.every_group = true;
            } else {
                profile.groups.push(self.groups.intern(group));
            }
        }
        for group in &grants.deny.groups {
            if group == EVERY {
                profile.denies_every_group = true;
            } else {
                profile.denied_groups.push(self.groups.intern(group));
            }
        }
        for name in &grants.deny.tools {
            profile
                .denied_tools
                .extend(self.tools.by_name.get(name.as_str()));
        }
        let denied = grants.deny.features.iter();
        let denied = denied.map(|(kind, name)| NamePattern::new(*kind, name));
        profile.denied_features.extend(denied);
        for pattern in &grants.permissions {
            profile.allowed.push(self.patterns.intern(pattern));
        }
        for pattern in &grants.deny.permissions {
            profile.denied.push(self.patterns.intern(pattern));
        }
    }
}
