//! Finds parts of a policy that are legal but probably not intended.

mod access;
mod holders;
mod reusable_transitions;
mod rule;
mod schema_keywords;
mod shadowed_rules;
#[cfg(test)]
mod tests;
mod unused;
mod workflow;

use toolwarden_model::json::Pointer;
use toolwarden_model::{Severity, did_you_mean};

use crate::policy::Policy;

pub use rule::LintRule;

/// A part of a policy that is legal but probably not intended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintFinding {
    /// The rule that found it.
    pub rule: LintRule,
    /// Its place in the policy.
    pub pointer: Pointer,
    /// Its severity.
    pub severity: Severity,
    /// The finding, and what to do about it.
    pub message: String,
}

/// Lints a policy, and returns the findings sorted by place.
#[must_use]
pub fn lint(policy: &Policy) -> Vec<LintFinding> {
    let mut report = LintReport::default();
    workflow::check(policy, &mut report);
    reusable_transitions::check(policy, &mut report);
    access::check(policy, &mut report);
    shadowed_rules::check(policy, &mut report);
    unused::check(policy, &mut report);
    schema_keywords::check(policy, &mut report);
    let mut findings = report.findings;
    findings
        .sort_by(|a, b| (&a.pointer, a.rule, &a.message).cmp(&(&b.pointer, b.rule, &b.message)));
    findings
}

/// The findings collected so far.
#[derive(Debug, Default)]
struct LintReport {
    findings: Vec<LintFinding>,
}

impl LintReport {
    fn add(&mut self, rule: LintRule, pointer: Pointer, message: String) {
        self.findings.push(LintFinding {
            rule,
            pointer,
            severity: rule.severity(),
            message,
        });
    }
}

/// Suggestions for misspelled names.
struct Suggestions<'p> {
    known: Vec<&'p str>,
    /// The number of comparisons left.
    left: usize,
}

impl<'p> Suggestions<'p> {
    /// A limit, because each suggestion compares a name with every known one, which is expensive in a large
    /// policy.
    const MOST_COMPARISONS: usize = 100_000;

    fn among(known: impl IntoIterator<Item = &'p str>) -> Self {
        Self {
            known: known.into_iter().collect(),
            left: Self::MOST_COMPARISONS,
        }
    }

    fn of(&mut self, name: &str) -> String {
        match self.left.checked_sub(self.known.len()) {
            None => String::new(),
            Some(left) => {
                self.left = left;
                did_you_mean(name, self.known.iter().copied().filter(|it| *it != name))
            }
        }
    }
}

/// A list of names as text, shortened to the first few.
fn join_names<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    const MOST: usize = 3;
    let mut names = names.into_iter();
    let told: Vec<String> = names
        .by_ref()
        .take(MOST)
        .map(|name| format!("`{name}`"))
        .collect();
    let mut text = told.join(", ");
    if let more @ 1.. = names.count() {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
