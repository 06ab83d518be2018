use std::collections::BTreeMap;

use toolwarden_model::{Fingerprint, json::to_canonical_string};

use crate::name_rule::NameRule;

/// Allocates tool names for one target; each emitted name belongs to one tool.
#[derive(Debug)]
pub struct NameAllocator {
    rule: Option<NameRule>,
    /// Emitted name to original name.
    assigned: BTreeMap<String, String>,
}

impl NameAllocator {
    /// No names yet; without a rule every name is accepted.
    #[must_use]
    pub const fn new(rule: Option<NameRule>) -> Self {
        Self {
            rule,
            assigned: BTreeMap::new(),
        }
    }

    /// Keeps a name from being given to another tool.
    pub fn reserve(&mut self, name: &str) {
        self.assigned.insert(name.to_owned(), name.to_owned());
    }

    /// The emitted name of a tool: its own if the rule accepts it, else the nearest acceptable one. A
    /// digest of the original name makes it unique, so it is the same on every run.
    pub fn assign(&mut self, original: &str) -> String {
        let Some(rule) = self.rule.filter(|_| !original.is_empty()) else {
            return original.to_owned();
        };
        let plain = sanitize(rule, original);
        let free = |name: &String| {
            self.assigned
                .get(name)
                .is_none_or(|owner| owner == original)
        };
        let name = plain
            .filter(free)
            .unwrap_or_else(|| with_digest(rule, original));
        self.assigned.insert(name.clone(), original.to_owned());
        name
    }
}

/// The name in the rule's characters, unless it would be too long or too little of it would remain.
fn sanitize(rule: NameRule, original: &str) -> Option<String> {
    if rule.accepts(original) {
        return Some(original.to_owned());
    }
    let name = replace_characters(rule, original);
    (original.is_ascii() && rule.accepts(&name)).then_some(name)
}

fn replace_characters(rule: NameRule, original: &str) -> String {
    let mut name: String = original
        .chars()
        .map(|c| if rule.allows(c) { c } else { '_' })
        .collect();
    if !name.starts_with(|first| rule.may_start(first)) {
        name.insert(0, '_');
    }
    name
}

fn with_digest(rule: NameRule, original: &str) -> String {
    let digest = Fingerprint::of_canonical(&to_canonical_string(&original.into())).to_string();
    let suffix: String = digest.chars().take(8).collect();
    let kept: String = replace_characters(rule, original)
        .chars()
        .take(rule.max_length.saturating_sub(9))
        .collect();
    format!("{kept}_{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENAI: NameRule = NameRule::ASCII_64;
    const GEMINI: NameRule = NameRule::GEMINI;

    #[test]
    fn accepted_names_stay() {
        let mut names = NameAllocator::new(Some(OPENAI));
        assert_eq!(names.assign("get-weather_2"), "get-weather_2");
        assert_eq!(names.assign("get-weather_2"), "get-weather_2");
    }

    #[test]
    fn other_names_become_the_nearest_and_stay_apart() {
        let mut names = NameAllocator::new(Some(OPENAI));
        assert_eq!(names.assign("math.sum"), "math_sum");
        assert_eq!(names.assign("math/sum"), "math_sum_43909644");
        assert_eq!(names.assign("math_sum"), "math_sum_0067f0fc");
        assert_eq!(names.assign("math.sum"), "math_sum");
    }

    #[test]
    fn long_and_foreign_names_carry_a_digest() {
        let mut names = NameAllocator::new(Some(OPENAI));
        let long = names.assign(&"x".repeat(65));
        assert_eq!(long.len(), 64);
        assert_ne!(long, names.assign(&format!("{}y", "x".repeat(64))));
        assert!(OPENAI.accepts(&names.assign("获取天气")));
        assert!(GEMINI.accepts(&NameAllocator::new(Some(GEMINI)).assign("2fa")));
        assert_eq!(NameAllocator::new(Some(GEMINI)).assign("2fa"), "_2fa");
    }

    #[test]
    fn without_a_rule_every_name_stays() {
        assert_eq!(NameAllocator::new(None).assign("a b/ç"), "a b/ç");
    }
}
