//! Whose tool a tool is. A tool keeps its rules under whatever name it is shown.

use std::sync::Arc;

use super::{Guard, Quarantine, Tool, ToolId, Tools};

/// A tool of a server behind a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolIdentity {
    /// Its name with that of its server before it.
    pub qualified: Arc<str>,
    /// The name its server gives it.
    pub name: Arc<str>,
    /// Whether its server is the only one that serves a tool of that name.
    pub alone: bool,
    /// Another server whose qualified names begin like the name its server gives it.
    pub imitates: Option<Arc<str>>,
    /// Another server whose qualified names begin like its qualified name.
    pub overlaps: Option<Arc<str>>,
}

/// What a policy says of a tool of a server.
#[derive(Debug, Default)]
pub(super) struct RulesOf {
    /// The entry with its rules.
    pub(super) rules: Option<ToolId>,
    /// Another entry for it, whose quarantine and deny rules count, too.
    also: Option<ToolId>,
    /// Why it cannot be told which rules are meant for it.
    pub(super) refused: Option<String>,
}

impl RulesOf {
    fn refused(why: String) -> Self {
        Self {
            refused: Some(why),
            ..Self::default()
        }
    }
}

impl Guard {
    /// Whether callers make the calls of a tool themselves, as the policy says.
    #[must_use]
    pub fn is_outside(&self, tool: &str) -> bool {
        self.tool(tool).is_some_and(|it| it.outside)
    }

    /// The name by which calls of a tool are counted.
    #[must_use]
    pub fn counted_as<'n>(&'n self, tool: &'n str) -> &'n str {
        self.tool(tool).map_or(tool, |it| &it.counted_as)
    }

    /// Why it cannot be told which rules of the policy are meant for a tool of a server.
    #[must_use]
    pub fn rule_conflict(&self, identity: &ToolIdentity) -> Option<String> {
        self.rules_of(identity).refused
    }

    pub(super) fn tool_by(&self, id: ToolId) -> Option<&Arc<Tool>> {
        self.tools.list.get(id as usize)
    }

    /// Finds the rules for a tool of a server: those for its qualified name, else those for its own name.
    pub(super) fn rules_of(&self, identity: &ToolIdentity) -> RulesOf {
        let ToolIdentity {
            qualified, name, ..
        } = identity;
        let entry = |name: &str| self.tools.by_name.get(name).copied();
        let qualified_rules = entry(qualified);
        let own_rules = entry(name).filter(|_| name != qualified);
        if let (Some(_), Some(other)) = (qualified_rules, &identity.overlaps) {
            return RulesOf::refused(format!(
                "the rules of the policy for `{qualified}` may be meant for a tool of server `{other}`; rename a \
                 server, or choose another `separator`"
            ));
        }
        if let (Some(_), Some(other)) = (own_rules, &identity.imitates) {
            return RulesOf::refused(format!(
                "the rules of the policy for `{name}` are for a tool of server `{other}`"
            ));
        }
        if own_rules.is_some() && self.is_outside(name) {
            return RulesOf::refused(format!(
                "the policy says of `{name}` that no server has it (`outside: true`); write rules for `{qualified}`"
            ));
        }
        match (qualified_rules, own_rules) {
            (Some(rules), also) => RulesOf {
                rules: Some(rules),
                also,
                refused: None,
            },
            (None, Some(_)) if !identity.alone => RulesOf::refused(format!(
                "the policy has rules for `{name}`, which several servers have now; write them for `{qualified}`"
            )),
            (None, rules) => RulesOf {
                rules,
                ..RulesOf::default()
            },
        }
    }
}

impl Tools {
    /// Has the tool of a policy shown under the name that agents know.
    pub(super) fn show(&mut self, shown: &Arc<str>, identity: &ToolIdentity, of: &RulesOf) {
        let Some(id) = of.rules else {
            if of.refused.is_some() {
                // The rules under this name are those of another tool.
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
        tool.gone = false;
        tool.name = Arc::clone(shown);
        tool.counted_as = Arc::clone(&identity.qualified);
        tool.also = of.also.into_iter().collect();
        tool.quarantine = tool.quarantine.take().or(quarantine);
        self.by_name.insert(Arc::clone(shown), id);
    }

    /// Withholds a tool of which it cannot be told which rules are meant for it.
    pub(super) fn withhold(&mut self, shown: &str, refused: Option<String>) {
        if let (Some(why), Some(tool)) = (refused, self.present_mut(shown)) {
            tool.quarantine = Some(Quarantine {
                why: Some(why.into()),
            });
        }
    }

    /// As [`Self::withhold`], for the definitions of variants.
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

    /// Takes a name from the entry that has it.
    fn detach(&mut self, shown: &str) {
        let Some(id) = self.by_name.remove(shown) else {
            return;
        };
        if let Some(tool) = self.list.get_mut(id as usize)
            && *tool.name == *shown
        {
            Arc::make_mut(tool).gone = true;
        }
    }
}
