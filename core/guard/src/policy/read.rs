use std::collections::BTreeSet;

use serde_json::Value;
use toolwarden_model::document::{
    DiagnosticKind, Document, DocumentReader, KeySpec, LocatedValue, Section,
};
use toolwarden_model::json::Pointer;
use toolwarden_model::{GroupName, StateName};

use super::is_group_name;
use super::{
    ArgumentRecording, AuditFailureMode, AuditRules, DenyRules, Durability, EVERY, ExcessGroups,
    FeatureKind, GroupPolicy, PermissionPattern, Policy, PolicyError, PolicyProblem, PolicyWarning,
    PolicyWithWarnings, PrincipalKind, PrincipalPolicy, StateSet, ToolLimits, UnlistedTools,
    references,
};
use crate::condition::{Condition, parse_time_zone};
use crate::window::Limit;

const ROOT: &[KeySpec] = &[
    KeySpec::new("version"),
    KeySpec::new("tools").alias(&["tool"]),
    KeySpec::new("resources"),
    KeySpec::new("prompts"),
    KeySpec::new("skills"),
    KeySpec::new("methods"),
    KeySpec::new("groups"),
    KeySpec::new("roles"),
    KeySpec::new("principals"),
    KeySpec::new("quarantine").text_list(),
    KeySpec::new("strict_groups"),
    KeySpec::new("mode"),
    KeySpec::new("unlisted"),
    KeySpec::new("sessions"),
    KeySpec::new("states"),
    KeySpec::new("rate"),
    KeySpec::new("audit"),
    KeySpec::new("zone"),
];
const RATE: &[KeySpec] = &[
    KeySpec::new("limit"),
    KeySpec::new("window"),
    KeySpec::new("scope"),
    KeySpec::new("count_invalid"),
];
const GROUP: &[KeySpec] = &[KeySpec::new("description"), KeySpec::new("when")];
const ROLE: &[KeySpec] = &[
    KeySpec::new("roles").text_list(),
    KeySpec::new("groups").text_list(),
    KeySpec::new("default_groups").text_list(),
    KeySpec::new("initial_state"),
    KeySpec::new("permissions").text_list(),
    KeySpec::new("deny"),
];
const PRINCIPAL: &[KeySpec] = &[
    KeySpec::new("kind"),
    KeySpec::new("roles").text_list(),
    KeySpec::new("groups").text_list(),
    KeySpec::new("default_groups").text_list(),
    KeySpec::new("initial_state"),
    KeySpec::new("permissions").text_list(),
    KeySpec::new("deny"),
];
const DENY: &[KeySpec] = &[
    KeySpec::new("groups").text_list(),
    KeySpec::new("permissions").text_list(),
    KeySpec::new("tools").text_list(),
    KeySpec::new("resources").text_list(),
    KeySpec::new("prompts").text_list(),
    KeySpec::new("skills").text_list(),
    KeySpec::new("methods").text_list(),
];
const SESSIONS: &[KeySpec] = &[
    KeySpec::new("initial_states").text_list(),
    KeySpec::new("idle"),
];
const AUDIT: &[KeySpec] = &[
    KeySpec::new("durability"),
    KeySpec::new("on_failure"),
    KeySpec::new("arguments"),
    KeySpec::new("redact"),
    KeySpec::new("record_bytes"),
    KeySpec::new("denials"),
];
const DENIALS: &[KeySpec] = &[KeySpec::new("limit"), KeySpec::new("window")];
const REDACT: &[KeySpec] = &[
    KeySpec::new("pointers").text_list(),
    KeySpec::new("keys").text_list(),
];
impl Policy {
    /// Reads a policy, and reports every mistake.
    ///
    /// # Errors
    /// Every mistake with its place; a policy with a mistake is not used at all.
    pub fn read(document: &Document) -> Result<PolicyWithWarnings, Vec<PolicyError>> {
        let mut reading = PolicyReader::default();
        let policy = reading.policy(&document.root());
        references::check(&policy, &mut reading.reader);
        let mistakes = reading.reader.finish(document);
        if mistakes.is_empty() {
            let warnings = reading.warnings;
            return Ok(PolicyWithWarnings { policy, warnings });
        }
        Err(mistakes.into_iter().map(PolicyError::from).collect())
    }
}

/// The rate limits of tools that set none.
#[derive(Clone, Copy, Default)]
pub(super) struct RateDefaults {
    pub(super) limit: Limit,
    pub(super) scope: RateScope,
}

/// The scope of a rate limit: whose calls are counted together.
#[derive(Clone, Copy, Default)]
pub(super) enum RateScope {
    #[default]
    Agent,
    Tool,
    Both,
}

pub(super) const SCOPES: &[(&str, RateScope)] = &[
    ("agent", RateScope::Agent),
    ("tool", RateScope::Tool),
    ("connector", RateScope::Tool),
    ("both", RateScope::Both),
];

/// A policy while it is read.
#[derive(Default)]
pub(super) struct PolicyReader {
    pub(super) reader: DocumentReader<PolicyProblem>,
    pub(super) warnings: Vec<PolicyWarning>,
    pub(super) rate: RateDefaults,
}

impl PolicyReader {
    fn policy(&mut self, root: &LocatedValue<'_>) -> Policy {
        let section = self.reader.section(root, ROOT);
        let mut policy = Policy::default();
        if let Some(at) = section.said("version")
            && at.value != &Value::from(1)
        {
            self.reader.report(&at.pointer, PolicyProblem::Version);
        }
        if let Some(at) = section.said("rate") {
            policy.count_invalid = self.rate(at);
        }
        if let Some(at) = section.said("zone")
            && let Some(name) = self.reader.text(at)
        {
            match parse_time_zone(name) {
                Ok(zone) => policy.zone = zone,
                Err(unknown) => self.reader.report(&at.pointer, unknown),
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
                    self.reader.report(&at.pointer, PolicyProblem::GroupName);
                    continue;
                }
                policy.groups.insert(GroupName::new(name), self.group(&at));
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
            policy.requests.strict_groups = self.reader.boolean(at).unwrap_or(true);
        }
        if let Some(at) = section.said("mode") {
            let words = [
                ("reject", ExcessGroups::Reject),
                ("narrow", ExcessGroups::Narrow),
            ];
            policy.requests.excess = self.reader.word(at, &words).unwrap_or_default();
        }
        if let Some(at) = section.said("unlisted") {
            let words = [
                ("serve", UnlistedTools::Serve),
                ("hide", UnlistedTools::Hide),
            ];
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

    fn rate(&mut self, at: &LocatedValue<'_>) -> bool {
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
        counts
            .and_then(|at| self.reader.boolean(at))
            .unwrap_or(true)
    }

    fn group(&mut self, at: &LocatedValue<'_>) -> GroupPolicy {
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
                Err(invalid) => self.reader.report(&at.pointer, invalid),
            }
        }
        group
    }

    fn principal(&mut self, at: &LocatedValue<'_>, keys: &[KeySpec]) -> PrincipalPolicy {
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
        let initial = self.line(&section, "initial_state", "a state's name");
        grants.initial_state = initial.map(StateName::new);
        if let Some(at) = section.said("permissions") {
            grants.permissions = self.patterns(at);
        }
        if let Some(at) = section.said("deny") {
            grants.deny = self.denies(at);
        }
        principal
    }

    fn denies(&mut self, at: &LocatedValue<'_>) -> DenyRules {
        let section = self.reader.section(at, DENY);
        let mut denies = DenyRules::default();
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

    fn patterns(&mut self, at: &LocatedValue<'_>) -> Vec<PermissionPattern> {
        let mut patterns = Vec::new();
        for (text, pointer) in self.reader.texts(at, "a permission") {
            match PermissionPattern::parse(&text) {
                Ok(pattern) => patterns.push(pattern),
                Err(invalid) => self.reader.report(&pointer, invalid),
            }
        }
        patterns
    }

    pub(super) fn states(&mut self, at: &LocatedValue<'_>) -> StateSet {
        if at.value.is_null() {
            return StateSet::Only(BTreeSet::new());
        }
        let names = self.names(at, "a state's name");
        if names.iter().any(|name| name == EVERY) {
            return StateSet::Every;
        }
        StateSet::Only(names.into_iter().map(StateName::new).collect())
    }

    fn audit(&mut self, at: &LocatedValue<'_>) -> AuditRules {
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
            let words = [
                ("deny", AuditFailureMode::Deny),
                ("allow", AuditFailureMode::Allow),
            ];
            rules.on_failure = self.reader.word(at, &words).unwrap_or_default();
        }
        if let Some(at) = section.said("arguments") {
            let words = [
                ("full", ArgumentRecording::Full),
                ("redacted", ArgumentRecording::Redacted),
                ("digest", ArgumentRecording::Digest),
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
                // A custom list must not reveal values that the default list hides.
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
                            .report(&pointer, DiagnosticKind::WrongType { expected, found });
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

    fn names(&mut self, at: &LocatedValue<'_>, what: &'static str) -> Vec<String> {
        let texts = self.reader.texts(at, what);
        texts.into_iter().map(|(text, _)| text).collect()
    }

    pub(super) fn group_names(&mut self, at: &LocatedValue<'_>) -> Vec<GroupName> {
        let mut names = Vec::new();
        for (name, pointer) in self.reader.texts(at, "a group's name") {
            if is_group_name(&name) {
                names.push(GroupName::new(name));
            } else {
                self.reader.report(&pointer, PolicyProblem::GroupName);
            }
        }
        names
    }
}

impl RateDefaults {
    pub(super) const fn limits(self) -> ToolLimits {
        self.scope.of(self.limit)
    }
}

impl RateScope {
    pub(super) const fn of(self, limit: Limit) -> ToolLimits {
        match self {
            Self::Agent => ToolLimits {
                agent: Some(limit),
                tool: None,
            },
            Self::Tool => ToolLimits {
                agent: None,
                tool: Some(limit),
            },
            Self::Both => ToolLimits {
                agent: Some(limit),
                tool: Some(limit),
            },
        }
    }
}
