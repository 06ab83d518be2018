//! Decides calls: which tools a principal sees, which calls it may make, and what is recorded.
//!
//! Everything here is a value. Time, counters and circumstances are arguments; whoever calls owns the
//! clock, the windows and the log.

pub mod audit;

mod advice;
mod bind;
mod condition;
mod decision;
mod graph;
mod guard;
mod input;
mod lint;
mod policy;
mod redact;
mod suggest;
mod window;

pub use bind::{Unbindable, bind};
pub use condition::{
    Circumstances, Condition, InvalidCondition, Prepared, Unevaluable, UnknownZone, zone,
};
pub use decision::{ALL_PASSED, Code, Decision, Denial, Fault, Gate, milliseconds};
pub use graph::{Graph, GraphEdge, GraphState, Origin, Target, dot, mermaid, svg};
pub use guard::{
    Admitted, Amendment, Availability, BoundValues, Discovered, Feature, GroupSummary, Guard,
    LeftOut, Metered, NameRef, Overrun, Permit, ReachableFeatures, Request, RequestedGroups,
    SchemaFault, Step, ToolFacts, ToolIdentity, VariantTool,
};
pub use lint::{LintFinding, LintRule, LintSeverity, lint};
pub use policy::{
    Arguments, AuditRules, DEFAULT_GROUP, DefinitionRef, Denies, Durability, EVERY, Excess,
    FeatureKind, Grants, GroupPolicy, INITIAL_STATE, InvalidPermission, Limits, OnFailure,
    OutputMode, Permission, PermissionPattern, Policy, PolicyError, PolicyWarning, PrincipalKind,
    PrincipalPolicy, Problem, ReadPolicy, RequestRules, SessionRules, StatePolicy, States,
    ToolPolicy, Unlisted, group_and_parents, is_ambiguous_address, normalized_address,
};
pub use redact::{REDACTED, Redaction};
pub use suggest::{Suggestion, Usage, suggest};
pub use toolwarden_model::document::{Document, InvalidDuration, duration};
pub use window::{Limit, RetryAfter, Window};
