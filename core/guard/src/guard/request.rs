use std::borrow::Cow;
use std::sync::Arc;

use super::groups::Activity;
use super::profile::Profile;
use super::{GroupId, Guard, Tool};
use crate::condition::Circumstances;
use crate::decision::{Code, Denial};
use crate::policy::{DEFAULT_GROUP, EVERY, Excess};

/// Who asks for which tools, in which state.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// Who asks.
    pub principal: &'r str,
    /// The groups it asks for.
    pub groups: &'r RequestedGroups,
    /// The state of its session, as the server knows it.
    pub state: &'r str,
    /// The circumstances conditions are held to.
    pub circumstances: &'r Circumstances,
    /// The variant of clients it comes from, to which servers may offer other definitions.
    pub variant: Option<&'r str>,
}

/// The groups a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum RequestedGroups {
    /// None are named. To the gates this asks for the group `default`; [`Guard::asked`] says what a
    /// client of a principal asks for that names none.
    #[default]
    Default,
    /// These; an empty list asks for no tool at all.
    These(Arc<[Box<str>]>),
}

/// What a request may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    /// The tools, in the order of the policy.
    pub available: Vec<Arc<str>>,
    /// The others, each with why.
    pub left_out: Vec<LeftOut>,
    /// Groups asked for that no tool is in.
    pub unknown_groups: Vec<String>,
    /// Groups asked for that were not granted and left away.
    pub narrowed: Vec<String>,
}

/// A tool that is not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The tool.
    pub tool: Arc<str>,
    /// Why, as a word.
    pub code: Code,
    /// Why, as a sentence.
    pub reason: String,
}

/// A group, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSummary {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The tools a request for it reaches, before states and permissions.
    pub tools: Vec<Arc<str>>,
    /// Its condition.
    pub when: Option<String>,
    /// Whether it and every group around it is on.
    pub on: bool,
    /// Whether the principal may ask for it.
    pub granted: bool,
}

/// A request with its groups looked up.
pub(super) struct Reach<'g> {
    pub(super) profile: &'g Arc<Profile>,
    /// Whether every group is asked for and granted.
    pub(super) every: bool,
    pub(super) groups: Vec<GroupId>,
    pub(super) unknown: Vec<String>,
    pub(super) narrowed: Vec<String>,
}

impl RequestedGroups {
    /// The names, as they are asked for.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let (fallback, named) = match self {
            Self::Default => (Some(DEFAULT_GROUP), None),
            Self::These(groups) => (None, Some(groups.iter().map(|group| &**group))),
        };
        fallback.into_iter().chain(named.into_iter().flatten())
    }
}

impl RequestedGroups {
    /// The names, where any are given.
    #[must_use]
    pub fn named(&self) -> Option<Arc<[Box<str>]>> {
        match self {
            Self::Default => None,
            Self::These(groups) => Some(Arc::clone(groups)),
        }
    }
}

impl Availability {
    /// Nothing at all.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            available: Vec::new(),
            left_out: Vec::new(),
            unknown_groups: Vec::new(),
            narrowed: Vec::new(),
        }
    }
}

impl<S: Into<Box<str>>> FromIterator<S> for RequestedGroups {
    fn from_iter<I: IntoIterator<Item = S>>(groups: I) -> Self {
        Self::These(groups.into_iter().map(Into::into).collect())
    }
}

impl Guard {
    /// Looks up what a request asks for.
    pub(super) fn reach<'g>(&'g self, request: &Request<'_>) -> Result<Reach<'g>, Denial> {
        let mut reach = Reach {
            profile: self.profile(request.principal),
            every: false,
            groups: Vec::new(),
            unknown: Vec::new(),
            narrowed: Vec::new(),
        };
        for name in request.groups.names() {
            self.extend_reach(&mut reach, name);
        }
        if !reach.narrowed.is_empty() && self.requests.excess == Excess::Reject {
            let excess = reach.narrowed.join(", ");
            return Err(Denial::new(
                Code::GroupsNotGranted,
                format!("Insufficient permissions for requested tool groups: {excess}"),
            ));
        }
        if let Some(unknown) = reach.unknown.first()
            && self.requests.strict_groups
        {
            let reason = format!("there is no tool in group '{unknown}'");
            return Err(Denial::new(Code::UnknownGroup, reason));
        }
        Ok(reach)
    }

    /// The groups a client asks for: those it names, else the default groups of its principal. These are
    /// the `default_groups` of the policy, else `default` where it is granted, else every granted group.
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
        let names: Vec<&str> = match &profile.default_groups {
            Some(groups) => groups.iter().map(|group| &**group).collect(),
            None if profile.grants_group(&self.groups, DEFAULT_GROUP) => {
                if !self.requests.strict_groups || self.has_tools_in_group(DEFAULT_GROUP) {
                    return Cow::Borrowed(groups);
                }
                Vec::new()
            }
            None => self.granted_groups(principal),
        };
        // The client named none of these, so none may count as unknown or in excess of its grants.
        let usable = names.into_iter().filter(|name| {
            self.may_request(principal, name) && (*name == EVERY || self.has_tools_in_group(name))
        });
        Cow::Owned(usable.collect())
    }

    /// The state in which the sessions of a principal start unless its client names another.
    #[must_use]
    pub fn initial_state(&self, principal: &str) -> Option<&Arc<str>> {
        self.profile(principal).initial_state.as_ref()
    }

    /// Every group a principal is granted by name; only `*` where it may ask for every group.
    #[must_use]
    pub fn granted_groups(&self, principal: &str) -> Vec<&str> {
        let profile = self.profile(principal);
        if profile.every_group && !profile.denies_every_group {
            return vec![EVERY];
        }
        let named = profile.groups.iter().map(|id| self.groups.name(*id));
        named
            .filter(|name| profile.grants_group(&self.groups, name))
            .collect()
    }

    fn extend_reach(&self, reach: &mut Reach<'_>, name: &str) {
        let profile = reach.profile;
        if name == EVERY {
            if profile.every_group && !profile.denies_every_group {
                reach.every = true;
            } else {
                reach.narrowed.push(name.to_owned());
                reach.groups.extend(&profile.groups);
            }
            return;
        }
        let known = self.groups.id(name);
        if known
            .and_then(|id| self.groups.get(id))
            .is_none_or(|it| it.tools == 0)
        {
            reach.unknown.push(name.to_owned());
        }
        if !profile.grants_group(&self.groups, name) {
            reach.narrowed.push(name.to_owned());
        } else if let Some(id) = known {
            reach.groups.push(id);
        }
    }

    /// Which tools a request may reach, and why not the others. What is available here passes every
    /// gate up to permissions, and nothing else does.
    ///
    /// # Errors
    /// The request asks for groups it may not ask for.
    pub fn available(&self, request: &Request<'_>) -> Result<Availability, Denial> {
        let reach = self.reach(request)?;
        let mut activity = Activity::new(&self.groups, request.circumstances);
        let mut available = Vec::new();
        let mut left_out = Vec::new();
        for tool in self.present() {
            let tool = self.tools.for_variant(tool, request.variant);
            match self.admits(tool, request, &reach, &mut activity) {
                Ok(()) => available.push(Arc::clone(&tool.name)),
                Err(denial) => left_out.push(LeftOut {
                    tool: Arc::clone(&tool.name),
                    code: denial.code,
                    reason: denial.reason,
                }),
            }
        }
        Ok(Availability {
            available,
            left_out,
            unknown_groups: reach.unknown,
            narrowed: reach.narrowed,
        })
    }

    /// Every group, and what a principal may do with it.
    #[must_use]
    pub fn groups(&self, principal: &str, circumstances: &Circumstances) -> Vec<GroupSummary> {
        let profile = self.profile(principal);
        let mut activity = Activity::new(&self.groups, circumstances);
        let mut summaries: Vec<GroupSummary> = self
            .groups
            .iter()
            .map(|(id, group)| GroupSummary {
                name: group.name.to_string(),
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

    fn tools_reached_by(&self, group: GroupId) -> impl Iterator<Item = &Arc<Tool>> {
        self.present()
            .filter(move |tool| tool.reachable_by.binary_search(&group).is_ok())
    }
}
