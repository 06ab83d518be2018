//! A policy made ready to decide: names are numbers, patterns are looked up, schemas are compiled.

mod compile;
mod gates;
mod groups;
mod permit;
mod profile;
mod request;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::condition::Condition;
use crate::input::Check;
use crate::policy::{AuditRules, Limits, OutputMode, Permission, RequestRules, SessionRules};
use groups::Groups;
use profile::{Patterns, Profile};

pub use compile::SchemaFault;
pub use gates::Step;
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
    groups: Arc<Groups>,
    patterns: Arc<Patterns>,
    principals: Arc<Principals>,
    /// Profiles of principals whose permissions were changed at run time.
    amended: Arc<Names<Arc<str>, Arc<Profile>>>,
    requests: RequestRules,
    sessions: SessionRules,
    count_invalid: bool,
    audit: AuditRules,
    zone: jiff::tz::TimeZone,
}

#[derive(Debug)]
struct Tools {
    /// In the order of the policy.
    list: Vec<Arc<Tool>>,
    by_name: Names<Arc<str>, ToolId>,
    /// The states some tool is available in by name.
    states: BTreeSet<Arc<str>>,
    /// The states some tool leads to.
    targets: BTreeSet<Arc<str>>,
    /// Whether some tool is available in every state.
    everywhere: bool,
}

#[derive(Debug)]
struct Principals {
    list: Vec<(Arc<str>, Arc<Profile>)>,
    by_name: Names<Arc<str>, PrincipalId>,
    anyone: Arc<Profile>,
}

/// A tool as the gates need it.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) id: ToolId,
    pub(crate) name: Arc<str>,
    pub(crate) title: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) groups: Box<[GroupId]>,
    /// The groups and all groups around them, sorted.
    pub(crate) reachable_by: Box<[GroupId]>,
    /// Sorted; none means every state.
    pub(crate) states: Option<Box<[Arc<str>]>>,
    pub(crate) next_state: Option<Arc<str>>,
    pub(crate) required: Box<[Required]>,
    pub(crate) limits: Limits,
    pub(crate) input: Arc<Check>,
    pub(crate) output: Arc<Check>,
    pub(crate) output_mode: OutputMode,
    pub(crate) quarantined: bool,
}

/// A permission a tool requires, with every pattern of the policy that covers it.
#[derive(Debug)]
pub(crate) struct Required {
    pub(crate) permission: Permission,
    pub(crate) covered_by: Box<[PatternId]>,
}

/// A group that is on only under circumstances.
#[derive(Debug)]
pub(crate) struct Conditional {
    pub(crate) condition: Condition,
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

    /// The tools' names, in the order of the policy.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.list.iter().map(|tool| &*tool.name)
    }

    /// Whether some tool is available in a state.
    #[must_use]
    pub fn has_tools_in(&self, state: &str) -> bool {
        self.tools.everywhere || self.tools.states.contains(state)
    }

    /// Whether tools or transitions name a state.
    #[must_use]
    pub fn knows_state(&self, state: &str) -> bool {
        self.tools.states.contains(state) || self.tools.targets.contains(state)
    }

    /// Whether any state differs from the others.
    #[must_use]
    pub fn has_workflow(&self) -> bool {
        !self.tools.states.is_empty() || !self.tools.targets.is_empty()
    }

    /// Whether any group is on only under circumstances.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        self.groups.conditional
    }

    /// Whether the policy speaks of a group.
    #[must_use]
    pub fn knows_group(&self, name: &str) -> bool {
        self.groups.id(name).is_some()
    }

    /// A name for a tool that takes no room: its number, where it is known.
    #[must_use]
    pub fn tool_ref(&self, name: &str) -> NameRef {
        let known = self.tools.by_name.get(name);
        known.map_or_else(|| NameRef::told(name), |id| NameRef::Known(*id))
    }

    /// A name for a principal that takes no room: its number, where the policy names it.
    #[must_use]
    pub fn principal_ref(&self, name: &str) -> NameRef {
        let known = self.principals.by_name.get(name);
        known.map_or_else(|| NameRef::told(name), |id| NameRef::Known(*id))
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

/// A name that takes no room where the policy knows it. It means something to one guard only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameRef {
    /// The number under which the policy knows it.
    Known(u32),
    /// The name itself; empty where there is none.
    Told(Box<str>),
}

impl NameRef {
    /// A name the policy does not know.
    #[must_use]
    pub fn told(name: &str) -> Self {
        Self::Told(name.into())
    }

    fn resolve<'n>(&'n self, known: impl FnOnce(usize) -> Option<&'n str>) -> &'n str {
        match self {
            Self::Known(id) => known(*id as usize).unwrap_or_default(),
            Self::Told(name) => name,
        }
    }
}

impl Tool {
    pub(crate) fn available_in(&self, state: &str) -> bool {
        match &self.states {
            None => true,
            Some(states) => states.iter().any(|it| &**it == state),
        }
    }
}
