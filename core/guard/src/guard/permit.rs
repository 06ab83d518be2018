use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::Tool;
use super::gates::{rate_denial, valid_input};
use super::request::Reach;
use crate::decision::{Denial, Fault};
use crate::input::Check;
use crate::policy::{Limits, OutputMode};
use crate::window::Limit;

/// A call that passed every gate up to permissions. It still has to be counted.
#[derive(Debug)]
#[must_use = "an admitted call is not yet permitted"]
pub struct Admitted<'g> {
    tool: Cow<'g, Arc<Tool>>,
    unknown_groups: Vec<String>,
    narrowed: Vec<String>,
}

/// A call that was counted. Its arguments still have to be looked at.
#[derive(Debug)]
#[must_use = "a metered call is not yet permitted"]
pub struct Metered<'g> {
    tool: Cow<'g, Arc<Tool>>,
}

/// The proof that one call may be made. Only the gates make one, and it is used up by the call.
#[derive(Debug)]
#[must_use = "a permit has to be settled with the outcome of the call"]
pub struct Permit {
    pub(super) tool: Arc<Tool>,
}

/// Why counting a call refuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overrun {
    /// A limit is reached.
    Limit {
        /// The limit.
        limit: Limit,
        /// When to try again.
        retry_after: Duration,
    },
    /// There is no room for one more counter.
    Capacity {
        /// When to try again.
        retry_after: Duration,
    },
}

impl<'g> Admitted<'g> {
    pub(super) fn new(tool: Cow<'g, Arc<Tool>>, reach: Reach<'_>) -> Self {
        Self {
            tool,
            unknown_groups: reach.unknown,
            narrowed: reach.narrowed,
        }
    }

    /// The limits the call has to be counted against.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.tool.limits
    }

    /// The name under which the call has to be counted.
    #[must_use]
    pub fn counted_as(&self) -> &str {
        &self.tool.counted_as
    }

    /// Groups the request asked for that no tool is in.
    #[must_use]
    pub fn unknown_groups(&self) -> &[String] {
        &self.unknown_groups
    }

    /// Groups the request asked for that are not granted and were left away.
    #[must_use]
    pub fn narrowed(&self) -> &[String] {
        &self.narrowed
    }

    /// Goes on with what the counters say.
    ///
    /// # Errors
    /// A limit is reached.
    pub fn meter(self, answer: Result<(), Overrun>) -> Result<Metered<'g>, Denial> {
        match answer {
            Ok(()) => Ok(Metered { tool: self.tool }),
            Err(overrun) => Err(rate_denial(&self.tool, &overrun)),
        }
    }
}

impl Metered<'_> {
    /// Holds the arguments to the tool's schema.
    ///
    /// # Errors
    /// They do not satisfy it, or there is no telling.
    pub fn validate(self, arguments: &Value) -> Result<Permit, Denial> {
        valid_input(&self.tool, arguments)?;
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

    /// The state a successful call leads to.
    #[must_use]
    pub fn next_state(&self) -> Option<&Arc<str>> {
        self.tool.next_state.as_ref()
    }

    /// What happens to a result that does not satisfy the output schema.
    #[must_use]
    pub fn output_mode(&self) -> OutputMode {
        self.tool.output_mode
    }

    /// Whether results of the tool are held to a schema.
    #[must_use]
    pub fn checks_output(&self) -> bool {
        self.tool.output_mode != OutputMode::Off && !matches!(*self.tool.output, Check::Nothing)
    }

    /// What is wrong with a result.
    #[must_use]
    pub fn output_faults(&self, result: &Value) -> Vec<Fault> {
        if !self.checks_output() {
            return Vec::new();
        }
        match &*self.tool.output {
            Check::Broken(broken) => vec![Fault::of_whole(broken.to_string())],
            Check::Nothing | Check::Schema { .. } => self.tool.output.faults(result),
        }
    }
}
