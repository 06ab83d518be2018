//! A compiled policy: names are numbers, patterns are in lookup tables, schemas are compiled.

mod approval;
mod compile;
mod discovered_tools;
mod features;
mod gates;
mod groups;
mod permit;
mod profile;
mod registry;
mod request;
mod roles;
mod tool_facts;
mod tool_identity;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::FixedState;
use toolwarden_model::json::Pointer;
use toolwarden_model::{GroupName, StateName};

use crate::input::SchemaCheck;
use crate::policy::{
    AuditRules, EVERY_GROUP, FeatureKind, OutputMode, Permission, RequestRules, SessionRules,
    ToolLimits, UnlistedTools,
};
use features::Features;
use groups::GroupTable;
use profile::{PermissionPatterns, Profile};

pub use approval::BoundValues;
pub use compile::UnusableSchema;
pub use discovered_tools::{DiscoveredTools, VariantTool};
pub use features::{Feature, ReachableFeatures};
pub use gates::GateResult;
pub use permit::{AdmittedCall, LimitExceeded, MeteredCall, Permit};
pub use profile::PermissionChange;
pub use request::{Availability, GroupSummary, Request, RequestedGroups, UnavailableTool};
pub use tool_facts::ToolFacts;
pub use tool_identity::{CallDestination, ToolIdentity};

/// Looks up untrusted names in tables whose keys are trusted, so an attacker cannot choose keys that
/// collide.
type NameMap<K, V> = HashMap<K, V, FixedState>;

type GroupId = u32;
type ToolId = u32;
type PatternId = u32;
type PrincipalId = u32;

/// A policy that decides calls. It never changes; a new policy is a new guard.
#[derive(Clone, Debug)]
pub struct Guard {
    tools: Arc<ToolTable>,
    features: Arc<Features>,
    groups: Arc<GroupTable>,
    patterns: Arc<PermissionPatterns>,
    principals: Arc<PrincipalTable>,
    /// Profiles of principals whose permissions were changed at run time.
    amended: Arc<NameMap<Arc<str>, Arc<Profile>>>,
    requests: RequestRules,
    sessions: SessionRules,
    /// The single-use states.
    single_use: Arc<BTreeSet<StateName>>,
    count_invalid: bool,
    unlisted: UnlistedTools,
    audit: AuditRules,
    zone: jiff::tz::TimeZone,
}

#[derive(Clone, Debug)]
struct ToolTable {
    /// In the order of the policy.
    list: Vec<Arc<GuardedTool>>,
    by_name: NameMap<Arc<str>, ToolId>,
    /// The states that some tool names as available.
    states: BTreeSet<StateName>,
    /// The states some tool leads to, with those tools.
    tools_leading_to: BTreeMap<StateName, Vec<ToolId>>,
    /// Whether some tool is available in every state.
    everywhere: bool,
    /// Tools with a definition for some clients only, by name and variant.
    variants: NameMap<Arc<str>, BTreeMap<Arc<str>, Arc<GuardedTool>>>,
}

#[derive(Clone, Debug)]
struct PrincipalTable {
    list: Vec<(Arc<str>, Arc<Profile>)>,
    by_name: NameMap<Arc<str>, PrincipalId>,
    anyone: Arc<Profile>,
    /// The grants of each role, for callers whose credential carries their roles.
    roles: NameMap<Arc<str>, Arc<Profile>>,
}

/// A tool in the form that the gates use.
#[derive(Clone, Debug)]
pub(crate) struct GuardedTool {
    pub(crate) id: ToolId,
    /// Its kind: all features of servers are decided like tools.
    pub(crate) kind: FeatureKind,
    /// Its name in records.
    pub(crate) name: Arc<str>,
    pub(crate) version: Option<String>,
    pub(crate) groups: Box<[GroupId]>,
    /// The groups and all their parent groups, sorted.
    pub(crate) reachable_by: Box<[GroupId]>,
    /// Sorted; `None` means every state.
    pub(crate) states: Option<Box<[StateName]>>,
    pub(crate) next_state: Option<StateName>,
    /// The arguments that calls in the next state must repeat.
    pub(crate) binds: Box<[Pointer]>,
    /// Whether a call uses up the single-use states that the tool names.
    pub(crate) uses_state: bool,
    /// Whether no server behind a gateway has it.
    pub(crate) outside: bool,
    /// The name under which its calls are counted, regardless of the name it is shown under.
    pub(crate) counted_as: Arc<str>,
    /// Where its calls go, if a server behind a gateway has it.
    pub(crate) destination: Option<CallDestination>,
    /// Other policy entries for the same tool, whose deny rules also apply.
    pub(crate) also: Box<[ToolId]>,
    pub(crate) required: Box<[RequiredPermission]>,
    pub(crate) limits: ToolLimits,
    pub(crate) input: Arc<SchemaCheck>,
    pub(crate) output: Arc<SchemaCheck>,
    pub(crate) output_mode: OutputMode,
    pub(crate) quarantine: Option<Quarantine>,
    /// Whether the policy names it; otherwise it was learned from a server.
    pub(crate) join_names: bool,
    /// Whether it was removed at run time.
    pub(crate) removed: bool,
}

/// A tool's quarantine: the tool may not be called until an administrator releases it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quarantine {
    /// The reason, if known.
    pub(crate) why: Option<Arc<str>>,
}

/// A permission a tool requires, with every pattern of the policy that covers it.
#[derive(Clone, Debug)]
pub(crate) struct RequiredPermission {
    pub(crate) permission: Permission,
    pub(crate) covered_by: Box<[PatternId]>,
}

impl Guard {
    /// Whether a call with invalid input uses up the rate limit.
    #[must_use]
    pub const fn counts_invalid(&self) -> bool {
        self.count_invalid
    }

    /// The initial states of sessions, and when an idle session expires.
    #[must_use]
    pub const fn sessions(&self) -> &SessionRules {
        &self.sessions
    }

    /// The audit rules.
    #[must_use]
    pub const fn audit(&self) -> &AuditRules {
        &self.audit
    }

    /// The time zone for conditions.
    #[must_use]
    pub const fn zone(&self) -> &jiff::tz::TimeZone {
        &self.zone
    }

    /// Whether some tool is available in a state.
    #[must_use]
    pub fn has_tools_in(&self, state: &StateName) -> bool {
        self.tools.everywhere || self.tools.states.contains(state)
    }

    /// Whether tools or transitions name a state.
    #[must_use]
    pub fn has_state(&self, state: &StateName) -> bool {
        self.tools.states.contains(state) || self.tools.tools_leading_to.contains_key(state)
    }

    /// Whether any group has a condition.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        self.groups.conditional
    }

    /// Whether a principal may request a group.
    #[must_use]
    pub fn may_request(&self, principal: &str, group: &GroupName) -> bool {
        let profile = self.profile(principal);
        if *group == EVERY_GROUP {
            return profile.every_group && !profile.denies_every_group;
        }
        profile.grants_group(&self.groups, group)
    }

    /// Whether a request for a group reaches any tool.
    #[must_use]
    pub fn has_tools_in_group(&self, group: &GroupName) -> bool {
        let known = self
            .groups
            .id(group.as_str())
            .and_then(|id| self.groups.get(id));
        known.is_some_and(|group| group.tools > 0)
    }

    /// How many of the given tools a request for a group reaches.
    #[must_use]
    pub fn count_in_group(&self, group: &GroupName, tools: &[Arc<str>]) -> usize {
        if *group == EVERY_GROUP {
            return tools.len();
        }
        let Some(id) = self.groups.id(group.as_str()) else {
            return 0;
        };
        let tools = tools.iter().filter_map(|name| self.tool(name));
        tools
            .filter(|tool| tool.reachable_by.binary_search(&id).is_ok())
            .count()
    }

    /// Whether the policy mentions a group.
    #[must_use]
    pub fn has_group(&self, name: &GroupName) -> bool {
        self.groups.id(name.as_str()).is_some()
    }

    /// Whether the policy itself names a tool; it does not name tools learned from servers.
    #[must_use]
    pub fn lists_tool(&self, name: &str) -> bool {
        self.tool(name).is_some_and(|tool| tool.join_names)
    }

    /// A compact reference to a tool: its number, if it is known.
    #[must_use]
    pub fn tool_ref(&self, name: &str) -> NameRef {
        NameRef::new(self.tools.by_name.get(name), name)
    }

    /// A compact reference to a principal: its number, if the policy names it.
    #[must_use]
    pub fn principal_ref(&self, name: &str) -> NameRef {
        NameRef::new(self.principals.by_name.get(name), name)
    }

    /// The name of the tool that a reference from this guard stands for.
    #[must_use]
    pub fn tool_name<'n>(&'n self, name: &'n NameRef) -> &'n str {
        name.resolve(|id| self.tools.list.get(id).map(|tool| &*tool.name))
    }

    /// The name of the principal that a reference from this guard stands for.
    #[must_use]
    pub fn principal_name<'n>(&'n self, name: &'n NameRef) -> &'n str {
        name.resolve(|id| self.principals.list.get(id).map(|(name, _)| &**name))
    }

    fn tool(&self, name: &str) -> Option<&Arc<GuardedTool>> {
        let id = *self.tools.by_name.get(name)?;
        self.tools.list.get(id as usize)
    }

    fn profile(&self, principal: &str) -> &Arc<Profile> {
        if !self.amended.is_empty()
            && let Some(profile) = self.amended.get(principal)
        {
            return profile;
        }
        let known = self.principals.by_name.get(principal);
        let known = known.and_then(|id| self.principals.list.get(*id as usize));
        known.map_or(&self.principals.anyone, |(_, profile)| profile)
    }
}

/// A compact reference to a name. It is valid only with the guard that created it and with guards derived
/// from that one.
#[derive(Clone, Debug)]
pub struct NameRef(NameKey);

#[derive(Clone, Debug)]
enum NameKey {
    ByNumber(u32),
    ByName(Box<str>),
}

impl NameRef {
    fn new(known: Option<&u32>, name: &str) -> Self {
        Self(known.map_or_else(|| NameKey::ByName(name.into()), |id| NameKey::ByNumber(*id)))
    }

    fn resolve<'n>(&'n self, name: impl FnOnce(usize) -> Option<&'n str>) -> &'n str {
        match &self.0 {
            NameKey::ByNumber(id) => name(*id as usize).unwrap_or_default(),
            NameKey::ByName(name) => name,
        }
    }
}

impl GuardedTool {
    /// Its kind and name, for messages.
    pub(crate) fn label(&self) -> String {
        let kind = self.kind.as_str();
        let name = self.name.strip_prefix(kind);
        let name = name.and_then(|name| name.strip_prefix(':'));
        let name = name.filter(|_| self.kind != FeatureKind::Tool);
        format!("{kind} '{}'", name.unwrap_or(&self.name))
    }

    pub(crate) fn available_in(&self, state: &StateName) -> bool {
        match &self.states {
            None => true,
            Some(states) => states.contains(state),
        }
    }
}
