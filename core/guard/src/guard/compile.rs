use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;
use toolwarden_model::Fingerprint;
use toolwarden_model::json::Pointer;

use super::groups::Groups;
use super::profile::{Patterns, Profile};
use super::{Guard, Names, PrincipalId, Principals, Required, Tool, ToolId, Tools};
use crate::input::Check;
use crate::policy::{DEFAULT_GROUP, EVERY, Grants, Policy, States, ToolPolicy};

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
            targets: BTreeSet::new(),
            everywhere: false,
        };
        let mut checks = Checks::default();
        for tool in &policy.tools {
            let quarantined = policy.quarantine.contains(&tool.name);
            tools.add(tool, quarantined, &mut groups, &mut checks);
        }
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
        let tools = tools.covered_by(&patterns);
        let guard = Self {
            tools: Arc::new(tools),
            groups: Arc::new(groups),
            patterns: Arc::new(patterns),
            principals: Arc::new(principals),
            amended: Arc::default(),
            requests: policy.requests,
            sessions: policy.sessions,
            count_invalid: policy.count_invalid,
            audit: policy.audit,
            zone: policy.zone,
        };
        (guard, checks.into_faults())
    }
}

/// Compiled schemas by what they say, so that equal ones are compiled and held once.
#[derive(Default)]
pub(super) struct Checks {
    known: HashMap<Fingerprint, Arc<Check>>,
    faults: Vec<SchemaFault>,
}

impl Checks {
    pub(super) fn into_faults(self) -> Vec<SchemaFault> {
        self.faults
    }

    fn check(&mut self, tool: &ToolPolicy, key: &str, schema: &Value) -> Arc<Check> {
        let check = self
            .known
            .entry(Fingerprint::of(schema))
            .or_insert_with(|| Arc::new(Check::new(schema)));
        if let Check::Broken(broken) = &**check {
            self.faults.push(SchemaFault {
                tool: tool.name.clone(),
                pointer: tool.pointer.child(key).join(&broken.pointer),
                message: broken.message.clone(),
            });
        }
        Arc::clone(check)
    }
}

impl Tools {
    /// Adds a tool, in the place of one of the same name if there is one.
    pub(super) fn add(
        &mut self,
        tool: &ToolPolicy,
        quarantined: bool,
        groups: &mut Groups,
        checks: &mut Checks,
    ) {
        let next = ToolId::try_from(self.list.len()).unwrap_or(ToolId::MAX);
        let id = self
            .by_name
            .get(tool.name.as_str())
            .copied()
            .unwrap_or(next);
        let name: Arc<str> = tool.name.as_str().into();
        let own: BTreeSet<u32> = tool
            .groups
            .iter()
            .map(|group| groups.intern(group))
            .collect();
        let chains = own.iter().flat_map(|group| groups.chain(*group).to_vec());
        let reachable_by: BTreeSet<u32> = chains.collect();
        for group in &reachable_by {
            if let Some(group) = groups.get_mut(*group) {
                group.tools += 1;
            }
        }
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
        self.targets.extend(next_state.clone());
        let required = tool.permissions.iter().map(|permission| Required {
            permission: permission.clone(),
            covered_by: Box::default(),
        });
        self.by_name.insert(Arc::clone(&name), id);
        let added = Arc::new(Tool {
            id,
            name,
            version: tool.version.clone(),
            groups: own.into_iter().collect(),
            reachable_by: reachable_by.into_iter().collect(),
            states,
            next_state,
            required: required.collect(),
            limits: tool.limits,
            input: checks.check(tool, "input_schema", &tool.input_schema),
            output: checks.check(tool, "output_schema", &tool.output_schema),
            output_mode: tool.output_mode,
            quarantined,
            gone: false,
        });
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
            targets: self.targets.clone(),
            everywhere: self.everywhere,
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
        for pattern in &grants.permissions {
            profile.allowed.push(self.patterns.intern(pattern));
        }
        for pattern in &grants.deny.permissions {
            profile.denied.push(self.patterns.intern(pattern));
        }
    }
}
