use std::collections::BTreeSet;

use serde_json::Value;
use toolwarden_model::document::{Document, Key, Mistake, Placed, Reader, Section};
use toolwarden_model::json::Pointer;

use super::is_group_name;
use super::{
    Arguments, AuditRules, Denies, Durability, EVERY, Excess, FeatureKind, GroupPolicy, Limits,
    OnFailure, PermissionPattern, Policy, PolicyError, PolicyWarning, PrincipalKind,
    PrincipalPolicy, Problem, ReadPolicy, States, Unlisted, references,
};
use crate::condition::{Condition, zone};
use crate::window::Limit;

const ROOT: &[Key] = &[
    Key::new("version"),
    Key::new("tools").or(&["tool"]),
    Key::new("resources"),
    Key::new("prompts"),
    Key::new("skills"),
    Key::new("methods"),
    Key::new("groups"),
    Key::new("roles"),
    Key::new("principals"),
    Key::new("quarantine").texts(),
    Key::new("strict_groups"),
    Key::new("mode"),
    Key::new("unlisted"),
    Key::new("sessions"),
    Key::new("states"),
    Key::new("rate"),
    Key::new("audit"),
    Key::new("zone"),
];
const RATE: &[Key] = &[
    Key::new("limit"),
    Key::new("window"),
    Key::new("scope"),
    Key::new("count_invalid"),
];
const GROUP: &[Key] = &[Key::new("description"), Key::new("when")];
const ROLE: &[Key] = &[
    Key::new("roles").texts(),
    Key::new("groups").texts(),
    Key::new("default_groups").texts(),
    Key::new("initial_state"),
    Key::new("permissions").texts(),
    Key::new("deny"),
];
const PRINCIPAL: &[Key] = &[
    Key::new("kind"),
    Key::new("roles").texts(),
    Key::new("groups").texts(),
    Key::new("default_groups").texts(),
    Key::new("initial_state"),
    Key::new("permissions").texts(),
    Key::new("deny"),
];
const DENY: &[Key] = &[
    Key::new("groups").texts(),
    Key::new("permissions").texts(),
    Key::new("tools").texts(),
    Key::new("resources").texts(),
    Key::new("prompts").texts(),
    Key::new("skills").texts(),
    Key::new("methods").texts(),
];
const SESSIONS: &[Key] = &[Key::new("initial_states").texts(), Key::new("idle")];
const AUDIT: &[Key] = &[
    Key::new("durability"),
    Key::new("on_failure"),
    Key::new("arguments"),
    Key::new("redact"),
    Key::new("record_bytes"),
    Key::new("denials"),
];
const DENIALS: &[Key] = &[Key::new("limit"), Key::new("window")];
const REDACT: &[Key] = &[Key::new("pointers").texts(), Key::new("keys").texts()];
impl Policy {
    /// Reads a policy, and says everything that is wrong with it.
    ///
    /// # Errors
    /// Every mistake with its place; a policy with a mistake is not used at all.
    pub fn read(document: &Document) -> Result<ReadPolicy, Vec<PolicyError>> {
        let mut reading = Reading::default();
        let policy = reading.policy(&document.root());
        references::check(&policy, &mut reading.reader);
        let mistakes = reading.reader.finish(document);
        if mistakes.is_empty() {
            let warnings = reading.warnings;
            return Ok(ReadPolicy { policy, warnings });
        }
        Err(mistakes.into_iter().map(PolicyError::from).collect())
    }
}

/// What tools take over that say nothing about their rate.
#[derive(Clone, Copy, Default)]
pub(super) struct RateDefaults {
    pub(super) limit: Limit,
    pub(super) scope: Scope,
}

/// Whose calls are counted together.
#[derive(Clone, Copy, Default)]
pub(super) enum Scope {
    #[default]
    Agent,
    Tool,
    Both,
}

pub(super) const SCOPES: &[(&str, Scope)] = &[
    ("agent", Scope::Agent),
    ("tool", Scope::Tool),
    ("connector", Scope::Tool),
    ("both", Scope::Both),
];

/// A policy that is being read.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) reader: Reader<Problem>,
    pub(super) warnings: Vec<PolicyWarning>,
    pub(super) rate: RateDefaults,
}

impl Reading {
    fn policy(&mut self, root: &Placed<'_>) -> Policy {
        let section = self.reader.section(root, ROOT);
        let mut policy = Policy::default();
        if let Some(at) = section.said("version")
            && at.value != &Value::from(1)
        {
            self.reader.error(&at.pointer, Problem::Version);
        }
        if let Some(at) = section.said("rate") {
            policy.count_invalid = self.rate(at);
        }
        if let Some(at) = section.said("zone")
            && let Some(name) = self.reader.text(at)
        {
            match zone(name) {
                Ok(zone) => policy.zone = zone,
                Err(unknown) => self.reader.error(&at.pointer, unknown),
            }
        }
        if let Some(at) = self.reader.required(&section, "tools") {
            for (name, at) in self.reader.named(at, "a tool's name") {
                self.check_tool_name(name, &at);
                policy.tools.push(self.tool(name, &at));
            }
        }
        self.features(&section, &mut policy);
        if let Some(at) = section.said("groups") {
            for (name, at) in self.reader.named(at, "a group's name") {
                if !is_group_name(name) {
                    self.reader.error(&at.pointer, Problem::GroupName);
                    continue;
                }
                policy.groups.insert(name.to_owned(), self.group(&at));
            }
        }
        if let Some(at) = section.said("roles") {
            for (name, at) in self.reader.named(at, "a role's name") {
                policy
                    .roles
                    .insert(name.to_owned(), self.principal(&at, ROLE).grants);
            }
        }
        if let Some(at) = section.said("principals") {
            for (name, at) in self.reader.named(at, "a principal's name") {
                let principal = self.principal(&at, PRINCIPAL);
                if name == EVERY {
                    policy.anyone = principal.grants;
                } else {
                    policy.principals.insert(name.to_owned(), principal);
                }
            }
        }
        if let Some(at) = section.said("quarantine") {
            policy.quarantine = self.names(at, "a tool's name").into_iter().collect();
        }
        if let Some(at) = section.said("strict_groups") {
            policy.requests.strict_groups = self.reader.truth(at).unwrap_or(true);
        }
        if let Some(at) = section.said("mode") {
            let words = [("reject", Excess::Reject), ("narrow", Excess::Narrow)];
            policy.requests.excess = self.reader.word(at, &words).unwrap_or_default();
        }
        if let Some(at) = section.said("unlisted") {
            let words = [("serve", Unlisted::Serve), ("hide", Unlisted::Hide)];
            policy.unlisted = self.reader.word(at, &words).unwrap_or_default();
        }
        self.sessions(&section, &mut policy);
        policy.states = self.state_rules(&section);
        if let Some(at) = section.said("audit") {
            policy.audit = self.audit(at);
        }
        policy
    }

    fn sessions(&mut self, root: &Section<'_>, policy: &mut Policy) {
        let Some(at) = root.said("sessions") else {
            return;
        };
        let section = self.reader.section(at, SESSIONS);
        if let Some(at) = section.said("initial_states") {
            policy.sessions.initial_states = self.states(at);
        }
        if let Some(at) = section.said("idle") {
            policy.sessions.idle = self.reader.duration(at).unwrap_or(policy.sessions.idle);
        }
    }

    fn rate(&mut self, at: &Placed<'_>) -> bool {
        let section = self.reader.section(at, RATE);
        if let Some(at) = section.said("limit") {
            self.rate.limit.max = self.reader.count(at).unwrap_or(self.rate.limit.max);
        }
        if let Some(at) = section.said("window") {
            let window = self.reader.duration(at);
            self.rate.limit.window = window.unwrap_or(self.rate.limit.window);
        }
        if let Some(at) = section.said("scope") {
            self.rate.scope = self.reader.word(at, SCOPES).unwrap_or_default();
        }
        let counts = section.said("count_invalid");
        counts.and_then(|at| self.reader.truth(at)).unwrap_or(true)
    }

    fn group(&mut self, at: &Placed<'_>) -> GroupPolicy {
        let mut group = GroupPolicy::default();
        if at.value.is_null() {
            return group;
        }
        let section = self.reader.section(at, GROUP);
        group.description = self.line(&section, "description", "a description");
        if let Some(at) = section.said("when")
            && let Some(text) = self.reader.text(at)
        {
            match Condition::parse(text) {
                Ok(condition) => group.when = Some(condition),
                Err(invalid) => self.reader.error(&at.pointer, invalid),
            }
        }
        group
    }

    fn principal(&mut self, at: &Placed<'_>, keys: &[Key]) -> PrincipalPolicy {
        let mut principal = PrincipalPolicy::default();
        principal.grants.pointer = at.pointer.clone();
        if at.value.is_null() {
            return principal;
        }
        let section = self.reader.section(at, keys);
        if let Some(at) = section.said("kind") {
            let words = [
                ("agent", PrincipalKind::Agent),
                ("user", PrincipalKind::User),
                ("service", PrincipalKind::Service),
            ];
            principal.kind = self.reader.word(at, &words).unwrap_or_default();
        }
        let grants = &mut principal.grants;
        if let Some(at) = section.said("roles") {
            grants.roles = self.names(at, "a role's name");
        }
        if let Some(at) = section.get("groups") {
            grants.groups = Some(if at.value.is_null() {
                Vec::new()
            } else {
                self.group_names(at)
            });
        }
        if let Some(at) = section.get("default_groups") {
            grants.default_groups = Some(if at.value.is_null() {
                Vec::new()
            } else {
                self.group_names(at)
            });
        }
        grants.initial_state = self.line(&section, "initial_state", "a state's name");
        if let Some(at) = section.said("permissions") {
            grants.permissions = self.patterns(at);
        }
        if let Some(at) = section.said("deny") {
            grants.deny = self.denies(at);
        }
        principal
    }

    fn denies(&mut self, at: &Placed<'_>) -> Denies {
        let section = self.reader.section(at, DENY);
        let mut denies = Denies::default();
        if let Some(at) = section.said("groups") {
            denies.groups = self.group_names(at);
        }
        if let Some(at) = section.said("permissions") {
            denies.permissions = self.patterns(at);
        }
        if let Some(at) = section.said("tools") {
            denies.tools = self.names(at, "a tool's name");
        }
        for kind in FeatureKind::BESIDES_TOOLS {
            if let Some(at) = section.said(kind.section()) {
                let names = self.names(at, "a name or a pattern").into_iter();
                denies.features.extend(names.map(|name| (kind, name)));
            }
        }
        denies
    }

    fn patterns(&mut self, at: &Placed<'_>) -> Vec<PermissionPattern> {
        let mut patterns = Vec::new();
        for (text, pointer) in self.reader.texts(at, "a permission") {
            match PermissionPattern::parse(&text) {
                Ok(pattern) => patterns.push(pattern),
                Err(invalid) => self.reader.error(&pointer, invalid),
            }
        }
        patterns
    }

    pub(super) fn states(&mut self, at: &Placed<'_>) -> States {
        if at.value.is_null() {
            return States::Only(BTreeSet::new());
        }
        let names = self.names(at, "a state's name");
        if names.iter().any(|name| name == EVERY) {
            return States::Every;
        }
        States::Only(names.into_iter().collect())
    }

    fn audit(&mut self, at: &Placed<'_>) -> AuditRules {
        let section = self.reader.section(at, AUDIT);
        let mut rules = AuditRules::default();
        if let Some(at) = section.said("durability") {
            let words = [
                ("sync", Durability::Sync),
                ("group", Durability::Group),
                ("async", Durability::Async),
            ];
            rules.durability = self.reader.word(at, &words).unwrap_or_default();
        }
        if let Some(at) = section.said("on_failure") {
            let words = [("deny", OnFailure::Deny), ("allow", OnFailure::Allow)];
            rules.on_failure = self.reader.word(at, &words).unwrap_or_default();
        }
        if let Some(at) = section.said("arguments") {
            let words = [
                ("full", Arguments::Full),
                ("redacted", Arguments::Redacted),
                ("digest", Arguments::Digest),
            ];
            rules.arguments = self.reader.word(at, &words).unwrap_or_default();
        }
        if let Some(at) = section.said("record_bytes")
            && let Some(bytes) = self.reader.count(at)
        {
            rules.record_bytes = usize::try_from(bytes.get()).unwrap_or(usize::MAX);
        }
        if let Some(at) = section.said("denials") {
            let section = self.reader.section(at, DENIALS);
            if let Some(at) = section.said("limit") {
                rules.denials.max = self.reader.count(at).unwrap_or(rules.denials.max);
            }
            if let Some(at) = section.said("window") {
                let window = self.reader.duration(at);
                rules.denials.window = window.unwrap_or(rules.denials.window);
            }
        }
        if let Some(at) = section.said("redact") {
            let section = self.reader.section(at, REDACT);
            if let Some(at) = section.said("keys") {
                // A list of one's own must not uncover what is hidden without it.
                rules.redact_keys.extend(self.names(at, "a key"));
            }
            if let Some(at) = section.said("pointers") {
                for (text, pointer) in self.reader.texts(at, "a pointer") {
                    if text.starts_with('/') {
                        rules.redact_pointers.push(Pointer::from(text.as_str()));
                    } else {
                        let expected = "a JSON pointer into the arguments such as /card/number";
                        let found = format!("`{text}`");
                        self.reader
                            .error(&pointer, Mistake::Type { expected, found });
                    }
                }
            }
        }
        rules
    }

    pub(super) fn warn(&mut self, pointer: &Pointer, message: impl Into<String>) {
        self.warnings.push(PolicyWarning {
            pointer: pointer.clone(),
            message: message.into(),
        });
    }

    fn names(&mut self, at: &Placed<'_>, what: &'static str) -> Vec<String> {
        let texts = self.reader.texts(at, what);
        texts.into_iter().map(|(text, _)| text).collect()
    }

    pub(super) fn group_names(&mut self, at: &Placed<'_>) -> Vec<String> {
        let mut names = Vec::new();
        for (name, pointer) in self.reader.texts(at, "a group's name") {
            if is_group_name(&name) {
                names.push(name);
            } else {
                self.reader.error(&pointer, Problem::GroupName);
            }
        }
        names
    }
}

impl RateDefaults {
    pub(super) const fn limits(self) -> Limits {
        self.scope.of(self.limit)
    }
}

impl Scope {
    pub(super) const fn of(self, limit: Limit) -> Limits {
        match self {
            Self::Agent => Limits {
                agent: Some(limit),
                tool: None,
            },
            Self::Tool => Limits {
                agent: None,
                tool: Some(limit),
            },
            Self::Both => Limits {
                agent: Some(limit),
                tool: Some(limit),
            },
        }
    }
}
