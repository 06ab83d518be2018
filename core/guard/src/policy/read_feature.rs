//! Reads the rules of features besides tools.

use std::borrow::Cow;
use std::collections::BTreeMap;

use toolwarden_model::document::{KeySpec, LocatedValue, Section};

use super::read::PolicyReader;
use super::{FeatureKind, Policy, PolicyProblem, ToolPolicy, normalize_name};

const FEATURE: &[KeySpec] = &[
    KeySpec::new("group")
        .alias(&["groups"])
        .text_list()
        .may_be_empty(),
    KeySpec::new("available_in_states")
        .alias(&["applicable_states"])
        .text_list()
        .may_be_empty(),
    KeySpec::new("rate_limit"),
    KeySpec::new("required_permissions").text_list(),
    KeySpec::new("server"),
    KeySpec::new("description"),
    // Accepted only to report why it is not allowed.
    KeySpec::new("state").may_be_empty(),
];

impl PolicyReader {
    /// Reads the sections of all kinds besides tools.
    pub(super) fn features(&mut self, root: &Section<'_>, policy: &mut Policy) {
        for kind in FeatureKind::BESIDES_TOOLS {
            let Some(at) = root.said(kind.section()) else {
                continue;
            };
            let what = match kind {
                FeatureKind::Resource | FeatureKind::Skill => "an address or a pattern",
                FeatureKind::Tool | FeatureKind::Prompt | FeatureKind::Method => {
                    "a name or a pattern"
                }
            };
            let mut names: BTreeMap<Cow<'_, str>, &str> = BTreeMap::new();
            for (name, at) in self.reader.named(at, what) {
                if let Some(other) = names.insert(normalize_name(kind, name), name) {
                    let other = other.to_owned();
                    self.reader
                        .report(&at.pointer, PolicyProblem::SameFeature { kind, other });
                }
                policy.features.push(self.feature(kind, name, &at));
            }
        }
    }

    fn feature(&mut self, kind: FeatureKind, name: &str, at: &LocatedValue<'_>) -> ToolPolicy {
        let mut rules = ToolPolicy::new(name);
        rules.kind = kind;
        rules.pointer = at.pointer.clone();
        rules.limits = self.rate.limits();
        if at.value.is_null() {
            return rules;
        }
        let section = self.reader.section(at, FEATURE);
        if let Some(at) = section.get("state") {
            self.reader
                .report(&at.pointer, PolicyProblem::StateOfFeature { kind });
        }
        self.rules(&section, &mut rules);
        rules.next_state = None;
        rules.server = self.line(&section, "server", "a server's name");
        if let Some(at) = section.said("description") {
            self.reader.text(at);
        }
        rules
    }
}
