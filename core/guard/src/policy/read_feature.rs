//! Reads the rules of what servers offer besides tools.

use std::borrow::Cow;
use std::collections::BTreeMap;

use toolwarden_model::document::{Key, Placed, Section};

use super::read::Reading;
use super::{FeatureKind, Policy, Problem, ToolPolicy, normalized};

const FEATURE: &[Key] = &[
    Key::new("group").or(&["groups"]).texts().may_be_empty(),
    Key::new("available_in_states")
        .or(&["applicable_states"])
        .texts()
        .may_be_empty(),
    Key::new("rate_limit"),
    Key::new("required_permissions").texts(),
    Key::new("server"),
    Key::new("description"),
    // Only to say why it is not taken.
    Key::new("state").may_be_empty(),
];

impl Reading {
    /// The sections of all kinds besides tools.
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
                if let Some(other) = names.insert(normalized(kind, name), name) {
                    let other = other.to_owned();
                    self.reader
                        .error(&at.pointer, Problem::SameFeature { kind, other });
                }
                policy.features.push(self.feature(kind, name, &at));
            }
        }
    }

    fn feature(&mut self, kind: FeatureKind, name: &str, at: &Placed<'_>) -> ToolPolicy {
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
                .error(&at.pointer, Problem::StateOfFeature { kind });
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
