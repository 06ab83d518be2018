use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolwarden_model::{GroupName, StateName};

use super::GuardedTool;
use super::gates::{check_input, rate_denial};
use super::request::RequestScope;
use super::tool_identity::CallDestination;
use crate::decision::{Denial, ValueFault};
use crate::input::SchemaCheck;
use crate::policy::{OutputMode, ToolLimits};
use crate::window::Limit;

/// A call that passed every gate up to permissions. The rate gate comes next.
#[derive(Debug)]
#[must_use = "an admitted call is not yet permitted"]
pub struct AdmittedCall<'g> {
    tool: Cow<'g, Arc<GuardedTool>>,
    unknown_groups: Vec<GroupName>,
    dropped_groups: Vec<GroupName>,
}

/// A call that passed the rate gate. The input gate comes next.
#[derive(Debug)]
#[must_use = "a metered call is not yet permitted"]
pub struct MeteredCall<'g> {
    tool: Cow<'g, Arc<GuardedTool>>,
}

/// The proof that one call may be made. Only the gates create one, and the call uses it up.
#[derive(Debug)]
#[must_use = "a permit has to be settled with the outcome of the call"]
pub struct Permit {
    pub(super) tool: Arc<GuardedTool>,
}

/// Why the rate gate denies a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitExceeded {
    /// A limit is reached.
    Limit {
        /// The limit.
        limit: Limit,
        /// How long to wait before the next attempt.
        retry_after: Duration,
    },
    /// No room is left for another counter.
    Capacity {
        /// How long to wait before the next attempt.
        retry_after: Duration,
    },
}

impl<'g> AdmittedCall<'g> {
    pub(super) fn new(tool: Cow<'g, Arc<GuardedTool>>, reach: RequestScope<'_>) -> Self {
        Self {
            tool,
            unknown_groups: reach.unknown,
            dropped_groups: reach.dropped_groups,
        }
    }

    /// The limits that the call counts against.
    #[must_use]
    pub fn limits(&self) -> ToolLimits {
        self.tool.limits
    }

    /// The name under which the call is counted.
    #[must_use]
    pub fn counted_as(&self) -> &str {
        &self.tool.counted_as
    }

    /// Requested groups that have no tools.
    #[must_use]
    pub fn unknown_groups(&self) -> &[GroupName] {
        &self.unknown_groups
    }

    /// Requested groups that are not granted and were left out.
    #[must_use]
    pub fn dropped_groups(&self) -> &[GroupName] {
        &self.dropped_groups
    }

    /// Applies the answer of the counters.
    ///
    /// # Errors
    /// A limit is reached.
    pub fn meter(self, answer: Result<(), LimitExceeded>) -> Result<MeteredCall<'g>, Denial> {
        match answer {
            Ok(()) => Ok(MeteredCall { tool: self.tool }),
            Err(overrun) => Err(rate_denial(&self.tool, &overrun)),
        }
    }
}

impl MeteredCall<'_> {
    /// Validates the arguments against the tool's schema.
    ///
    /// # Errors
    /// They do not satisfy it, or that cannot be determined.
    pub fn validate(self, arguments: &Value) -> Result<Permit, Denial> {
        check_input(&self.tool, arguments)?;
        Ok(Permit {
            tool: self.tool.into_owned(),
        })
    }
}

impl Permit {
    /// The tool that may be called.
    #[must_use]
    pub fn tool(&self) -> &Arc<str> {
        &self.tool.name
    }

    /// The server that the call goes to, and what the server calls the tool; `None` if no server behind a gateway
    /// has the tool.
    #[must_use]
    pub fn destination(&self) -> Option<&CallDestination> {
        self.tool.destination.as_ref()
    }

    /// The state a successful call leads to.
    #[must_use]
    pub fn next_state(&self) -> Option<&StateName> {
        self.tool.next_state.as_ref()
    }

    /// What happens to a result that does not satisfy the output schema.
    #[must_use]
    pub fn output_mode(&self) -> OutputMode {
        self.tool.output_mode
    }

    /// Whether results of the tool are validated against a schema.
    #[must_use]
    pub fn checks_output(&self) -> bool {
        self.tool.output_mode != OutputMode::Off
            && !matches!(*self.tool.output, SchemaCheck::Nothing)
    }

    /// The faults of a result.
    #[must_use]
    pub fn output_faults(&self, result: &Value) -> Vec<ValueFault> {
        if !self.checks_output() {
            return Vec::new();
        }
        match &*self.tool.output {
            SchemaCheck::Broken(broken) => vec![ValueFault::for_whole_value(broken.to_string())],
            SchemaCheck::Nothing | SchemaCheck::Schema { .. } => self.tool.output.faults(result),
        }
    }
}
