//! Decides calls: which tools a principal sees, which calls it may make, and what is recorded.
//!
//! Everything here is a value. Time, counters and circumstances are arguments; the calling crate owns the
//! clock, the windows and the log.

pub mod audit;

mod advice;
mod condition;
mod decision;
mod graph;
mod guard;
mod input;
mod lint;
mod policy;
mod positional_arguments;
mod redaction;
mod suggest_grants;
mod window;

pub use condition::{
    Condition, ConditionContext, ConditionError, ConditionInputs, InvalidCondition,
    UnknownTimeZone, parse_time_zone,
};
pub use decision::{ALL_PASSED, Decision, Denial, Gate, ReasonCode, ValueFault, milliseconds};
pub use graph::{EdgeOrigin, EdgeTarget, Graph, GraphEdge, GraphState, dot, mermaid, svg};
pub use guard::{
    AdmittedCall, Availability, BoundValues, CallDestination, DiscoveredTools, Feature, GateResult,
    GroupSummary, Guard, LimitExceeded, MeteredCall, NameRef, PermissionChange, Permit,
    ReachableFeatures, Request, RequestedGroups, ToolFacts, ToolIdentity, UnavailableTool,
    UnusableSchema, VariantTool,
};
pub use lint::{LintFinding, LintRule, lint};
pub use policy::{
    ArgumentRecording, AuditFailureMode, AuditRules, DEFAULT_GROUP, DefinitionRef, DenyRules,
    Durability, EVERY, EVERY_GROUP, ExcessGroups, FeatureKind, Grants, GroupPolicy, INITIAL_STATE,
    InvalidPermission, OutputMode, Permission, PermissionPattern, Policy, PolicyError,
    PolicyProblem, PolicyWarning, PolicyWithWarnings, PrincipalKind, PrincipalPolicy, RequestRules,
    SessionRules, StatePolicy, StateSet, ToolLimits, ToolPolicy, UnlistedTools, group_and_parents,
    is_ambiguous_address, normalize_address,
};
pub use positional_arguments::{BindError, bind_arguments};
pub use redaction::{REDACTED, Redaction};
pub use suggest_grants::{GrantSuggestion, ToolUsage, suggest_grants};
pub use toolwarden_model::document::{Document, InvalidDuration, parse_duration};
pub use window::{Limit, RetryAfter, Window};
