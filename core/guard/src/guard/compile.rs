use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_model::{Fingerprint, StateName};

use super::features::Features;
use super::groups::GroupTable;
use super::profile::{PermissionPatterns, Profile};
use super::{
    Guard, GuardedTool, NameMap, PrincipalId, PrincipalTable, Quarantine, RequiredPermission,
    ToolId, ToolTable,
};
use crate::input::SchemaCheck;
use crate::policy::{
    DEFAULT_GROUP, EVERY_GROUP, Grants, NamePattern, Policy, StateSet, ToolPolicy,
};

/// A schema in a policy that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableSchema {
    /// The tool.
    pub tool: String,
    /// The place of the schema in the policy.
    pub pointer: Pointer,
    /// The validator's message.
    pub message: String,
}

impl Guard {
    /// Compiles a policy into a guard. It reports schemas that cannot be used; until they are fixed, the
    /// guard denies every call of their tools.
    #[must_use]
    pub fn new(policy: Policy) -> (Self, Vec<UnusableSchema>) {
        let mut groups = GroupTable::default();
        groups.intern(&DEFAULT_GROUP);
        let mut patterns = PermissionPatterns::default();
        let mut tools = ToolTable {
            list: Vec::with_capacity(policy.tools.len()),
            by_name: NameMap::default(),
            states: BTreeSet::new(),
            tools_leading_to: BTreeMap::new(),
            everywhere: false,
            variants: NameMap::default(),
        };
        let mut checks = SchemaCache::default();
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
        let mut principals = PrincipalTable {
            list: Vec::with_capacity(policy.principals.len()),
            by_name: NameMap::default(),
            anyone: Arc::default(),
            roles: NameMap::default(),
        };
        let mut granting = ProfileBuilder {
            policy: &policy,
            tools: &tools,
            groups: &mut groups,
            patterns: &mut patterns,
        };
        principals.anyone = profiles.intern(granting.profile(&policy.anyone));
        for (name, principal) in &policy.principals {
            let profile = profiles.intern(granting.profile(&principal.grants));
            let id = PrincipalId::try_from(principals.list.len()).unwrap_or(PrincipalId::MAX);
            let name: Arc<str> = name.as_str().into();
            principals.by_name.insert(Arc::clone(&name), id);
            principals.list.push((name, profile));
        }
        for (name, grants) in &policy.roles {
            let profile = profiles.intern(granting.profile(grants));
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

/// Compiled schemas by fingerprint, so that equal ones are compiled and stored once.
#[derive(Default)]
pub(super) struct SchemaCache {
    known: NameMap<Fingerprint, Arc<SchemaCheck>>,
    faults: Vec<UnusableSchema>,
}

/// The compiled input and output schemas of a tool.
#[derive(Clone, Debug)]
pub(super) struct CompiledSchemas {
    pub(super) input: Arc<SchemaCheck>,
    pub(super) output: Arc<SchemaCheck>,
}

impl SchemaCache {
    pub(super) fn into_faults(self) -> Vec<UnusableSchema> {
        self.faults
    }

    fn compile(&mut self, tool: &ToolPolicy) -> CompiledSchemas {
        let compiled = CompiledSchemas {
            input: self.check(&tool.input_schema).1,
            output: self.check(&tool.output_schema).1,
        };
        self.faults.extend(compiled.faults(tool));
        compiled
    }

    /// A schema's fingerprint and its compiled form.
    pub(super) fn check(&mut self, schema: &Value) -> (Fingerprint, Arc<SchemaCheck>) {
        let fingerprint = Fingerprint::of(schema);
        let check = self
            .known
            .entry(fingerprint)
            .or_insert_with(|| Arc::new(SchemaCheck::new(schema)));
        (fingerprint, Arc::clone(check))
    }

    /// A cache with this capacity.
    pub(super) fn with_capacity(count: usize) -> Self {
        Self {
            known: NameMap::with_capacity_and_hasher(count, Default::default()),
            faults: Vec::new(),
        }
    }

    /// Adds a schema that was compiled earlier.
    pub(super) fn remember(&mut self, fingerprint: Fingerprint, check: &Arc<SchemaCheck>) {
        self.known.insert(fingerprint, Arc::clone(check));
    }
}

impl CompiledSchemas {
    /// The faults in the schemas of a tool.
    pub(super) fn faults(&self, tool: &ToolPolicy) -> impl Iterator<Item = UnusableSchema> {
        let both = [
            ("input_schema", &self.input),
            ("output_schema", &self.output),
        ];
        both.into_iter().filter_map(|(key, check)| match &**check {
            SchemaCheck::Broken(broken) => Some(UnusableSchema {
                tool: tool.name.clone(),
                pointer: tool.pointer.child(key).join(&broken.pointer),
                message: broken.message.clone(),
            }),
            SchemaCheck::Nothing | SchemaCheck::Schema { .. } => None,
        })
    }
}

impl ToolTable {
    /// Adds a tool, or replaces the one with the same name.
    pub(super) fn add(
        &mut self,
        tool: &ToolPolicy,
        quarantine: Option<Quarantine>,
        groups: &mut GroupTable,
        checks: &mut SchemaCache,
    ) {
        let compiled = checks.compile(tool);
        self.add_compiled(tool, compiled, groups, |added| {
            added.quarantine = quarantine
        });
    }

    /// Like [`Self::add`], with compiled schemas; `finish` makes further changes to the tool.
    pub(super) fn add_compiled(
        &mut self,
        tool: &ToolPolicy,
        compiled: CompiledSchemas,
        groups: &mut GroupTable,
        finish: impl FnOnce(&mut GuardedTool),
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
            StateSet::Every => {
                self.everywhere = true;
                None
            }
            StateSet::Only(states) => {
                let states: Box<[StateName]> = states.iter().cloned().collect();
                self.states.extend(states.iter().cloned());
                Some(states)
            }
        };
        let next_state = tool.next_state.clone();
        if let Some(next) = &next_state {
            self.tools_leading_to
                .entry(next.clone())
                .or_default()
                .push(id);
        }
        let required = tool
            .permissions
            .iter()
            .map(|permission| RequiredPermission {
                permission: permission.clone(),
                covered_by: Box::default(),
            });
        self.by_name.insert(Arc::clone(&name), id);
        let mut added = GuardedTool {
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
            destination: None,
            also: Box::default(),
            required: required.collect(),
            limits: tool.limits,
            input: compiled.input,
            output: compiled.output,
            output_mode: tool.output_mode,
            quarantine: None,
            join_names: true,
            removed: false,
            name,
        };
        finish(&mut added);
        let added = Arc::new(added);
        match self.list.get_mut(id as usize) {
            Some(place) => *place = added,
            None => self.list.push(added),
        }
    }

    /// The same tools, with the patterns that cover their required permissions.
    pub(super) fn covered_by(&self, patterns: &PermissionPatterns) -> Self {
        let list = self.list.iter().map(|tool| {
            if tool.required.is_empty() {
                return Arc::clone(tool);
            }
            let required = tool.required.iter().map(|required| RequiredPermission {
                permission: required.permission.clone(),
                covered_by: patterns.covering(&required.permission),
            });
            Arc::new(GuardedTool {
                required: required.collect(),
                ..GuardedTool::clone(tool)
            })
        });
        Self {
            list: list.collect(),
            by_name: self.by_name.clone(),
            states: self.states.clone(),
            tools_leading_to: self.tools_leading_to.clone(),
            everywhere: self.everywhere,
            variants: self.variants.clone(),
        }
    }
}

/// Profiles, each stored once.
#[derive(Default)]
struct Profiles(HashMap<Profile, Arc<Profile>>);

impl Profiles {
    fn intern(&mut self, profile: Profile) -> Arc<Profile> {
        let shared = self
            .0
            .entry(profile)
            .or_insert_with_key(|it| Arc::new(it.clone()));
        Arc::clone(shared)
    }
}

/// Converts grants into numbers.
struct ProfileBuilder<'p> {
    policy: &'p Policy,
    tools: &'p ToolTable,
    groups: &'p mut GroupTable,
    patterns: &'p mut PermissionPatterns,
}

impl ProfileBuilder<'_> {
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
            profile.groups.push(self.groups.intern(&DEFAULT_GROUP));
        }
        profile.sort();
        profile.default_groups = policy.default_groups(grants);
        profile.initial_state = policy.initial_state(grants);
        profile
    }

    fn add(&mut self, profile: &mut Profile, grants: &Grants) {
        for group in grants.groups.iter().flatten() {
            if *group == EVERY_GROUP {
                profile.every_group = true;
            } else {
                profile.groups.push(self.groups.intern(group));
            }
        }
        for group in &grants.deny.groups {
            if *group == EVERY_GROUP {
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
