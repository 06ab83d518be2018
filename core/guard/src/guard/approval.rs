//! Approvals: states that one call uses up, and arguments that calls must repeat.

use std::sync::Arc;

use serde_json::Value;
use toolwarden_model::Fingerprint;
use toolwarden_model::json::Pointer;

use super::gates::Step;
use super::request::{Availability, LeftOut};
use super::{Guard, Permit, Tool};
use crate::decision::{Code, Denial, Fault, Gate, INPUT_FAILED};
use crate::input::{passing_for, refused};

/// The argument values that the call which led into a state was made with, as digests: a session keeps no
/// values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoundValues(Arc<[(Pointer, Fingerprint)]>);

impl BoundValues {
    /// Whether nothing is bound.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The places whose value is missing or another one. Equal numbers are equal however they are written.
    fn differences(&self, arguments: &Value) -> Vec<Pointer> {
        let differs = |(pointer, bound): &&(Pointer, Fingerprint)| {
            pointer.find(arguments).map(Fingerprint::of) != Some(*bound)
        };
        let places = self.0.iter().filter(differs);
        places.map(|(pointer, _)| pointer.clone()).collect()
    }
}

impl Tool {
    /// Whether calls of the tool use the approval that a state stands for: the tool names the state.
    fn uses(&self, state: &str) -> bool {
        self.uses_state && self.states.is_some() && self.available_in(state)
    }

    fn used_up(&self, state: &str) -> Denial {
        let name = &self.name;
        let reason = format!(
            "state '{state}' allows one call, and a call was permitted in it before; tool '{name}' needs the \
             state to be entered again"
        );
        Denial::new(Code::StateUsed, reason)
    }

    /// Refuses a call without the arguments that the tool binds: nothing would be approved by it.
    pub(super) fn carries_bound(&self, arguments: &Value) -> Result<(), Denial> {
        unmistakable(&self.binds, arguments)?;
        let missing = self.binds.iter().filter(|it| it.find(arguments).is_none());
        let faults: Vec<Fault> = missing
            .map(|pointer| {
                let message = format!("{pointer} is missing, and later calls have to repeat it");
                Fault {
                    pointer: pointer.clone(),
                    masked: message.clone(),
                    message,
                }
            })
            .collect();
        let Some(first) = faults.first() else {
            return Ok(());
        };
        let reason = format!("{INPUT_FAILED}{}", first.message);
        let mut denial = Denial::new(Code::InvalidInput, reason);
        denial.faults = faults;
        Err(denial)
    }

    /// Refuses arguments other than those the state was entered with.
    fn matches(&self, state: &str, bound: &BoundValues, arguments: &Value) -> Result<(), Denial> {
        if bound.is_empty() || !self.uses(state) {
            return Ok(());
        }
        unmistakable(bound.0.iter().map(|(place, _)| place), arguments)?;
        let places = bound.differences(arguments);
        if places.is_empty() {
            return Ok(());
        }
        let named: Vec<&str> = places.iter().map(Pointer::as_str).collect();
        let reason = format!(
            "the arguments differ from those that state '{state}' was entered with: {}",
            named.join(", ")
        );
        let mut denial = Denial::new(Code::ApprovalMismatch, reason);
        denial.faults = places
            .into_iter()
            .map(|pointer| {
                let message = format!("{pointer} is not what was approved");
                Fault {
                    pointer,
                    masked: message.clone(),
                    message,
                }
            })
            .collect();
        Err(denial)
    }
}

/// Refuses keys that a reader which ignores case takes for a bound one: it would act on a value that was not
/// approved.
fn unmistakable<'p>(
    places: impl IntoIterator<Item = &'p Pointer>,
    arguments: &Value,
) -> Result<(), Denial> {
    let places = places.into_iter();
    let faults = places.flat_map(|place| passing_for(place, arguments));
    refused(Code::KeyCase, faults.collect())
}

impl Permit {
    /// The values that calls in the next state have to repeat.
    #[must_use]
    pub fn binds(&self, arguments: &Value) -> BoundValues {
        let found = self.tool.binds.iter().filter_map(|pointer| {
            let value = pointer.find(arguments)?;
            Some((pointer.clone(), Fingerprint::of(value)))
        });
        BoundValues(found.collect())
    }

    /// Compares the arguments with those the session's state was entered with.
    ///
    /// # Errors
    /// The tool acts on the approval, and a bound value is missing or another one.
    pub fn matching(
        self,
        state: &str,
        bound: &BoundValues,
        arguments: &Value,
    ) -> Result<Self, Denial> {
        self.tool.matches(state, bound, arguments)?;
        Ok(self)
    }
}

impl Guard {
    /// Whether one call of a tool uses up a state.
    #[must_use]
    pub fn uses_up(&self, tool: &str, state: &str) -> bool {
        self.single_use.contains(state) && self.tool(tool).is_some_and(|it| it.uses(state))
    }

    /// Whether the policy has states that one call uses up.
    #[must_use]
    pub fn has_single_use(&self) -> bool {
        !self.single_use.is_empty()
    }

    /// The denial of one more call of a tool in a state that is used up.
    pub fn used_up(&self, tool: &str, state: &str) -> Option<Denial> {
        let known = self.tool(tool).filter(|_| self.uses_up(tool, state));
        known.map(|it| it.used_up(state))
    }

    /// What is available where the state of the session is used up.
    #[must_use]
    pub fn without_used(&self, mut found: Availability, state: &str) -> Availability {
        let Availability {
            available,
            left_out,
            ..
        } = &mut found;
        available.retain(|tool| match self.used_up(tool, state) {
            None => true,
            Some(denial) => {
                left_out.push(LeftOut {
                    tool: Arc::clone(tool),
                    code: denial.code,
                    reason: denial.reason,
                });
                false
            }
        });
        found
    }

    /// Corrects what gates say about a call by what is known of the approval: whether it is used up, and
    /// which values it is for.
    pub fn explain_approval(
        &self,
        steps: &mut [Step],
        (tool, state): (&str, &str),
        used: bool,
        bound: &BoundValues,
        arguments: &Value,
    ) {
        let Some(known) = self.tool(tool) else {
            return;
        };
        for step in steps {
            let passes = matches!(step.outcome, Some(Ok(_)));
            let refused = match step.gate {
                Gate::State if passes && used => self.used_up(tool, state),
                Gate::Input if passes => known.matches(state, bound, arguments).err(),
                Gate::Known
                | Gate::Quarantine
                | Gate::Group
                | Gate::State
                | Gate::Permission
                | Gate::Rate
                | Gate::Input
                | Gate::Audit => None,
            };
            if let Some(denial) = refused {
                step.outcome = Some(Err(denial));
            }
        }
    }
}
