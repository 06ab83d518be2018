//! Approvals: single-use states, and arguments that later calls must repeat.

use std::sync::Arc;

use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_model::{Fingerprint, StateName};

use super::gates::GateResult;
use super::request::{Availability, UnavailableTool};
use super::{Guard, GuardedTool, Permit};
use crate::decision::{Denial, Gate, INPUT_FAILED, ReasonCode, ValueFault};
use crate::input::{case_variants_of, deny_faults};

/// The values of bound arguments in the call that entered a state, as digests: a session stores no values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoundValues(Arc<[(Pointer, Fingerprint)]>);

impl BoundValues {
    /// Whether no value is bound.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The places whose value is missing or different. Equal numbers are equal in any notation.
    fn differences(&self, arguments: &Value) -> Vec<Pointer> {
        let differs = |(pointer, bound): &&(Pointer, Fingerprint)| {
            pointer.find(arguments).map(Fingerprint::of) != Some(*bound)
        };
        let places = self.0.iter().filter(differs);
        places.map(|(pointer, _)| pointer.clone()).collect()
    }
}

impl GuardedTool {
    /// Whether a call of the tool uses the approval that a state stands for. It does if the tool names the
    /// state.
    fn uses_approval(&self, state: &StateName) -> bool {
        self.uses_state && self.states.is_some() && self.available_in(state)
    }

    fn used_up(&self, state: &StateName) -> Denial {
        let name = &self.name;
        let reason = format!(
            "state '{state}' allows one call, and a call was permitted in it before; tool '{name}' needs the \
             state to be entered again"
        );
        Denial::new(ReasonCode::StateUsed, reason)
    }

    /// Denies a call without the arguments that the tool binds: it would approve nothing.
    pub(super) fn check_bound_arguments(&self, arguments: &Value) -> Result<(), Denial> {
        reject_case_variants(&self.binds, arguments)?;
        let missing = self.binds.iter().filter(|it| it.find(arguments).is_none());
        let faults: Vec<ValueFault> = missing
            .map(|pointer| {
                let message = format!("{pointer} is missing, and later calls have to repeat it");
                ValueFault {
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
        let mut denial = Denial::new(ReasonCode::InvalidInput, reason);
        denial.faults = faults;
        Err(denial)
    }

    /// Denies arguments that differ from those the state was entered with.
    fn check_bound_values(
        &self,
        state: &StateName,
        bound: &BoundValues,
        arguments: &Value,
    ) -> Result<(), Denial> {
        if bound.is_empty() || !self.uses_approval(state) {
            return Ok(());
        }
        reject_case_variants(bound.0.iter().map(|(place, _)| place), arguments)?;
        let places = bound.differences(arguments);
        if places.is_empty() {
            return Ok(());
        }
        let named: Vec<&str> = places.iter().map(Pointer::as_str).collect();
        let reason = format!(
            "the arguments differ from those that state '{state}' was entered with: {}",
            named.join(", ")
        );
        let mut denial = Denial::new(ReasonCode::ApprovalMismatch, reason);
        denial.faults = places
            .into_iter()
            .map(|pointer| {
                let message = format!("{pointer} is not what was approved");
                ValueFault {
                    pointer,
                    masked: message.clone(),
                    message,
                }
            })
            .collect();
        Err(denial)
    }
}

/// Denies keys that a case-insensitive reader takes for a bound one: it would act on a value that was not
/// approved.
fn reject_case_variants<'p>(
    places: impl IntoIterator<Item = &'p Pointer>,
    arguments: &Value,
) -> Result<(), Denial> {
    let places = places.into_iter();
    let faults = places.flat_map(|place| case_variants_of(place, arguments));
    deny_faults(ReasonCode::KeyCase, faults.collect())
}

impl Permit {
    /// The values that calls in the next state must repeat.
    #[must_use]
    pub fn bound_values(&self, arguments: &Value) -> BoundValues {
        let found = self.tool.binds.iter().filter_map(|pointer| {
            let value = pointer.find(arguments)?;
            Some((pointer.clone(), Fingerprint::of(value)))
        });
        BoundValues(found.collect())
    }

    /// Compares the arguments with those the session's state was entered with.
    ///
    /// # Errors
    /// The tool uses the approval, and a bound value is missing or different.
    pub fn check_approval(
        self,
        state: &StateName,
        bound: &BoundValues,
        arguments: &Value,
    ) -> Result<Self, Denial> {
        self.tool.check_bound_values(state, bound, arguments)?;
        Ok(self)
    }
}

impl Guard {
    /// Whether one call of a tool uses up a state.
    #[must_use]
    pub fn is_single_use(&self, tool: &str, state: &StateName) -> bool {
        self.single_use.contains(state) && self.tool(tool).is_some_and(|it| it.uses_approval(state))
    }

    /// Whether the policy has single-use states.
    #[must_use]
    pub fn has_single_use(&self) -> bool {
        !self.single_use.is_empty()
    }

    /// The denial of another call of a tool in a state that is used up.
    pub fn used_up(&self, tool: &str, state: &StateName) -> Option<Denial> {
        let known = self.tool(tool).filter(|_| self.is_single_use(tool, state));
        known.map(|it| it.used_up(state))
    }

    /// The tools that are available when the session's state is used up.
    #[must_use]
    pub fn without_used_state(&self, mut found: Availability, state: &StateName) -> Availability {
        let Availability {
            available,
            unavailable: left_out,
            ..
        } = &mut found;
        available.retain(|tool| match self.used_up(tool, state) {
            None => true,
            Some(denial) => {
                left_out.push(UnavailableTool {
                    tool: Arc::clone(tool),
                    code: denial.code,
                    reason: denial.reason,
                });
                false
            }
        });
        found
    }

    /// Corrects the explanations of the gates with the status of the approval: whether it is used up, and
    /// which values it covers.
    pub fn explain_approval(
        &self,
        steps: &mut [GateResult],
        (tool, state): (&str, &StateName),
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
                Gate::Input if passes => known.check_bound_values(state, bound, arguments).err(),
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
