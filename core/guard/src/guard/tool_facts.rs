//! The parts of a policy that concern one tool and one principal, used for remedies.

use toolwarden_model::{GroupName, StateName};

use super::Guard;
use crate::policy::{EVERY_GROUP, ExcessGroups, UnlistedTools};

/// The parts of a policy that concern a tool, from the view of one principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFacts {
    /// The groups of the tool.
    pub groups: Vec<GroupName>,
    /// The states it is available in; `None` is every state.
    pub states: Option<Vec<StateName>>,
    /// The first of its groups, or of their parent groups, that the principal is granted.
    pub granted_group: Option<GroupName>,
    /// The required permissions that the principal does not hold.
    pub lacking: Vec<String>,
    /// Whether a deny rule covers one of those.
    pub lacking_is_denied: bool,
}

impl Guard {
    /// The facts about a tool, if a tool with that name exists.
    #[must_use]
    pub fn facts(&self, principal: &str, tool: &str) -> Option<ToolFacts> {
        let tool = self.tool(tool)?;
        let profile = self.profile(principal);
        let name = |id: &u32| self.groups.name(*id);
        let reaching = tool.groups.iter().chain(&tool.reachable_by).map(name);
        let mut granted = reaching.filter(|group| profile.grants_group(&self.groups, group));
        let lacking = || tool.required.iter().filter(|it| !profile.holds(it));
        Some(ToolFacts {
            groups: tool.groups.iter().map(name).cloned().collect(),
            states: tool.states.as_ref().map(|states| states.to_vec()),
            granted_group: granted.next().cloned(),
            lacking: lacking().map(|it| it.permission.to_string()).collect(),
            lacking_is_denied: lacking().any(|it| profile.denies_permission(it)),
        })
    }

    /// The request attributes that conditions read, each with a group whose condition reads it.
    #[must_use]
    pub fn condition_attributes(&self) -> std::collections::BTreeMap<String, GroupName> {
        let mut asked = std::collections::BTreeMap::new();
        for (_, group) in self.groups.iter() {
            for name in group.condition.iter().flat_map(|it| it.attributes()) {
                asked.entry(name).or_insert_with(|| group.name.clone());
            }
        }
        asked
    }

    /// Whether the policy names a principal; others have the grants of `*`.
    #[must_use]
    pub fn lists_principal(&self, principal: &str) -> bool {
        self.principals.by_name.contains_key(principal)
    }

    /// Whether the policy gives a principal its own default groups.
    #[must_use]
    pub fn has_default_groups(&self, principal: &str) -> bool {
        self.profile(principal).default_groups.is_some()
    }

    /// Whether a principal may request every group.
    #[must_use]
    pub fn grants_every_group(&self, principal: &str) -> bool {
        self.may_request(principal, &EVERY_GROUP)
    }

    /// Whether a request for more groups than are granted is denied as a whole.
    #[must_use]
    pub fn refuses_excess(&self) -> bool {
        self.requests.excess == ExcessGroups::Reject
    }

    /// Whether tools that the policy does not name are hidden.
    #[must_use]
    pub fn hides_unlisted(&self) -> bool {
        self.unlisted == UnlistedTools::Hide
    }
}
