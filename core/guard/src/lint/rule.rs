use std::fmt;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LintSeverity {
    /// It is often meant so.
    Note,
    /// It is rarely meant so.
    Warning,
    /// It cannot be meant so.
    Error,
}

/// What a policy is looked through for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LintRule {
    /// No chain of transitions leads to a state.
    UnreachableState,
    /// A tool cannot be called by anybody.
    UnreachableTool,
    /// No tool is available in a state that can be reached.
    DeadEnd,
    /// A state that is entered is never left.
    TerminalState,
    /// A tool of every state leads back to a start.
    SilentReset,
    /// A tool of every state leads into the middle.
    StateJump,
    /// A transition with side effects can be taken several times at once.
    ReusableTransition,
    /// Nobody may request a group.
    UnrequestableGroup,
    /// Nobody holds a permission.
    UnheldPermission,
    /// Nobody is granted anything at all.
    NoPrincipals,
    /// A rule says nothing that another does not.
    ShadowedRule,
    /// A deny rule takes away nothing.
    IdleDeny,
    /// Nobody has a role.
    UnusedRole,
    /// No tool is in a group.
    UnusedGroup,
    /// No tool requires a permission that is granted.
    UnusedPermission,
    /// Principals the policy does not list may call a tool.
    OpenToAnyone,
    /// A word of a schema is nearly a keyword.
    SchemaWord,
}

/// One row of the table of rules.
struct Row {
    id: &'static str,
    severity: LintSeverity,
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
        use LintSeverity::{Error, Note, Warning};
        let (id, severity, description) = match self {
            Self::UnreachableState => (
                "unreachable-state",
                Warning,
                "no transition from a state sessions start in leads to the state",
            ),
            Self::UnreachableTool => (
                "unreachable-tool",
                Error,
                "nobody can ever call the tool, because of its states, groups or permissions",
            ),
            Self::DeadEnd => (
                "dead-end",
                Warning,
                "a session can come into the state, and no tool is available there",
            ),
            Self::TerminalState => (
                "terminal-state",
                Note,
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
                "a tool is in the group, and nobody may request it",
            ),
            Self::UnheldPermission => (
                "unheld-permission",
                Warning,
                "a tool requires the permission, and nobody holds it",
            ),
            Self::NoPrincipals => (
                "no-principals",
                Error,
                "nobody is granted anything, and tools need more than everybody has",
            ),
            Self::ShadowedRule => (
                "shadowed-rule",
                Warning,
                "another rule of the same holder makes the rule superfluous or void",
            ),
            Self::IdleDeny => (
                "idle-deny",
                Note,
                "the deny rule takes away nothing its holder is granted",
            ),
            Self::UnusedRole => ("unused-role", Note, "nobody has the role"),
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
                Note,
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

    /// How much its findings matter.
    #[must_use]
    pub const fn severity(self) -> LintSeverity {
        self.row().severity
    }

    /// What it finds, in one line.
    #[must_use]
    pub const fn description(self) -> &'static str {
        self.row().description
    }
}

impl LintSeverity {
    /// The word in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for LintRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for LintSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
