//! A policy made ready to decide: names are numbers, patterns are looked up, schemas are compiled.

mod approval;
mod compile;
mod discovered;
mod facts;
mod features;
mod gates;
mod groups;
mod identity;
mod permit;
mod profile;
mod registry;
mod request;
mod roles;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::FixedState;
use toolwarden_model::json::Pointer;

use crate::input::Check;
use crate::policy::{
    AuditRules, EVERY, FeatureKind, Limits, OutputMode, Permission, RequestRules, SessionRules,
    Unlisted,
};
use features::Features;
use groups::Groups;
use profile::{Patterns, Profile};

pub use approval::BoundValues;
pub use compile::SchemaFault;
pub use discovered::{Discovered, VariantTool};
pub use facts::ToolFacts;
pub use features::{Feature, ReachableFeatures};
pub use gates::Step;
pub use identity::ToolIdentity;
pub use permit::{Admitted, Metered, Overrun, Permit};
pub use profile::Amendment;
pub use request::{Availability, GroupSummary, LeftOut, Request, RequestedGroups};

/// Looks up names that come from outside in tables that do not, so no key can be chosen to collide.
type Names<K, V> = HashMap<K, V, FixedState>;

type GroupId = u32;
type ToolId = u32;
type PatternId = u32;
type PrincipalId = u32;

/// A policy that decides calls. It never changes; a new policy is a new guard.
#[derive(Clone, Debug)]
pub struct Guard {
    tools: Arc<Tools>,
    features: Arc<Features>,
    groups: Arc<Groups>,
    patterns: Arc<Patterns>,
    principals: Arc<Principals>,
    /// Profiles of principals whose permissions were changed at run time.
    amended: Arc<Names<Arc<str>, Arc<Profile>>>,
    requests: RequestRules,
    sessions: SessionRules,
    /// The states that one call uses up.
    single_use: Arc<BTreeSet<String>>,
    count_invalid: bool,
    unlisted: Unlisted,
    audit: AuditRules,
    zone: jiff::tz::TimeZone,
}

#[derive(Clone, Debug)]
struct Tools {
    /// In the order of the policy.
    list: Vec<Arc<Tool>>,
    by_name: Names<Arc<str>, ToolId>,
    /// The states some tool is available in by name.
    states: BTreeSet<Arc<str>>,
    /// The states some tool leads to, with those tools.
    leading: BTreeMap<Arc<str>, Vec<ToolId>>,
    /// Whether some tool is available in every state.
    everywhere: bool,
    /// Tools as servers define them for some clients only, by name and variant.
    variants: Names<Arc<str>, BTreeMap<Arc<str>, Arc<Tool>>>,
}

#[derive(Clone, Debug)]
struct Principals {
    list: Vec<(Arc<str>, Arc<Profile>)>,
    by_name: Names<Arc<str>, PrincipalId>,
    anyone: Arc<Profile>,
    /// What each role grants by itself, for callers whose roles come with their credential.
    roles: Names<Arc<str>, Arc<Profile>>,
}

/// A tool as the gates need it.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub(crate) id: ToolId,
    /// What it is: everything servers offer is decided as tools are.
    pub(crate) kind: FeatureKind,
    /// Its name, as records have it.
    pub(crate) name: Arc<str>,
    pub(crate) version: Option<String>,
    pub(crate) groups: Box<[GroupId]>,
    /// The groups and all groups around them, sorted.
    pub(crate) reachable_by: Box<[GroupId]>,
    /// Sorted; none means every state.
    pub(crate) states: Option<Box<[Arc<str>]>>,
    pub(crate) next_state: Option<Arc<str>>,
    /// The arguments that calls in the next state must repeat.
    pub(crate) binds: Box<[Pointer]>,
    /// Whether it uses up single-use states it names.
    pub(crate) uses_state: bool,
    /// Whether no server behind a gateway has it.
    pub(crate) outside: bool,
    /// The name its calls are counted by, whatever name it is shown under.
    pub(crate) counted_as: Arc<str>,
    /// Other entries of the policy for the same tool, whose deny rules count, too.
    pub(crate) also: Box<[ToolId]>,
    pub(crate) required: Box<[Required]>,
    pub(crate) limits: Limits,
    pub(crate) input: Arc<Check>,
    pub(crate) output: Arc<Check>,
    pub(crate) output_mode: OutputMode,
    pub(crate) quarantine: Option<Quarantine>,
    /// Whether the policy names it; otherwise it was learned from a server.
    pub(crate) listed: bool,
    /// It was taken away while the guard was in use.
    pub(crate) gone: bool,
}

/// That a tool may not be called until somebody lets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quarantine {
    /// Why, where that is known.
    pub(crate) why: Option<Arc<str>>,
}

/// A permission a tool requires, with every pattern of the policy that covers it.
#[derive(Clone, Debug)]
pub(crate) struct Required {
    pub(crate) permission: Permission,
    pub(crate) covered_by: Box<[PatternId]>,
}

impl Guard {
    /// Whether a call with invalid input uses up the rate limit.
    #[must_use]
    pub const fn counts_invalid(&self) -> bool {
        self.count_invalid
    }

    /// Where a client may start, and when a session is forgotten.
    #[must_use]
    pub const fn sessions(&self) -> &SessionRules {
        &self.sessions
    }

    /// What is recorded, and how.
    #[must_use]
    pub const fn audit(&self) -> &AuditRules {
        &self.audit
    }

    /// The zone of times in conditions.
    #[must_use]
    pub const fn zone(&self) -> &jiff::tz::TimeZone {
        &self.zone
    }

    /// Whether some tool is available in a state.
    #[must_use]
    pub fn has_tools_in(&self, state: &str) -> bool {
        self.tools.everywhere || self.tools.states.contains(state)
    }

    /// Whether tools or transitions name a state.
    #[must_use]
    pub fn knows_state(&self, state: &str) -> bool {
        self.tools.states.contains(state) || self.tools.leading.contains_key(state)
    }

    /// Whether any group is on only under circumstances.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        self.groups.conditional
    }

    /// Whether a principal may ask for a group.
    #[must_use]
    pub fn may_request(&self, principal: &str, group: &str) -> bool {
        let profile = self.profile(principal);
        if group == EVERY {
            return profile.every_group && !profile.denies_every_group;
        }
        profile.grants_group(&self.groups, group)
    }

    /// Whether a request for a group reaches any tool.
    #[must_use]
    pub fn has_tools_in_group(&self, group: &str) -> bool {
        let known = self.groups.id(group).and_then(|id| self.groups.get(id));
        known.is_some_and(|group| group.tools > 0)
    }

    /// How many of some tools a request for a group reaches.
    #[must_use]
    pub fn count_in_group(&self, group: &str, tools: &[Arc<str>]) -> usize {
        if group == EVERY {
            return tools.len();
        }
        let Some(id) = self.groups.id(group) else {
            return 0;
        };
        let tools = tools.iter().filter_map(|name| self.tool(name));
        tools
            .filter(|tool| tool.reachable_by.binary_search(&id).is_ok())
            .count()
    }

    /// Whether the policy speaks of a group.
    #[must_use]
    pub fn knows_group(&self, name: &str) -> bool {
        self.groups.id(name).is_some()
    }

    /// Whether the policy itself names a tool; those learned from servers it does not.
    #[must_use]
    pub fn lists_tool(&self, name: &str) -> bool {
        self.tool(name).is_some_and(|tool| tool.listed)
    }

    /// A name for a tool that takes no room: its number, where it is known.
    #[must_use]
    pub fn tool_ref(&self, name: &str) -> NameRef {
        NameRef::new(self.tools.by_name.get(name), name)
    }

    /// A name for a principal that takes no room: its number, where the policy names it.
    #[must_use]
    pub fn principal_ref(&self, name: &str) -> NameRef {
        NameRef::new(self.principals.by_name.get(name), name)
    }

    /// The tool a reference of this very guard stands for.
    #[must_use]
    pub fn tool_name<'n>(&'n self, name: &'n NameRef) -> &'n str {
        name.resolve(|id| self.tools.list.get(id).map(|tool| &*tool.name))
    }

    /// The principal a reference of this very guard stands for.
    #[must_use]
    pub fn principal_name<'n>(&'n self, name: &'n NameRef) -> &'n str {
        name.resolve(|id| self.principals.list.get(id).map(|(name, _)| &**name))
    }

    fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
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

/// A name that takes no room where the policy knows it. It means something to the guard that gave it,
/// and to those made of that one.
#[derive(Clone, Debug)]
pub struct NameRef(Known);

#[derive(Clone, Debug)]
enum Known {
    ByNumber(u32),
    ByName(Box<str>),
}

impl NameRef {
    fn new(known: Option<&u32>, name: &str) -> Self {
        Self(known.map_or_else(|| Known::ByName(name.into()), |id| Known::ByNumber(*id)))
    }

    fn resolve<'n>(&'n self, name: impl FnOnce(usize) -> Option<&'n str>) -> &'n str {
        match &self.0 {
            Known::ByNumber(id) => name(*id as usize).unwrap_or_default(),
            Known::ByName(name) => name,
        }
    }
}

impl Tool {
    /// What it is and its name, for messages.
    pub(crate) fn label(&self) -> String {
        let kind = self.kind.as_str();
        let name = self.name.strip_prefix(kind);
        let name = name.and_then(|name| name.strip_prefix(':'));
        let name = name.filter(|_| self.kind != FeatureKind::Tool);
        format!("{kind} '{}'", name.unwrap_or(&self.name))
    }

    pub(crate) fn available_in(&self, state: &str) -> bool {
        match &self.states {
            None => true,
            Some(states) => states.iter().any(|it| &**it == state),
        }
    }
}
