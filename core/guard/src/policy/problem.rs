use thiserror::Error;
use toolwarden_model::document::{Mistake, MistakeAt};
use toolwarden_model::json::{Pointer, Position};

use super::{FeatureKind, InvalidPermission, MAX_GROUP};

/// A mistake in a policy, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{pointer}: {problem}")]
pub struct PolicyError {
    /// The place as a pointer.
    pub pointer: Pointer,
    /// The place in the text.
    pub position: Option<Position>,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong in a policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// What may be wrong in any document.
    #[error(transparent)]
    Mistake(#[from] Mistake),
    /// A group's name is too long or has too many levels.
    #[error("a group's name has at most {} bytes and {} levels", MAX_GROUP.0, MAX_GROUP.1)]
    GroupName,
    /// Roles take over each other's grants in a circle.
    #[error("role `{role}` takes over its own grants")]
    RoleCircle {
        /// A role of the circle.
        role: String,
    },
    /// A request without groups would ask for a group that is not granted.
    #[error(
        "`default_groups` names group `{group}`, which {holder} is not granted; add it to `groups`, or remove it here"
    )]
    DefaultGroup {
        /// The group.
        group: String,
        /// Who would ask for it.
        holder: String,
    },
    /// Something besides a tool is to move a workflow.
    #[error(
        "`state` is for tools only: using a {kind} does not move a workflow; remove it, or name the states the {kind} is available in with `available_in_states`"
    )]
    StateOfFeature {
        /// What the rule is for.
        kind: FeatureKind,
    },
    /// Two rules are for the same address, written in two ways.
    #[error(
        "rule `{other}` is for the same {kind}, written in another way; keep one of them, for only one would count"
    )]
    SameFeature {
        /// What the rules are for.
        kind: FeatureKind,
        /// The other rule.
        other: String,
    },
    /// A tool binds arguments and leads to no state.
    #[error(
        "`binds` needs a `state`: the values are remembered with the state that the tool leads to"
    )]
    BindsNothing,
    /// The name of a tool has white space around it.
    #[error("a tool's name has no white space or control characters around it")]
    ToolName,
    /// A permission is none.
    #[error("{0}")]
    Permission(#[from] InvalidPermission),
    /// A condition cannot be evaluated.
    #[error("{0}")]
    Condition(#[from] crate::condition::InvalidCondition),
    /// A time zone is not known.
    #[error("{0}")]
    Zone(#[from] crate::condition::UnknownZone),
    /// A schema is none.
    #[error("invalid schema: {message}")]
    Schema {
        /// The validator's words.
        message: String,
    },
    /// A definition cannot be had.
    #[error("{message}")]
    Definition {
        /// Why.
        message: String,
    },
    /// The format is of another version.
    #[error("this program reads version 1 of the policy format")]
    Version,
}

impl From<MistakeAt<Problem>> for PolicyError {
    fn from(found: MistakeAt<Problem>) -> Self {
        Self {
            pointer: found.pointer,
            position: Some(found.position),
            problem: found.mistake,
        }
    }
}
