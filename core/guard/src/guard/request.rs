use std::borrow::Cow;
use std::sync::Arc;

use toolwarden_model::{GroupName, StateName};

use super::groups::ActiveGroups;
use super::profile::Profile;
use super::{GroupId, Guard, GuardedTool};
use crate::condition::ConditionInputs;
use crate::decision::{Denial, ReasonCode};
use crate::policy::{DEFAULT_GROUP, EVERY_GROUP, ExcessGroups};

/// A principal's request for tools, in a state.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// The principal.
    pub principal: &'r str,
    /// The requested groups.
    pub groups: &'r RequestedGroups,
    /// The state of its session, as the server knows it.
    pub state: &'r StateName,
    /// The circumstances that conditions are evaluated with.
    pub condition_inputs: &'r ConditionInputs,
    /// The variant of clients it comes from; servers may offer it different definitions.
    pub variant: Option<&'r str>,
}

/// The groups a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum RequestedGroups {
    /// The request names no groups. The gates read this as the group `default`; [`Guard::asked`] gives the
    /// groups that apply when a principal's client names none.
    #[default]
    Default,
    /// These groups; an empty list requests no tool at all.
    Named(Arc<[GroupName]>),
}

/// The tools that a request may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    /// The tools, in the order of the policy.
    pub available: Vec<Arc<str>>,
    /// The other tools, each with the reason.
    pub unavailable: Vec<UnavailableTool>,
    /// Requested groups that have no tools.
    pub unknown_groups: Vec<GroupName>,
    /// Requested groups that were not granted and were left out.
    pub dropped_groups: Vec<GroupName>,
}

/// A tool that is not available, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnavailableTool {
    /// The tool.
    pub tool: Arc<str>,
    /// The reason code.
    pub code: ReasonCode,
    /// The reason as a sentence.
    pub reason: String,
}

/// A group in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSummary {
    /// Its name.
    pub name: GroupName,
    /// Its purpose.
    pub description: Option<String>,
    /// The tools a request for it reaches, before states and permissions.
    pub tools: Vec<Arc<str>>,
    /// Its condition.
    pub when: Option<String>,
    /// Whether it and every parent group is active.
    pub on: bool,
    /// Whether the principal may request it.
    pub granted: bool,
}

/// A request with its groups resolved.
pub(super) struct RequestScope<'g> {
    pub(super) profile: &'g Arc<Profile>,
    /// Whether every group is requested and granted.
    pub(super) every: bool,
    pub(super) groups: Vec<GroupId>,
    pub(super) unknown: Vec<GroupName>,
    pub(super) dropped_groups: Vec<GroupName>,
}

impl RequestedGroups {
    /// The names of the requested groups.
    pub fn names(&self) -> impl Iterator<Item = &GroupName> {
        let (fallback, named) = match self {
            Self::Default => (Some(&DEFAULT_GROUP), None),
            Self::Named(groups) => (None, Some(groups.iter())),
        };
        fallback.into_iter().chain(named.into_iter().flatten())
    }
}

impl RequestedGroups {
    /// The names, if the request gives any.
    #[must_use]
    pub fn named(&self) -> Option<Arc<[GroupName]>> {
        match self {
            Self::Default => None,
            Self::Named(groups) => Some(Arc::clone(groups)),
        }
    }
}

impl Availability {
    /// A request for no tools.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            available: Vec::new(),
            unavailable: Vec::new(),
            unknown_groups: Vec::new(),
            dropped_groups: Vec::new(),
        }
    }
}

impl<S: Into<Arc<str>>> FromIterator<S> for RequestedGroups {
    fn from_iter<I: IntoIterator<Item = S>>(groups: I) -> Self {
        Self::Named(groups.into_iter().map(GroupName::new).collect())
    }
}

impl Guard {
    /// Resolves the groups of a request.
    pub(super) fn resolve_request<'g>(
        &'g self,
        request: &Request<'_>,
    ) -> Result<RequestScope<'g>, Denial> {
        let mut reach = RequestScope {
            profile: self.profile(request.principal),
            every: false,
            groups: Vec::new(),
            unknown: Vec::new(),
            dropped_groups: Vec::new(),
        };
        for name in request.groups.names() {
            self.extend_scope(&mut reach, name);
        }
        if !reach.dropped_groups.is_empty() && self.requests.excess == ExcessGroups::Reject {
            let excess = joined(&reach.dropped_groups);
            return Err(Denial::new(
                ReasonCode::GroupsNotGranted,
                format!("Insufficient permissions for requested tool groups: {excess}"),
            ));
        }
        if let Some(unknown) = reach.unknown.first()
            && self.requests.strict_groups
        {
            let reason = format!("there is no tool in group '{unknown}'");
            return Err(Denial::new(ReasonCode::UnknownGroup, reason));
        }
        Ok(reach)
    }

    /// The groups that a client requests: those it names, else the default groups of its principal. The
    /// default groups are the policy's `default_groups`, else `default` if it is granted, else every
    /// granted group.
    #[must_use]
    pub fn asked<'r>(
        &self,
        principal: &str,
        groups: &'r RequestedGroups,
    ) -> Cow<'r, RequestedGroups> {
        if *groups != RequestedGroups::Default {
            return Cow::Borrowed(groups);
        }
        let profile = self.profile(principal);
        let names: Vec<&GroupName> = match &profile.default_groups {
            Some(groups) => groups.iter().collect(),
            None if profile.grants_group(&self.groups, &DEFAULT_GROUP) => {
                if !self.requests.strict_groups || self.has_tools_in_group(&DEFAULT_GROUP) {
                    return Cow::Borrowed(groups);
                }
                Vec::new()
            }
            None => self.granted_groups(principal),
        };
        // The client named none of these, so none may count as unknown or as exceeding its grants.
        let usable = names.into_iter().filter(|name| {
            self.may_request(principal, name)
                && (**name == EVERY_GROUP || self.has_tools_in_group(name))
        });
        Cow::Owned(RequestedGroups::Named(usable.cloned().collect()))
    }

    /// The state in which the sessions of a principal start unless its client names another.
    #[must_use]
    pub fn initial_state(&self, principal: &str) -> Option<&StateName> {
        self.profile(principal).initial_state.as_ref()
    }

    /// Every group that a principal is granted by name; only `*` if it may request every group.
    #[must_use]
    pub fn granted_groups(&self, principal: &str) -> Vec<&GroupName> {
        let profile = self.profile(principal);
        if profile.every_group && !profile.denies_every_group {
            return vec![&EVERY_GROUP];
        }
        let named = profile.groups.iter().map(|id| self.groups.name(*id));
        named
            .filter(|name| profile.grants_group(&self.groups, name))
            .collect()
    }

    fn extend_scope(&self, reach: &mut RequestScope<'_>, name: &GroupName) {
        let profile = reach.profile;
        if *name == EVERY_GROUP {
            if profile.every_group && !profile.denies_every_group {
                reach.every = true;
            } else {
                reach.dropped_groups.push(name.clone());
                reach.groups.extend(&profile.groups);
            }
            return;
        }
        let known = self.groups.id(name.as_str());
        if known
            .and_then(|id| self.groups.get(id))
            .is_none_or(|it| it.tools == 0)
        {
            reach.unknown.push(name.clone());
        }
        if !profile.grants_group(&self.groups, name) {
            reach.dropped_groups.push(name.clone());
        } else if let Some(id) = known {
            reach.groups.push(id);
        }
    }

    /// Which tools a request may reach, and why not the others. A tool is available exactly if it passes
    /// every gate up to permissions.
    ///
    /// # Errors
    /// The request names groups that the principal may not request.
    pub fn available_tools(&self, request: &Request<'_>) -> Result<Availability, Denial> {
        let reach = self.resolve_request(request)?;
        let mut activity = ActiveGroups::new(&self.groups, request.condition_inputs);
        let mut available = Vec::new();
        let mut left_out = Vec::new();
        for tool in self.active_tools() {
            let tool = self.tools.for_variant(tool, request.variant);
            match self.check_admission(tool, request, &reach, &mut activity) {
                Ok(()) => available.push(Arc::clone(&tool.name)),
                Err(denial) => left_out.push(UnavailableTool {
                    tool: Arc::clone(&tool.name),
                    code: denial.code,
                    reason: denial.reason,
                }),
            }
        }
        Ok(Availability {
            available,
            unavailable: left_out,
            unknown_groups: reach.unknown,
            dropped_groups: reach.dropped_groups,
        })
    }

    /// Every group, with what it means for a principal.
    #[must_use]
    pub fn groups(&self, principal: &str, condition_inputs: &ConditionInputs) -> Vec<GroupSummary> {
        let profile = self.profile(principal);
        let mut activity = ActiveGroups::new(&self.groups, condition_inputs);
        let mut summaries: Vec<GroupSummary> = self
            .groups
            .iter()
            .map(|(id, group)| GroupSummary {
                name: group.name.clone(),
                description: group.description.clone(),
                tools: self
                    .tools_reached_by(id)
                    .map(|tool| Arc::clone(&tool.name))
                    .collect(),
                when: group.condition.as_ref().map(|it| it.text().to_owned()),
                on: activity.is_on(id),
                granted: profile.grants_group(&self.groups, &group.name),
            })
            .collect();
        summaries.sort_by(|a, b| a.name.cmp(&b.name));
        summaries
    }

    fn tools_reached_by(&self, group: GroupId) -> impl Iterator<Item = &Arc<GuardedTool>> {
        self.active_tools()
            .filter(move |tool| tool.reachable_by.binary_search(&group).is_ok())
    }
}

/// Names of groups in a message.
pub(super) fn joined(groups: &[GroupName]) -> String {
    let names: Vec<&str> = groups.iter().map(GroupName::as_str).collect();
    names.join(", ")
}
