//! Finds what is legal in a policy and probably not meant.

mod holders;
mod reach;
mod reuse;
mod rule;
mod schema_words;
mod shadow;
#[cfg(test)]
mod tests;
mod unused;
mod workflow;

use toolwarden_model::closest;
use toolwarden_model::json::Pointer;

use crate::policy::Policy;

pub use rule::{LintRule, LintSeverity};

/// Something in a policy that is legal and probably not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintFinding {
    /// The rule that found it.
    pub rule: LintRule,
    /// Where it stands in the policy.
    pub pointer: Pointer,
    /// How much it matters.
    pub severity: LintSeverity,
    /// What it is and what to do about it.
    pub message: String,
}

/// Looks through a policy, and tells what it finds sorted by place.
#[must_use]
pub fn lint(policy: &Policy) -> Vec<LintFinding> {
    let mut report = Report::default();
    workflow::check(policy, &mut report);
    reuse::check(policy, &mut report);
    reach::check(policy, &mut report);
    shadow::check(policy, &mut report);
    unused::check(policy, &mut report);
    schema_words::check(policy, &mut report);
    let mut findings = report.findings;
    findings
        .sort_by(|a, b| (&a.pointer, a.rule, &a.message).cmp(&(&b.pointer, b.rule, &b.message)));
    findings
}

/// Findings, collected while a policy is looked through.
#[derive(Debug, Default)]
struct Report {
    findings: Vec<LintFinding>,
}

impl Report {
    fn add(&mut self, rule: LintRule, pointer: Pointer, message: String) {
        self.findings.push(LintFinding {
            rule,
            pointer,
            severity: rule.severity(),
            message,
        });
    }
}

/// What a misspelled name may have been meant to be.
struct Suggestions<'p> {
    known: Vec<&'p str>,
    /// How many comparisons are left.
    left: usize,
}

impl<'p> Suggestions<'p> {
    /// Each suggestion compares a name with every known one, which a large policy cannot afford often.
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
                closest(name, self.known.iter().copied().filter(|it| *it != name))
            }
        }
    }
}

/// Names in words, the first few of many.
fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
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
