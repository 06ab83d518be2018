//! Transitions that can be taken more than once.

use toolwarden_model::StateName;

use super::{LintReport, LintRule, join_names};
use crate::policy::{Policy, StateSet, ToolPolicy};

/// Words in a tool's name and permissions that suggest an action which must not be repeated by accident.
const ACTION_WORDS: &[&str] = &[
    "book", "buy", "charge", "create", "delete", "deploy", "execute", "issue", "order", "pay",
    "post", "publish", "purchase", "refund", "remove", "send", "submit", "transfer", "wire",
    "withdraw", "write",
];

pub(super) fn check(policy: &Policy, report: &mut LintReport) {
    for tool in &policy.tools {
        let (StateSet::Only(states), Some(next)) = (&tool.states, &tool.next_state) else {
            continue;
        };
        if !tool.uses_state || !has_action_word(tool) {
            continue;
        }
        let reusable = states.iter().filter(|state| {
            let rules = policy.states.get(*state);
            *state != next && !rules.is_some_and(|it| it.single_use)
        });
        let reusable: Vec<&str> = reusable.map(StateName::as_str).collect();
        let Some(first) = reusable.first() else {
            continue;
        };
        let message = format!(
            "calls of `{}` at the same time are all permitted in {}, before the first of them leads to `{next}`; \
             set `states: {{{first}: {{single_use: true}}}}`, or `uses_state: false` on the tool if that is meant",
            tool.name,
            join_names(reusable.iter().copied())
        );
        let pointer = tool.pointer.child("available_in_states");
        report.add(LintRule::ReusableTransition, pointer, message);
    }
}

/// Whether a tool's name or permissions contain one of these words.
fn has_action_word(tool: &ToolPolicy) -> bool {
    let permissions = tool.permissions.iter().map(|it| it.as_str());
    permissions.chain([tool.name.as_str()]).any(|text| {
        let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| {
            let word = word.to_ascii_lowercase();
            ACTION_WORDS.contains(&word.as_str())
        })
    })
}

#[cfg(test)]
mod tests {
    use crate::lint::{LintRule, lint};
    use crate::policy::Policy;
    use toolwarden_model::document::Document;

    fn found(policy: &str) -> usize {
        let document = Document::read(policy).unwrap();
        let policy = Policy::read(&document).unwrap().policy;
        let findings = lint(&policy);
        findings
            .iter()
            .filter(|it| it.rule == LintRule::ReusableTransition)
            .count()
    }

    #[test]
    fn a_payment_that_leaves_a_reusable_state_is_found() {
        let policy = |states: &str, more: &str| {
            format!(
                "tools:\n  approve: {{state: approved}}\n  \
                 send-payment: {{state: paid, available_in_states: [approved]{more}}}\n{states}"
            )
        };
        assert_eq!(found(&policy("", "")), 1);
        assert_eq!(
            found(&policy("states: {approved: {single_use: true}}", "")),
            0
        );
        assert_eq!(found(&policy("", ", uses_state: false")), 0);
        let reading = "tools:\n  search: {state: found, available_in_states: [undefined]}\n";
        assert_eq!(found(reading), 0);
    }
}
