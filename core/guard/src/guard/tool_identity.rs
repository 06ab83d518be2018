//! The identity of a tool: its server and original name. A tool keeps its rules under any exposed name.

use std::sync::Arc;

use toolwarden_model::{OwnName, ServerName};

use super::{Guard, GuardedTool, Quarantine, ToolId, ToolTable};

/// A tool of a server behind a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolIdentity {
    /// Its server.
    pub server: ServerName,
    /// Its name, prefixed with that of its server.
    pub qualified: Arc<str>,
    /// The name its server gives it.
    pub name: OwnName,
    /// Whether only its server has a tool of that name.
    pub alone: bool,
    /// Another server whose prefix the tool's own name begins with.
    pub imitates: Option<Arc<str>>,
    /// Another server whose prefix the tool's qualified name begins with.
    pub overlaps: Option<Arc<str>>,
}

/// The server that a call of a tool goes to, and what the server calls the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallDestination {
    /// The server.
    pub server: ServerName,
    /// The tool as the server names it.
    pub tool: OwnName,
}

impl ToolIdentity {
    pub(super) fn destination(&self) -> CallDestination {
        CallDestination {
            server: self.server.clone(),
            tool: self.name.clone(),
        }
    }
}

/// The policy's rules for a tool of a server.
#[derive(Debug, Default)]
pub(super) struct ToolRules {
    /// The policy entry with its rules.
    pub(super) rules: Option<ToolId>,
    /// Another policy entry for it, whose quarantine and deny rules also apply.
    also: Option<ToolId>,
    /// Why the guard cannot determine which rules apply to it.
    pub(super) refused: Option<String>,
}

impl ToolRules {
    fn refused(why: String) -> Self {
        Self {
            refused: Some(why),
            ..Self::default()
        }
    }
}

impl Guard {
    /// Whether callers make the calls of a tool themselves, according to the policy.
    #[must_use]
    pub fn is_external(&self, tool: &str) -> bool {
        self.tool(tool).is_some_and(|it| it.outside)
    }

    /// The name under which the calls of a tool are counted.
    #[must_use]
    pub fn counted_as<'n>(&'n self, tool: &'n str) -> &'n str {
        self.tool(tool).map_or(tool, |it| &it.counted_as)
    }

    /// Why the guard cannot determine which rules of the policy apply to a tool of a server.
    #[must_use]
    pub fn rule_conflict(&self, identity: &ToolIdentity) -> Option<String> {
        self.rules_of(identity).refused
    }

    pub(super) fn tool_by(&self, id: ToolId) -> Option<&Arc<GuardedTool>> {
        self.tools.list.get(id as usize)
    }

    /// Finds the rules for a tool of a server: those for its qualified name, else those for its own name.
    pub(super) fn rules_of(&self, identity: &ToolIdentity) -> ToolRules {
        let ToolIdentity {
            qualified, name, ..
        } = identity;
        let name = name.as_arc();
        let entry = |name: &str| self.tools.by_name.get(name).copied();
        let qualified_rules = entry(qualified);
        let own_rules = entry(name).filter(|_| name != qualified);
        if let (Some(_), Some(other)) = (qualified_rules, &identity.overlaps) {
            return ToolRules::refused(format!(
                "the rules of the policy for `{qualified}` may be meant for a tool of server `{other}`; rename a \
                 server, or choose another `separator`"
            ));
        }
        if let (Some(_), Some(other)) = (own_rules, &identity.imitates) {
            return ToolRules::refused(format!(
                "the rules of the policy for `{name}` are for a tool of server `{other}`"
            ));
        }
        if own_rules.is_some() && self.is_external(name) {
            return ToolRules::refused(format!(
                "the policy says of `{name}` that no server has it (`outside: true`); write rules for `{qualified}`"
            ));
        }
        match (qualified_rules, own_rules) {
            (Some(rules), also) => ToolRules {
                rules: Some(rules),
                also,
                refused: None,
            },
            (None, Some(_)) if !identity.alone => ToolRules::refused(format!(
                "the policy has rules for `{name}`, which several servers have now; write them for `{qualified}`"
            )),
            (None, rules) => ToolRules {
                rules,
                ..ToolRules::default()
            },
        }
    }
}

impl ToolTable {
    /// Shows a tool of the policy under the name that agents know.
    pub(super) fn add_shown_name(
        &mut self,
        shown: &Arc<str>,
        identity: &ToolIdentity,
        of: &ToolRules,
    ) {
        let Some(id) = of.rules else {
            if of.refused.is_some() {
                // The rules under this name belong to another tool.
                self.detach(shown);
            }
            return;
        };
        if self.by_name.get(shown) != Some(&id) {
            self.detach(shown);
        }
        let other = of.also.and_then(|id| self.list.get(id as usize));
        let quarantine = other.and_then(|it| it.quarantine.clone());
        let Some(tool) = self.list.get_mut(id as usize).map(Arc::make_mut) else {
            return;
        };
        // Another tool may have taken the name of its entry.
        tool.removed = false;
        tool.name = Arc::clone(shown);
        tool.counted_as = Arc::clone(&identity.qualified);
        tool.destination = Some(identity.destination());
        tool.also = of.also.into_iter().collect();
        tool.quarantine = tool.quarantine.take().or(quarantine);
        self.by_name.insert(Arc::clone(shown), id);
    }

    /// Quarantines a tool if the guard cannot determine which rules apply to it.
    pub(super) fn withhold(&mut self, shown: &str, refused: Option<String>) {
        if let (Some(why), Some(tool)) = (refused, self.present_mut(shown)) {
            tool.quarantine = Some(Quarantine {
                why: Some(why.into()),
            });
        }
    }

    /// Like [`Self::withhold`], for the definitions of variants.
    pub(super) fn withhold_variants(&mut self, shown: &str, refused: Option<String>) {
        let Some(why) = refused else {
            return;
        };
        let why: Arc<str> = why.into();
        for tool in self.variants.get_mut(shown).into_iter().flatten() {
            let quarantine = Quarantine {
                why: Some(Arc::clone(&why)),
            };
            Arc::make_mut(tool.1).quarantine = Some(quarantine);
        }
    }

    /// Removes a name from its entry.
    fn detach(&mut self, shown: &str) {
        let Some(id) = self.by_name.remove(shown) else {
            return;
        };
        if let Some(tool) = self.list.get_mut(id as usize)
            && *tool.name == *shown
        {
            Arc::make_mut(tool).removed = true;
        }
    }
}
