//! Advice to callers and remedies for operators after a denial, as sentences.

use std::time::Duration;

use crate::decision::{Denial, ReasonCode};

/// The maximum number of items of one kind that a sentence lists.
const MAX_LISTED: usize = 5;

impl Denial {
    /// What the caller should do next, as a plain sentence that a model can follow.
    #[must_use]
    pub fn advice(&self) -> String {
        let sentence = match self.code {
            ReasonCode::Allowed => "Make the call.",
            ReasonCode::UnknownTool => {
                "List the tools again, and call one of those by its exact name."
            }
            ReasonCode::NotOffered => {
                "List the available items again, and ask for one of them by its exact name."
            }
            ReasonCode::MalformedName => {
                "Call the tool by its exact name, without white space around it."
            }
            ReasonCode::Quarantined => {
                "Do not call it again. Go on without this tool, or ask a person to review and approve it."
            }
            ReasonCode::GroupsNotGranted => {
                "Ask only for groups that are granted to you, or name no groups. A person can grant more."
            }
            ReasonCode::GroupsBeyondSession => {
                "Ask only for groups that the session was opened with, or open another session."
            }
            ReasonCode::UnknownGroup => "Ask only for groups that exist, or name no groups.",
            ReasonCode::FilteredByGroup => {
                "Call a tool that is listed, or request one of the tool's groups if you were granted it."
            }
            ReasonCode::GroupOff => {
                "The tool is off under the present circumstances. Go on without it, or try again later."
            }
            ReasonCode::DeniedByRule => {
                "Do not call it again: a rule forbids it. Go on without this tool, or ask a person."
            }
            ReasonCode::FilteredByState => return self.advice_on_state(),
            ReasonCode::StateUsed => {
                "Do not call it again: what was approved has been used. Ask for another approval first."
            }
            ReasonCode::MissingPermissions => {
                "Do not call it again. Ask a person to do this step, or to grant the missing permissions."
            }
            ReasonCode::RateLimited | ReasonCode::RateCapacity => return self.advice_on_waiting(),
            ReasonCode::InvalidInput | ReasonCode::NumberOutOfRange | ReasonCode::KeyCase => {
                return self.advice_on_input();
            }
            ReasonCode::ApprovalMismatch => {
                "Call it with the arguments that were approved, or ask for approval of these."
            }
            ReasonCode::BrokenSchema => {
                "Do not call it again: the tool's own schema is broken, so no arguments can pass. Ask a person."
            }
            ReasonCode::TooManySessions => "Go on in a session that is open, or try again later.",
            ReasonCode::AuditUnavailable => {
                "The call was not made, because it cannot be recorded now. Try again later."
            }
        };
        sentence.to_owned()
    }

    /// Like [`Self::advice`], for a denied use of a feature that is not a tool.
    #[must_use]
    pub fn feature_advice(&self) -> String {
        let sentence = match self.code {
            ReasonCode::Quarantined => {
                "Go on without it, or ask a person to review and approve it."
            }
            ReasonCode::FilteredByGroup => {
                "Use a listed item, or ask for one of its groups if you were granted it."
            }
            ReasonCode::GroupOff => {
                "It is off under the present circumstances. Go on without it, or try again later."
            }
            ReasonCode::DeniedByRule => {
                "Do not ask for it again: a rule forbids it. Go on without it, or ask a person."
            }
            ReasonCode::MissingPermissions => {
                "Do not ask for it again. Ask a person to grant the missing permissions."
            }
            ReasonCode::Allowed
            | ReasonCode::UnknownTool
            | ReasonCode::NotOffered
            | ReasonCode::MalformedName
            | ReasonCode::GroupsNotGranted
            | ReasonCode::GroupsBeyondSession
            | ReasonCode::UnknownGroup
            | ReasonCode::FilteredByState
            | ReasonCode::StateUsed
            | ReasonCode::RateLimited
            | ReasonCode::RateCapacity
            | ReasonCode::InvalidInput
            | ReasonCode::NumberOutOfRange
            | ReasonCode::KeyCase
            | ReasonCode::ApprovalMismatch
            | ReasonCode::BrokenSchema
            | ReasonCode::TooManySessions
            | ReasonCode::AuditUnavailable => return self.advice(),
        };
        sentence.to_owned()
    }

    /// What the operator can change so that the call passes.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self.code {
            ReasonCode::Allowed => "Nothing needs to change.",
            ReasonCode::UnknownTool => {
                "Check the name and that the tool's server is up and lists it; under `unlisted: hide`, name \
                 the tool in the policy."
            }
            ReasonCode::NotOffered => {
                "Check the name and that a server that offers it is up; under `unlisted: hide`, name it in \
                 the policy."
            }
            ReasonCode::MalformedName => "Correct the name of the tool in the client.",
            ReasonCode::Quarantined => {
                "Review the change and approve it, or take the tool out of `quarantine` in the policy."
            }
            ReasonCode::GroupsNotGranted => {
                "Grant the groups to the principal or to one of its roles, or let the client ask for fewer."
            }
            ReasonCode::GroupsBeyondSession => {
                "Let the client ask for all groups it needs when it opens its session."
            }
            ReasonCode::UnknownGroup => {
                "Put a tool into the group, correct its name in the request, or set `strict_groups: false`."
            }
            ReasonCode::FilteredByGroup => {
                "Let the client request one of the tool's groups, or put the tool into a group it asks for."
            }
            ReasonCode::GroupOff => "Wait until the group's condition holds, or change its `when`.",
            ReasonCode::DeniedByRule => {
                "Take the tool or its group out of the `deny` rules of the principal and its roles."
            }
            ReasonCode::FilteredByState => {
                "Move the session on with a tool that leads to a state named here, or add the session's \
                 state to the tool's `available_in_states`."
            }
            ReasonCode::StateUsed => {
                "Enter the state again with a tool that leads to it, or close the session."
            }
            ReasonCode::MissingPermissions => {
                "Grant the missing permissions to the principal or to one of its roles."
            }
            ReasonCode::RateLimited => "Wait, or raise the tool's `rate_limit`.",
            ReasonCode::RateCapacity => "Wait until other principals are idle.",
            ReasonCode::InvalidInput | ReasonCode::NumberOutOfRange | ReasonCode::KeyCase => {
                "Correct the arguments."
            }
            ReasonCode::ApprovalMismatch => {
                "Call with the values that were approved, or have these approved."
            }
            ReasonCode::BrokenSchema => "Correct the tool's schema in the policy or at its server.",
            ReasonCode::TooManySessions => "Close sessions, or shorten `sessions.idle`.",
            ReasonCode::AuditUnavailable => {
                "Check the audit log: its disk, its file and its permissions."
            }
        }
    }

    fn advice_on_state(&self) -> String {
        match self.next_tools.as_slice() {
            [] => "Take another step of the workflow first, then list the tools again.".to_owned(),
            leads => {
                let names: Vec<String> = leads.iter().map(|it| format!("`{it}`")).collect();
                format!(
                    "Call {} successfully first, then call this tool again.",
                    names.join(" or ")
                )
            }
        }
    }

    fn advice_on_waiting(&self) -> String {
        let Some(wait) = self.retry_after else {
            return "Wait before you call it again.".to_owned();
        };
        let seconds = whole_seconds(wait);
        let unit = if seconds == 1 { "second" } else { "seconds" };
        format!("Wait {seconds} {unit}, then make the same call again.")
    }

    fn advice_on_input(&self) -> String {
        let places = self.faults.iter().take(MAX_LISTED).map(|fault| {
            let place = fault.pointer.as_str();
            let place = if place.is_empty() { "arguments" } else { place };
            format!("{place}: {}", fault.message)
        });
        let places: Vec<String> = places.collect();
        let more = match self.faults.len().saturating_sub(MAX_LISTED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        format!(
            "Correct the arguments and call again ({}{more}).",
            places.join("; ")
        )
    }
}

/// Whole seconds, rounded up: a shorter wait would be too early.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs()
        .saturating_add(u64::from(wait.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::ValueFault;
    use toolwarden_model::json::Pointer;

    fn denial(code: ReasonCode) -> Denial {
        Denial::new(code, "reason".to_owned())
    }

    #[test]
    fn every_code_has_advice_and_a_remedy_in_whole_sentences() {
        for code in ReasonCode::ALL {
            let denial = denial(*code);
            for text in [denial.advice(), denial.remedy().to_owned()] {
                assert!(
                    text.ends_with('.') && !text.contains("  "),
                    "{code}: {text}"
                );
            }
        }
    }

    #[test]
    fn advice_says_what_is_known_of_the_case() {
        let mut wait = denial(ReasonCode::RateLimited);
        wait.retry_after = Some(Duration::from_millis(2_001));
        assert_eq!(
            wait.advice(),
            "Wait 3 seconds, then make the same call again."
        );
        let mut state = denial(ReasonCode::FilteredByState);
        state.next_tools = vec!["query".into(), "search".into()];
        assert_eq!(
            state.advice(),
            "Call `query` or `search` successfully first, then call this tool again."
        );
        let mut input = denial(ReasonCode::InvalidInput);
        input.faults = (0..7)
            .map(|at| ValueFault {
                pointer: Pointer::of([format!("f{at}").as_str()]),
                message: "too long".to_owned(),
                masked: String::new(),
            })
            .collect();
        assert_eq!(
            input.advice(),
            "Correct the arguments and call again (/f0: too long; /f1: too long; /f2: too long; \
             /f3: too long; /f4: too long; and 2 more)."
        );
    }
}
