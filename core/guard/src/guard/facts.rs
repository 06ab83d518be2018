//! What a policy says of one tool and one principal, for remedies.

use super::Guard;
use crate::policy::{EVERY, Excess, Unlisted};

/// What a policy says of a tool, as far as one principal is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFacts {
    /// The groups of the tool.
    pub groups: Vec<String>,
    /// The states it is available in; none is every state.
    pub states: Option<Vec<String>>,
    /// The first of its groups, or of the groups around them, that the principal is granted.
    pub granted_group: Option<String>,
    /// The permissions it requires that the principal does not hold.
    pub lacking: Vec<String>,
    /// Whether a deny rule covers one of those.
    pub lacking_is_denied: bool,
}

impl Guard {
    /// What the policy says of a tool, if there is one of that name.
    #[must_use]
    pub fn facts(&self, principal: &str, tool: &str) -> Option<ToolFacts> {
        let tool = self.tool(tool)?;
        let profile = self.profile(principal);
        let name = |id: &u32| self.groups.name(*id);
        let reaching = tool.groups.iter().chain(&tool.reachable_by).map(name);
        let mut granted = reaching.filter(|group| profile.grants_group(&self.groups, group));
        let lacking = || tool.required.iter().filter(|it| !profile.holds(it));
        Some(ToolFacts {
            groups: tool.groups.iter().map(name).map(str::to_owned).collect(),
            states: tool
                .states
                .as_ref()
                .map(|states| states.iter().map(ToString::to_string).collect()),
            granted_group: granted.next().map(str::to_owned),
            lacking: lacking().map(|it| it.permission.to_string()).collect(),
            lacking_is_denied: lacking().any(|it| profile.denies_permission(it)),
        })
    }

    /// The attributes of a request that conditions ask about, each with a group whose condition does.
    #[must_use]
    pub fn asked_attributes(&self) -> std::collections::BTreeMap<String, String> {
        let mut asked = std::collections::BTreeMap::new();
        for (_, group) in self.groups.iter() {
            for name in group.condition.iter().flat_map(|it| it.attributes()) {
                asked.entry(name).or_insert_with(|| group.name.to_string());
            }
        }
        asked
    }

    /// Whether the policy names a principal; others have the grants of `*`.
    #[must_use]
    pub fn names_principal(&self, principal: &str) -> bool {
        self.principals.by_name.contains_key(principal)
    }

    /// Whether the policy gives a principal default groups of its own.
    #[must_use]
    pub fn says_default_groups(&self, principal: &str) -> bool {
        self.profile(principal).default_groups.is_some()
    }

    /// Whether a principal may ask for every group.
    #[must_use]
    pub fn grants_every_group(&self, principal: &str) -> bool {
        self.may_request(principal, EVERY)
    }

    /// Whether a request for more groups than are granted is refused as a whole.
    #[must_use]
    pub fn refuses_excess(&self) -> bool {
        self.requests.excess == Excess::Reject
    }

    /// Whether tools that the policy does not name are hidden.
    #[must_use]
    pub fn hides_unlisted(&self) -> bool {
        self.unlisted == Unlisted::Hide
    }
}
