//! What to do about a refusal, in sentences.

use std::time::Duration;

use crate::decision::{Code, Denial};

/// The most things of one kind that a sentence lists.
const MOST: usize = 5;

impl Denial {
    /// How whoever made the call should go on, as a plain sentence that a model can follow.
    #[must_use]
    pub fn advice(&self) -> String {
        let sentence = match self.code {
            Code::Allowed => "Make the call.",
            Code::UnknownTool => "List the tools again, and call one of those by its exact name.",
            Code::NotOffered => {
                "List what is there again, and ask for something in the list by its exact name."
            }
            Code::MalformedName => {
                "Call the tool by its exact name, without white space around it."
            }
            Code::Quarantined => {
                "Do not call it again. Go on without this tool, or ask a person to review and approve it."
            }
            Code::GroupsNotGranted => {
                "Ask only for groups that are granted to you, or name no groups. A person can grant more."
            }
            Code::GroupsBeyondSession => {
                "Ask only for groups that the session was opened with, or open another session."
            }
            Code::UnknownGroup => "Ask only for groups that exist, or name no groups.",
            Code::FilteredByGroup => {
                "Call a tool that is listed, or ask for one of the tool's groups if you were granted it."
            }
            Code::GroupOff => {
                "The tool is off under the present circumstances. Go on without it, or try again later."
            }
            Code::DeniedByRule => {
                "Do not call it again: a rule forbids it. Go on without this tool, or ask a person."
            }
            Code::FilteredByState => return self.advice_on_state(),
            Code::StateUsed => {
                "Do not call it again: what was approved has been used. Ask for another approval first."
            }
            Code::MissingPermissions => {
                "Do not call it again. Ask a person to do this step, or to grant the missing permissions."
            }
            Code::RateLimited | Code::RateCapacity => return self.advice_on_waiting(),
            Code::InvalidInput | Code::NumberOutOfRange | Code::KeyCase => {
                return self.advice_on_input();
            }
            Code::ApprovalMismatch => {
                "Call it with the arguments that were approved, or ask for approval of these."
            }
            Code::BrokenSchema => {
                "Do not call it again: the tool's own schema is broken, whatever the arguments. Ask a person."
            }
            Code::TooManySessions => "Go on in a session that is open, or try again later.",
            Code::AuditUnavailable => {
                "The call was not made, because it cannot be recorded now. Try again later."
            }
        };
        sentence.to_owned()
    }

    /// As [`Self::advice`], for the use of anything but a tool.
    #[must_use]
    pub fn advice_besides_tools(&self) -> String {
        let sentence = match self.code {
            Code::Quarantined => "Go on without it, or ask a person to review and approve it.",
            Code::FilteredByGroup => {
                "Use what is listed, or ask for one of its groups if you were granted it."
            }
            Code::GroupOff => {
                "It is off under the present circumstances. Go on without it, or try again later."
            }
            Code::DeniedByRule => {
                "Do not ask for it again: a rule forbids it. Go on without it, or ask a person."
            }
            Code::MissingPermissions => {
                "Do not ask for it again. Ask a person to grant the missing permissions."
            }
            Code::Allowed
            | Code::UnknownTool
            | Code::NotOffered
            | Code::MalformedName
            | Code::GroupsNotGranted
            | Code::GroupsBeyondSession
            | Code::UnknownGroup
            | Code::FilteredByState
            | Code::StateUsed
            | Code::RateLimited
            | Code::RateCapacity
            | Code::InvalidInput
            | Code::NumberOutOfRange
            | Code::KeyCase
            | Code::ApprovalMismatch
            | Code::BrokenSchema
            | Code::TooManySessions
            | Code::AuditUnavailable => return self.advice(),
        };
        sentence.to_owned()
    }

    /// What whoever runs the guard can change so that the call passes.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self.code {
            Code::Allowed => "Nothing needs to change.",
            Code::UnknownTool => {
                "Check the name and that the tool's server is up and lists it; under `unlisted: hide`, name \
                 the tool in the policy."
            }
            Code::NotOffered => {
                "Check the name and that a server that offers it is up; under `unlisted: hide`, name it in \
                 the policy."
            }
            Code::MalformedName => "Correct the name of the tool in the client.",
            Code::Quarantined => {
                "Review the change and approve it, or take the tool out of `quarantine` in the policy."
            }
            Code::GroupsNotGranted => {
                "Grant the groups to the principal or to one of its roles, or let the client ask for fewer."
            }
            Code::GroupsBeyondSession => {
                "Let the client ask for all groups it needs when it opens its session."
            }
            Code::UnknownGroup => {
                "Put a tool into the group, correct its name in the request, or set `strict_groups: false`."
            }
            Code::FilteredByGroup => {
                "Let the client ask for one of the tool's groups, or put the tool into a group it asks for."
            }
            Code::GroupOff => "Wait until the group's condition holds, or change its `when`.",
            Code::DeniedByRule => {
                "Take the tool or its group out of the `deny` rules of the principal and its roles."
            }
            Code::FilteredByState => {
                "Move the session on with a tool that leads to a state named here, or add the session's \
                 state to the tool's `available_in_states`."
            }
            Code::StateUsed => {
                "Enter the state again with a tool that leads to it, or close the session."
            }
            Code::MissingPermissions => {
                "Grant the missing permissions to the principal or to one of its roles."
            }
            Code::RateLimited => "Wait, or raise the tool's `rate_limit`.",
            Code::RateCapacity => "Wait until other principals are idle.",
            Code::InvalidInput | Code::NumberOutOfRange | Code::KeyCase => "Correct the arguments.",
            Code::ApprovalMismatch => {
                "Call with the values that were approved, or have these approved."
            }
            Code::BrokenSchema => "Correct the tool's schema in the policy or at its server.",
            Code::TooManySessions => "Close sessions, or shorten `sessions.idle`.",
            Code::AuditUnavailable => {
                "See to the audit log: its disk, its file and its permissions."
            }
        }
    }

    fn advice_on_state(&self) -> String {
        match self.leads.as_slice() {
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
        let places = self.faults.iter().take(MOST).map(|fault| {
            let place = fault.pointer.as_str();
            let place = if place.is_empty() { "arguments" } else { place };
            format!("{place}: {}", fault.message)
        });
        let places: Vec<String> = places.collect();
        let more = match self.faults.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        format!(
            "Correct the arguments and call again ({}{more}).",
            places.join("; ")
        )
    }
}

/// Seconds, a part of one counting as one: less would be too early.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs()
        .saturating_add(u64::from(wait.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Fault;
    use toolwarden_model::json::Pointer;

    fn denial(code: Code) -> Denial {
        Denial::new(code, "reason".to_owned())
    }

    #[test]
    fn every_code_has_advice_and_a_remedy_in_whole_sentences() {
        for code in Code::ALL {
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
        let mut wait = denial(Code::RateLimited);
        wait.retry_after = Some(Duration::from_millis(2_001));
        assert_eq!(
            wait.advice(),
            "Wait 3 seconds, then make the same call again."
        );
        let mut state = denial(Code::FilteredByState);
        state.leads = vec!["query".into(), "search".into()];
        assert_eq!(
            state.advice(),
            "Call `query` or `search` successfully first, then call this tool again."
        );
        let mut input = denial(Code::InvalidInput);
        input.faults = (0..7)
            .map(|at| Fault {
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
