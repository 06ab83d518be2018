use std::fmt;

use toolwarden_model::Severity;

/// A lint rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LintRule {
    /// No chain of transitions leads to a state.
    UnreachableState,
    /// No principal can call a tool.
    UnreachableTool,
    /// No tool is available in a reachable state.
    DeadEnd,
    /// A session never leaves a state that it can enter.
    TerminalState,
    /// A tool that is available in every state leads back to an initial state.
    SilentReset,
    /// A tool that is available in every state leads into the middle of the workflow.
    StateJump,
    /// A transition with side effects can be taken several times concurrently.
    ReusableTransition,
    /// No principal may request a group.
    UnrequestableGroup,
    /// No principal holds a permission.
    UnheldPermission,
    /// No principal is granted anything at all.
    NoPrincipals,
    /// Another rule makes a rule redundant.
    ShadowedRule,
    /// A deny rule has no effect.
    IdleDeny,
    /// No principal has a role.
    UnusedRole,
    /// No tool is in a group.
    UnusedGroup,
    /// No tool requires a permission that is granted.
    UnusedPermission,
    /// Principals the policy does not list may call a tool.
    OpenToAnyone,
    /// A key in a schema is nearly a keyword.
    SchemaWord,
}

/// One row of the table of rules.
struct Row {
    id: &'static str,
    severity: Severity,
    description: &'static str,
}

impl LintRule {
    /// Every rule.
    pub const ALL: [Self; 17] = [
        Self::UnreachableState,
        Self::UnreachableTool,
        Self::DeadEnd,
        Self::TerminalState,
        Self::SilentReset,
        Self::StateJump,
        Self::ReusableTransition,
        Self::UnrequestableGroup,
        Self::UnheldPermission,
        Self::NoPrincipals,
        Self::ShadowedRule,
        Self::IdleDeny,
        Self::UnusedRole,
        Self::UnusedGroup,
        Self::UnusedPermission,
        Self::OpenToAnyone,
        Self::SchemaWord,
    ];

    const fn row(self) -> Row {
        use Severity::{Breaking, Info, Warning};
        let (id, severity, description) = match self {
            Self::UnreachableState => (
                "unreachable-state",
                Warning,
                "no transition from a state sessions start in leads to the state",
            ),
            Self::UnreachableTool => (
                "unreachable-tool",
                Breaking,
                "no principal can ever call the tool, because of its states, groups or permissions",
            ),
            Self::DeadEnd => (
                "dead-end",
                Warning,
                "a session can come into the state, and no tool is available there",
            ),
            Self::TerminalState => (
                "terminal-state",
                Info,
                "a session that comes into the state stays there",
            ),
            Self::SilentReset => (
                "silent-reset",
                Warning,
                "a tool available in every state leads back to the start of the workflow",
            ),
            Self::StateJump => (
                "state-jump",
                Warning,
                "a tool available in every state leads into the middle of the workflow",
            ),
            Self::ReusableTransition => (
                "reusable-transition",
                Warning,
                "calls with side effects can be permitted more than once before the state is left",
            ),
            Self::UnrequestableGroup => (
                "unrequestable-group",
                Warning,
                "a tool is in the group, and no principal may request it",
            ),
            Self::UnheldPermission => (
                "unheld-permission",
                Warning,
                "a tool requires the permission, and no principal holds it",
            ),
            Self::NoPrincipals => (
                "no-principals",
                Breaking,
                "no principal is granted anything, and tools need more than the group `default`",
            ),
            Self::ShadowedRule => (
                "shadowed-rule",
                Warning,
                "another rule of the same holder makes the rule superfluous or void",
            ),
            Self::IdleDeny => (
                "idle-deny",
                Info,
                "the deny rule takes away nothing its holder is granted",
            ),
            Self::UnusedRole => ("unused-role", Info, "no principal has the role"),
            Self::UnusedGroup => (
                "unused-group",
                Warning,
                "the group is described or granted, and no tool is in it",
            ),
            Self::UnusedPermission => (
                "unused-permission",
                Warning,
                "the permission is granted, and no tool requires it",
            ),
            Self::OpenToAnyone => (
                "open-to-anyone",
                Info,
                "principals that are not listed may call tools, and the policy does not say so",
            ),
            Self::SchemaWord => (
                "schema-word",
                Warning,
                "a word of a schema is nearly a keyword, and checks nothing",
            ),
        };
        Row {
            id,
            severity,
            description,
        }
    }

    /// The stable id.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().id
    }

    /// The severity of its findings.
    #[must_use]
    pub const fn severity(self) -> Severity {
        self.row().severity
    }

    /// What it finds, in one line.
    #[must_use]
    pub const fn description(self) -> &'static str {
        self.row().description
    }
}

impl fmt::Display for LintRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
