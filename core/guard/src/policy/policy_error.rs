use thiserror::Error;
use toolwarden_model::GroupName;
use toolwarden_model::document::{Diagnostic, DiagnosticKind};
use toolwarden_model::json::{Pointer, Position};

use super::{FeatureKind, InvalidPermission, MAX_GROUP};

/// A mistake in a policy, with its place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{pointer}: {problem}")]
pub struct PolicyError {
    /// The place as a pointer.
    pub pointer: Pointer,
    /// The place in the text.
    pub position: Option<Position>,
    /// The mistake.
    pub problem: PolicyProblem,
}

/// The kinds of mistakes in a policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyProblem {
    /// A mistake that can occur in any document.
    #[error(transparent)]
    Document(#[from] DiagnosticKind),
    /// A group's name is too long or has too many levels.
    #[error("a group's name has at most {} bytes and {} levels", MAX_GROUP.0, MAX_GROUP.1)]
    GroupName,
    /// Roles include each other in a cycle.
    #[error("role `{role}` includes itself")]
    RoleCycle {
        /// A role of the cycle.
        role: String,
    },
    /// A request without groups would ask for a group that is not granted.
    #[error(
        "`default_groups` names group `{group}`, which {holder} is not granted; add it to `groups`, or remove it here"
    )]
    DefaultGroup {
        /// The group.
        group: GroupName,
        /// The principal or role that would ask for it.
        holder: String,
    },
    /// A rule for a feature besides a tool sets a state.
    #[error(
        "`state` is for tools only: using a {kind} does not move a workflow; remove it, or name the states the {kind} is available in with `available_in_states`"
    )]
    StateOfFeature {
        /// The kind of feature.
        kind: FeatureKind,
    },
    /// Two rules have the same address in different spellings.
    #[error(
        "rule `{other}` is for the same {kind}, written in another way; keep one of them, for only one would count"
    )]
    SameFeature {
        /// The kind of feature.
        kind: FeatureKind,
        /// The other rule.
        other: String,
    },
    /// A tool binds arguments but leads to no state.
    #[error(
        "`binds` needs a `state`: the values are remembered with the state that the tool leads to"
    )]
    BindsNothing,
    /// The name of a tool has surrounding white space.
    #[error("a tool's name must not have white space or control characters around it")]
    ToolName,
    /// A permission is invalid.
    #[error("{0}")]
    Permission(#[from] InvalidPermission),
    /// A condition cannot be evaluated.
    #[error("{0}")]
    Condition(#[from] crate::condition::InvalidCondition),
    /// A time zone is not known.
    #[error("{0}")]
    Zone(#[from] crate::condition::UnknownTimeZone),
    /// A schema is invalid.
    #[error("invalid schema: {message}")]
    Schema {
        /// The validator's message.
        message: String,
    },
    /// A definition cannot be loaded.
    #[error("{message}")]
    Definition {
        /// The reason.
        message: String,
    },
    /// The policy has another format version.
    #[error("this program reads version 1 of the policy format")]
    Version,
}

impl From<Diagnostic<PolicyProblem>> for PolicyError {
    fn from(found: Diagnostic<PolicyProblem>) -> Self {
        Self {
            pointer: found.pointer,
            position: Some(found.position),
            problem: found.kind,
        }
    }
}
