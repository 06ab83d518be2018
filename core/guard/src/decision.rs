use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_model::GroupName;
use toolwarden_model::json::Pointer;

/// A step of the guard, in the order of evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gate {
    /// The tool exists.
    Known,
    /// The tool is not quarantined.
    Quarantine,
    /// The tool is in a group that is requested, granted and active.
    Group,
    /// The tool is available in the session's state.
    State,
    /// The principal holds the permissions that the tool requires.
    Permission,
    /// The principal has not exceeded the rate limit.
    Rate,
    /// The arguments satisfy the schema.
    Input,
    /// The decision can be recorded.
    Audit,
}

/// The reason code of a decision. The words are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReasonCode {
    /// The call passed every gate.
    Allowed,
    /// The tool does not exist.
    UnknownTool,
    /// No server offers the resource, prompt, skill or method, or the policy hides it.
    NotOffered,
    /// The name of the tool has white space around it.
    MalformedName,
    /// The tool is quarantined.
    Quarantined,
    /// The request names groups that are not granted.
    GroupsNotGranted,
    /// The request names groups that the session was not opened with.
    GroupsBeyondSession,
    /// The request names a group that has no tools, and the policy is strict.
    UnknownGroup,
    /// The tool is not in any requested group.
    FilteredByGroup,
    /// The tool's groups are off under the present circumstances.
    GroupOff,
    /// A deny rule names the tool or one of its groups.
    DeniedByRule,
    /// The tool is not available in the session's state.
    FilteredByState,
    /// The session's state permits a single call, and one was already permitted.
    StateUsed,
    /// The principal lacks permissions.
    MissingPermissions,
    /// The rate limit is reached.
    RateLimited,
    /// There is no room to count the calls of another principal.
    RateCapacity,
    /// The arguments do not satisfy the schema.
    InvalidInput,
    /// A number in the arguments is larger than a double can hold.
    NumberOutOfRange,
    /// A key in the arguments differs from a declared one only in case.
    KeyCase,
    /// The arguments differ from those the session's state was entered with.
    ApprovalMismatch,
    /// The tool's schema cannot be used.
    BrokenSchema,
    /// There are too many sessions to open another one.
    TooManySessions,
    /// The decision cannot be recorded.
    AuditUnavailable,
}

impl Gate {
    /// Every gate, in order.
    pub const ALL: &[Self] = &[
        Self::Known,
        Self::Quarantine,
        Self::Group,
        Self::State,
        Self::Permission,
        Self::Rate,
        Self::Input,
        Self::Audit,
    ];

    /// The word for the gate.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::Quarantine => "quarantine",
            Self::Group => "group",
            Self::State => "state",
            Self::Permission => "permission",
            Self::Rate => "rate",
            Self::Input => "input",
            Self::Audit => "audit",
        }
    }
}

impl ReasonCode {
    /// Every code.
    pub const ALL: &[Self] = &[
        Self::Allowed,
        Self::UnknownTool,
        Self::NotOffered,
        Self::MalformedName,
        Self::Quarantined,
        Self::GroupsNotGranted,
        Self::GroupsBeyondSession,
        Self::UnknownGroup,
        Self::FilteredByGroup,
        Self::GroupOff,
        Self::DeniedByRule,
        Self::FilteredByState,
        Self::StateUsed,
        Self::MissingPermissions,
        Self::RateLimited,
        Self::RateCapacity,
        Self::InvalidInput,
        Self::NumberOutOfRange,
        Self::KeyCase,
        Self::ApprovalMismatch,
        Self::BrokenSchema,
        Self::TooManySessions,
        Self::AuditUnavailable,
    ];

    /// The word for the code.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::UnknownTool => "unknown_tool",
            Self::NotOffered => "not_offered",
            Self::MalformedName => "malformed_name",
            Self::Quarantined => "quarantined",
            Self::GroupsNotGranted => "groups_not_granted",
            Self::GroupsBeyondSession => "groups_beyond_session",
            Self::UnknownGroup => "unknown_group",
            Self::FilteredByGroup => "filtered_by_group",
            Self::GroupOff => "group_off",
            Self::DeniedByRule => "denied_by_rule",
            Self::FilteredByState => "filtered_by_state",
            Self::StateUsed => "state_used",
            Self::MissingPermissions => "missing_permissions",
            Self::RateLimited => "rate_limited",
            Self::RateCapacity => "rate_capacity",
            Self::InvalidInput => "invalid_input",
            Self::NumberOutOfRange => "number_out_of_range",
            Self::KeyCase => "key_case",
            Self::ApprovalMismatch => "approval_mismatch",
            Self::BrokenSchema => "broken_schema",
            Self::TooManySessions => "too_many_sessions",
            Self::AuditUnavailable => "audit_unavailable",
        }
    }

    /// The gate that decides with this code; `None` for a call that passed all gates.
    #[must_use]
    pub const fn gate(self) -> Option<Gate> {
        Some(match self {
            Self::Allowed => return None,
            Self::UnknownTool | Self::NotOffered | Self::MalformedName => Gate::Known,
            Self::Quarantined => Gate::Quarantine,
            Self::GroupsNotGranted
            | Self::GroupsBeyondSession
            | Self::UnknownGroup
            | Self::FilteredByGroup
            | Self::GroupOff
            | Self::DeniedByRule => Gate::Group,
            Self::FilteredByState | Self::StateUsed | Self::TooManySessions => Gate::State,
            Self::MissingPermissions => Gate::Permission,
            Self::RateLimited | Self::RateCapacity => Gate::Rate,
            Self::InvalidInput
            | Self::NumberOutOfRange
            | Self::KeyCase
            | Self::ApprovalMismatch
            | Self::BrokenSchema => Gate::Input,
            Self::AuditUnavailable => Gate::Audit,
        })
    }
}

/// The reason of a call that passed every gate.
pub const ALL_PASSED: &str = "all checks passed";

/// A denied call, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a denial has to be recorded"]
pub struct Denial {
    /// The reason code.
    pub code: ReasonCode,
    /// The reason as a sentence for the caller.
    pub reason: String,
    /// The faults in the arguments; the reason quotes the first one.
    pub faults: Vec<ValueFault>,
    /// How long to wait before the next attempt.
    pub retry_after: Option<Duration>,
    /// Tools that lead to a state in which the tool is available and that the caller may call now.
    pub next_tools: Vec<Arc<str>>,
}

/// One fault in a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueFault {
    /// The invalid part.
    pub pointer: Pointer,
    /// The validator's message; it may quote the value.
    pub message: String,
    /// The message without any value.
    pub masked: String,
}

/// The decision on a call, as it is reported to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the call may be made.
    pub allowed: bool,
    /// The reason code.
    pub code: ReasonCode,
    /// The gate that denied the call.
    pub step: Option<Gate>,
    /// The reason as a sentence.
    pub reason: Cow<'static, str>,
    /// The invalid parts of the arguments.
    pub pointers: Vec<Pointer>,
    /// How long to wait before the next attempt.
    pub retry_after: Option<Duration>,
    /// How long the decision took.
    pub latency: Duration,
}

impl ValueFault {
    /// A fault of a whole value, with a message that does not quote it.
    #[must_use]
    pub fn for_whole_value(message: String) -> Self {
        Self {
            pointer: Pointer::root(),
            masked: message.clone(),
            message,
        }
    }
}

impl Denial {
    pub(crate) fn new(code: ReasonCode, reason: String) -> Self {
        Self {
            code,
            reason,
            faults: Vec::new(),
            retry_after: None,
            next_tools: Vec::new(),
        }
    }

    /// The denial of a call whose decision cannot be recorded.
    pub fn audit_unavailable(cause: &dyn fmt::Display) -> Self {
        let reason = format!("the decision cannot be recorded: {cause}");
        Self::new(ReasonCode::AuditUnavailable, reason)
    }

    /// The denial of arguments that could not be read.
    pub fn invalid_input(message: String) -> Self {
        let mut denial = Self::new(ReasonCode::InvalidInput, format!("{INPUT_FAILED}{message}"));
        denial.faults.push(ValueFault::for_whole_value(message));
        denial
    }

    /// The denial of groups that a session was not opened with.
    pub fn groups_beyond_session(groups: &[&GroupName]) -> Self {
        let names: Vec<&str> = groups.iter().map(|it| it.as_str()).collect();
        let reason = format!(
            "the session was not opened with the requested tool groups: {}",
            names.join(", ")
        );
        Self::new(ReasonCode::GroupsBeyondSession, reason)
    }

    /// The denial of a session beyond the maximum.
    pub fn too_many_sessions() -> Self {
        let reason = "there are too many sessions to open one more".to_owned();
        Self::new(ReasonCode::TooManySessions, reason)
    }

    /// The reason without values from the arguments.
    #[must_use]
    pub fn masked_reason(&self) -> String {
        match self.faults.first() {
            Some(fault) => format!("{INPUT_FAILED}{}", fault.masked),
            None => self.reason.clone(),
        }
    }

    /// The gate that denied the call.
    #[must_use]
    pub const fn gate(&self) -> Option<Gate> {
        self.code.gate()
    }
}

/// The prefix of the reason for invalid input.
pub(crate) const INPUT_FAILED: &str = "input validation failed: ";

impl Decision {
    /// The decision on a call that passed every gate.
    #[must_use]
    pub fn allow(latency: Duration) -> Self {
        Self {
            allowed: true,
            code: ReasonCode::Allowed,
            step: None,
            reason: Cow::Borrowed(ALL_PASSED),
            pointers: Vec::new(),
            retry_after: None,
            latency,
        }
    }

    /// The decision on a denied call.
    #[must_use]
    pub fn deny(denial: &Denial, latency: Duration) -> Self {
        Self {
            allowed: false,
            code: denial.code,
            step: denial.gate(),
            reason: Cow::Owned(denial.reason.clone()),
            pointers: denial.faults.iter().map(|it| it.pointer.clone()).collect(),
            retry_after: denial.retry_after,
            latency,
        }
    }

    /// The decision as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "allowed": self.allowed,
            "code": self.code.as_str(),
            "step": self.step.map(Gate::as_str),
            "reason": self.reason,
            "pointers": self.pointers.iter().map(Pointer::as_str).collect::<Vec<_>>(),
            "retry_after": self.retry_after.map(|it| it.as_secs_f64()),
            "latency_ms": milliseconds(self.latency),
        })
    }
}

/// Milliseconds with three decimals.
#[must_use]
pub fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Denial {}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
