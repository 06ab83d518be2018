use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolwarden_model::closest;
use toolwarden_model::json::Pointer;

use super::is_group_name;
use super::section::{Findings, Key, Placed, Section};
use super::{
    Arguments, AuditRules, DEFAULT_GROUP, DefinitionRef, Denies, Durability, EVERY, Excess, Grants,
    GroupPolicy, Limits, OnFailure, OutputMode, Permission, PermissionPattern, Policy, PolicyError,
    PrincipalKind, PrincipalPolicy, Problem, ReadPolicy, States, ToolPolicy,
};
use crate::condition::{Condition, zone};
use crate::document::Document;
use crate::window::Limit;

const ROOT: &[Key] = &[
    ("version", &[]),
    ("tools", &["tool"]),
    ("groups", &[]),
    ("roles", &[]),
    ("principals", &[]),
    ("quarantine", &[]),
    ("strict_groups", &[]),
    ("mode", &[]),
    ("sessions", &[]),
    ("rate", &[]),
    ("audit", &[]),
    ("zone", &[]),
];
const TOOL: &[Key] = &[
    ("group", &["groups"]),
    ("state", &[]),
    ("available_in_states", &["applicable_states"]),
    ("rate_limit", &[]),
    ("required_permissions", &[]),
    ("input_schema", &[]),
    ("output_schema", &[]),
    ("output", &[]),
    ("definition", &[]),
    ("version", &[]),
    ("name", &[]),
    ("description", &[]),
    ("type", &[]),
    ("mcp_tool_id", &["mcp_tool"]),
];
const RATE_LIMIT: &[Key] = &[
    ("limit", &[]),
    ("scope", &[]),
    ("agent", &[]),
    ("tool", &[]),
    ("window", &[]),
];
const RATE: &[Key] = &[
    ("limit", &[]),
    ("window", &[]),
    ("scope", &[]),
    ("count_invalid", &[]),
];
const GROUP: &[Key] = &[("description", &[]), ("when", &[])];
const ROLE: &[Key] = &[
    ("roles", &[]),
    ("groups", &[]),
    ("permissions", &[]),
    ("deny", &[]),
];
const PRINCIPAL: &[Key] = &[
    ("kind", &[]),
    ("roles", &[]),
    ("groups", &[]),
    ("permissions", &[]),
    ("deny", &[]),
];
const DENY: &[Key] = &[("groups", &[]), ("permissions", &[]), ("tools", &[])];
const SESSIONS: &[Key] = &[("initial_states", &[]), ("idle", &[])];
const AUDIT: &[Key] = &[
    ("durability", &[]),
    ("on_failure", &[]),
    ("arguments", &[]),
    ("redact", &[]),
];
const REDACT: &[Key] = &[("pointers", &[]), ("keys", &[])];
const DEFINITION: &[Key] = &[("file", &[]), ("tool", &[])];

impl Policy {
    /// Reads a policy, and says everything that is wrong with it.
    ///
    /// # Errors
    /// Every mistake with its place; a policy with a mistake is not used at all.
    pub fn read(document: &Document) -> Result<ReadPolicy, Vec<PolicyError>> {
        let mut findings = Findings::default();
        let root = Placed {
            pointer: Pointer::root(),
            value: &document.value,
        };
        let policy = Reading {
            findings: &mut findings,
            rate: RateDefaults::default(),
        }
        .policy(&root);
        check_references(&policy, &mut findings);
        if findings.errors.is_empty() {
            let warnings = findings.warnings;
            return Ok(ReadPolicy { policy, warnings });
        }
        let mut errors = findings.errors;
        for error in &mut errors {
            error.position = Some(document.position(&error.pointer));
        }
        errors.sort_by_key(|error| error.position);
        Err(errors)
    }
}

/// What tools take over that say nothing about their rate.
#[derive(Clone, Copy, Default)]
struct RateDefaults {
    limit: Limit,
    scope: Scope,
}

/// Whose calls are counted together.
#[derive(Clone, Copy, Default)]
enum Scope {
    #[default]
    Agent,
    Tool,
    Both,
}

const SCOPES: &[(&str, Scope)] = &[
    ("agent", Scope::Agent),
    ("tool", Scope::Tool),
    ("connector", Scope::Tool),
    ("both", Scope::Both),
];

struct Reading<'f> {
    findings: &'f mut Findings,
    rate: RateDefaults,
}

impl Reading<'_> {
    fn policy(mut self, root: &Placed<'_>) -> Policy {
        let section = self.findings.section(root, ROOT);
        let mut policy = Policy::default();
        if let Some(at) = section.said("version")
            && at.value != &Value::from(1)
        {
            self.findings.error(&at.pointer, Problem::Version);
        }
        if let Some(at) = section.said("rate") {
            policy.count_invalid = self.rate(at);
        }
        if let Some(at) = section.said("zone")
            && let Some(name) = self.findings.text(at)
        {
            match zone(name) {
                Ok(zone) => policy.zone = zone,
                Err(unknown) => self.findings.error(&at.pointer, unknown),
            }
        }
        match section.said("tools") {
            None => {
                let missing = Problem::Missing { key: "tools" };
                self.findings.error(&root.pointer, missing);
            }
            Some(at) => {
                for (name, at) in self.findings.named(at, "a tool's name") {
                    policy.tools.push(self.tool(name, &at));
                }
            }
        }
        if let Some(at) = section.said("groups") {
            for (name, at) in self.findings.named(at, "a group's name") {
                if !is_group_name(name) {
                    self.findings.error(&at.pointer, Problem::GroupName);
                    continue;
                }
                policy.groups.insert(name.to_owned(), self.group(&at));
            }
        }
        if let Some(at) = section.said("roles") {
            for (name, at) in self.findings.named(at, "a role's name") {
                policy
                    .roles
                    .insert(name.to_owned(), self.principal(&at, ROLE).grants);
            }
        }
        if let Some(at) = section.said("principals") {
            for (name, at) in self.findings.named(at, "a principal's name") {
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
            policy.requests.strict_groups = self.findings.truth(at).unwrap_or(true);
        }
        if let Some(at) = section.said("mode") {
            let words = [("reject", Excess::Reject), ("narrow", Excess::Narrow)];
            policy.requests.excess = self.findings.word(at, &words).unwrap_or_default();
        }
        self.sessions(&section, &mut policy);
        if let Some(at) = section.said("audit") {
            policy.audit = self.audit(at);
        }
        policy
    }

    fn sessions(&mut self, root: &Section<'_>, policy: &mut Policy) {
        let Some(at) = root.said("sessions") else {
            return;
        };
        let section = self.findings.section(at, SESSIONS);
        if let Some(at) = section.said("initial_states") {
            policy.sessions.initial_states = self.states(at);
        }
        if let Some(at) = section.said("idle") {
            policy.sessions.idle = self.findings.duration(at).unwrap_or(policy.sessions.idle);
        }
    }

    fn rate(&mut self, at: &Placed<'_>) -> bool {
        let section = self.findings.section(at, RATE);
        if let Some(at) = section.said("limit") {
            self.rate.limit.max = self.findings.count(at).unwrap_or(self.rate.limit.max);
        }
        if let Some(at) = section.said("window") {
            let window = self.findings.duration(at);
            self.rate.limit.window = window.unwrap_or(self.rate.limit.window);
        }
        if let Some(at) = section.said("scope") {
            self.rate.scope = self.findings.word(at, SCOPES).unwrap_or_default();
        }
        let counts = section.said("count_invalid");
        counts
            .and_then(|at| self.findings.truth(at))
            .unwrap_or(true)
    }

    fn tool(&mut self, name: &str, at: &Placed<'_>) -> ToolPolicy {
        let mut tool = ToolPolicy::new(name);
        tool.pointer = at.pointer.clone();
        tool.limits = self.rate.limits();
        if at.value.is_null() {
            return tool;
        }
        let section = self.findings.section(at, TOOL);
        if let Some(at) = section.get("group") {
            tool.groups = self.tool_groups(at);
        }
        if let Some(at) = section.said("state") {
            let state = self.findings.text(at).unwrap_or_default();
            tool.next_state = Some(state.to_owned()).filter(|state| !state.is_empty());
        }
        if let Some(at) = section.get("available_in_states") {
            tool.states = self.states(at);
            if tool.states == States::Only(BTreeSet::new()) {
                let message = "the list of states is empty: the tool is never available";
                self.findings.warn(&at.pointer, message);
            }
        }
        if let Some(at) = section.said("rate_limit") {
            tool.limits = self.limits(at);
        }
        if let Some(at) = section.said("required_permissions") {
            for (text, pointer) in self.findings.texts(at, "a permission") {
                match Permission::parse(&text) {
                    Ok(permission) => tool.permissions.push(permission),
                    Err(invalid) => self.findings.error(&pointer, invalid),
                }
            }
            tool.permissions.sort();
            tool.permissions.dedup();
        }
        self.schemas(name, &section, &mut tool);
        tool.version = self.line(&section, "version", "version");
        tool.title = self.line(&section, "name", "a tool's name");
        for key in ["description", "type", "mcp_tool_id"] {
            if let Some(at) = section.said(key) {
                self.findings.text(at);
            }
        }
        tool
    }

    fn line(&mut self, section: &Section<'_>, key: &str, what: &'static str) -> Option<String> {
        let at = section.said(key)?;
        let text = self.findings.text(at)?.trim();
        if text.is_empty() {
            self.findings.error(&at.pointer, Problem::Blank { what });
        }
        Some(text.to_owned())
    }

    fn tool_groups(&mut self, at: &Placed<'_>) -> Vec<String> {
        let groups = if at.value.is_null() {
            Vec::new()
        } else {
            self.group_names(at)
        };
        if groups.is_empty() {
            let message = "the list of groups is empty: only a request for `*` reaches the tool";
            self.findings.warn(&at.pointer, message);
        }
        if groups.iter().any(|group| group == EVERY) {
            let message =
                "`*` is no wildcard in a tool's groups: only a request for `*` reaches it";
            self.findings.warn(&at.pointer, message);
        }
        groups
    }

    fn schemas(&mut self, name: &str, section: &Section<'_>, tool: &mut ToolPolicy) {
        if let Some(at) = section.said("input_schema") {
            tool.input_schema = self.schema(at);
        }
        if let Some(at) = section.said("output_schema") {
            tool.output_schema = self.schema(at);
        }
        if let Some(at) = section.said("output") {
            let words = [
                ("off", OutputMode::Off),
                ("warn", OutputMode::Warn),
                ("enforce", OutputMode::Enforce),
            ];
            tool.output_mode = self.findings.word(at, &words).unwrap_or_default();
        }
        let Some(at) = section.said("definition") else {
            return;
        };
        for other in ["input_schema", "output_schema"] {
            if section.said(other).is_some() {
                let one = "definition";
                self.findings
                    .error(&at.pointer, Problem::Exclusive { one, other });
            }
        }
        tool.definition = self.definition(name, at);
    }

    fn schema(&mut self, at: &Placed<'_>) -> Value {
        if !matches!(at.value, Value::Object(_) | Value::Bool(_)) {
            self.findings.object(at);
        }
        at.value.clone()
    }

    fn definition(&mut self, name: &str, at: &Placed<'_>) -> Option<DefinitionRef> {
        let pointer = at.pointer.clone();
        if let Some(text) = at.value.as_str() {
            let (file, tool) = text.split_once('#').unwrap_or((text, name));
            return Some(DefinitionRef {
                file: file.to_owned(),
                tool: tool.to_owned(),
                pointer,
            });
        }
        let section = self.findings.section(at, DEFINITION);
        let Some(file) = section.said("file") else {
            self.findings
                .error(&pointer, Problem::Missing { key: "file" });
            return None;
        };
        let file = self.findings.text(file)?.to_owned();
        let tool = match section.said("tool") {
            Some(at) => self.findings.text(at)?.to_owned(),
            None => name.to_owned(),
        };
        Some(DefinitionRef {
            file,
            tool,
            pointer,
        })
    }

    fn limits(&mut self, at: &Placed<'_>) -> Limits {
        if at.value.as_str() == Some("unlimited") {
            return Limits::default();
        }
        if let Some(word) = at.value.as_str() {
            let problem = Problem::Word {
                word: word.to_owned(),
                suggestion: closest(word, ["unlimited"]),
                known: "unlimited, a whole number, or a mapping".to_owned(),
            };
            self.findings.error(&at.pointer, problem);
            return Limits::default();
        }
        if !at.value.is_object() {
            let max = self.findings.count(at).unwrap_or(self.rate.limit.max);
            let limit = Limit {
                max,
                ..self.rate.limit
            };
            return self.rate.scope.of(limit);
        }
        let section = self.findings.section(at, RATE_LIMIT);
        let window = section
            .said("window")
            .and_then(|at| self.findings.duration(at));
        let window = window.unwrap_or(self.rate.limit.window);
        let mut limit = |key: &str| {
            let max = section.said(key).and_then(|at| self.findings.count(at));
            max.map(|max| Limit { max, window })
        };
        let (agent, tool, plain) = (limit("agent"), limit("tool"), limit("limit"));
        if agent.is_some() || tool.is_some() {
            for (other, given) in [
                ("limit", plain.is_some()),
                ("scope", section.said("scope").is_some()),
            ] {
                if given {
                    let one = if agent.is_some() { "agent" } else { "tool" };
                    self.findings
                        .error(&at.pointer, Problem::Exclusive { one, other });
                }
            }
            return Limits { agent, tool };
        }
        let scope = section
            .said("scope")
            .and_then(|at| self.findings.word(at, SCOPES));
        let max = self.rate.limit.max;
        scope
            .unwrap_or(self.rate.scope)
            .of(plain.unwrap_or(Limit { max, window }))
    }

    fn group(&mut self, at: &Placed<'_>) -> GroupPolicy {
        let mut group = GroupPolicy::default();
        if at.value.is_null() {
            return group;
        }
        let section = self.findings.section(at, GROUP);
        group.description = self.line(&section, "description", "a description");
        if let Some(at) = section.said("when")
            && let Some(text) = self.findings.text(at)
        {
            match Condition::parse(text) {
                Ok(condition) => group.when = Some(condition),
                Err(invalid) => self.findings.error(&at.pointer, invalid),
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
        let section = self.findings.section(at, keys);
        if let Some(at) = section.said("kind") {
            let words = [
                ("agent", PrincipalKind::Agent),
                ("user", PrincipalKind::User),
                ("service", PrincipalKind::Service),
            ];
            principal.kind = self.findings.word(at, &words).unwrap_or_default();
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
        if let Some(at) = section.said("permissions") {
            grants.permissions = self.patterns(at);
        }
        if let Some(at) = section.said("deny") {
            grants.deny = self.denies(at);
        }
        principal
    }

    fn denies(&mut self, at: &Placed<'_>) -> Denies {
        let section = self.findings.section(at, DENY);
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
        denies
    }

    fn patterns(&mut self, at: &Placed<'_>) -> Vec<PermissionPattern> {
        let mut patterns = Vec::new();
        for (text, pointer) in self.findings.texts(at, "a permission") {
            match PermissionPattern::parse(&text) {
                Ok(pattern) => patterns.push(pattern),
                Err(invalid) => self.findings.error(&pointer, invalid),
            }
        }
        patterns
    }

    fn states(&mut self, at: &Placed<'_>) -> States {
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
        let section = self.findings.section(at, AUDIT);
        let mut rules = AuditRules::default();
        if let Some(at) = section.said("durability") {
            let words = [
                ("sync", Durability::Sync),
                ("group", Durability::Group),
                ("async", Durability::Async),
            ];
            rules.durability = self.findings.word(at, &words).unwrap_or_default();
        }
        if let Some(at) = section.said("on_failure") {
            let words = [("deny", OnFailure::Deny), ("allow", OnFailure::Allow)];
            rules.on_failure = self.findings.word(at, &words).unwrap_or_default();
        }
        if let Some(at) = section.said("arguments") {
            let words = [
                ("full", Arguments::Full),
                ("redacted", Arguments::Redacted),
                ("digest", Arguments::Digest),
            ];
            rules.arguments = self.findings.word(at, &words).unwrap_or_default();
        }
        if let Some(at) = section.said("redact") {
            let section = self.findings.section(at, REDACT);
            if let Some(at) = section.said("keys") {
                // A list of one's own must not uncover what is hidden without it.
                rules.redact_keys.extend(self.names(at, "a key"));
            }
            if let Some(at) = section.said("pointers") {
                for (text, pointer) in self.findings.texts(at, "a pointer") {
                    if text.starts_with('/') {
                        rules.redact_pointers.push(Pointer::from(text.as_str()));
                    } else {
                        let expected = "a JSON pointer into the arguments such as /card/number";
                        let found = format!("`{text}`");
                        self.findings
                            .error(&pointer, Problem::Type { expected, found });
                    }
                }
            }
        }
        rules
    }

    fn names(&mut self, at: &Placed<'_>, what: &'static str) -> Vec<String> {
        let texts = self.findings.texts(at, what);
        texts.into_iter().map(|(text, _)| text).collect()
    }

    fn group_names(&mut self, at: &Placed<'_>) -> Vec<String> {
        let mut names = Vec::new();
        for (name, pointer) in self.findings.texts(at, "a group's name") {
            if is_group_name(&name) {
                names.push(name);
            } else {
                self.findings.error(&pointer, Problem::GroupName);
            }
        }
        names
    }
}

impl RateDefaults {
    const fn limits(self) -> Limits {
        self.scope.of(self.limit)
    }
}

impl Scope {
    const fn of(self, limit: Limit) -> Limits {
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

/// How many misspelled names are compared with every known one.
const MAX_SUGGESTIONS: usize = 50;

/// Roles, tools and groups that are named have to be there: a misspelled refusal refuses nothing.
fn check_references(policy: &Policy, findings: &mut Findings) {
    let tools: BTreeSet<&str> = policy.tools.iter().map(|tool| tool.name.as_str()).collect();
    let mut suggestions = MAX_SUGGESTIONS;
    let mut closest = |word: &str, known: &mut dyn Iterator<Item = &str>| {
        suggestions = suggestions.saturating_sub(1);
        if suggestions == 0 {
            String::new()
        } else {
            closest(word, known)
        }
    };
    let known_groups = known_groups(policy);
    let holders = policy.principals.values().map(|it| &it.grants);
    for grants in holders.chain(policy.roles.values()).chain([&policy.anyone]) {
        let missing = |what: &'static str, name: &str, suggestion| Problem::Nothing {
            what,
            name: name.to_owned(),
            suggestion,
        };
        for role in &grants.roles {
            if !policy.roles.contains_key(role) {
                let near = closest(role, &mut policy.roles.keys().map(String::as_str));
                let pointer = grants.pointer.child("roles");
                findings.error(&pointer, missing("role", role, near));
            }
        }
        let denied = grants.pointer.child("deny");
        for tool in &grants.deny.tools {
            if !tools.contains(tool.as_str()) {
                let near = closest(tool, &mut tools.iter().copied());
                findings.error(&denied.child("tools"), missing("tool", tool, near));
            }
        }
        for group in &grants.deny.groups {
            if group != EVERY && !known_groups.contains(group.as_str()) {
                let near = closest(group, &mut known_groups.iter().copied());
                findings.error(&denied.child("groups"), missing("group", group, near));
            }
        }
    }
    for name in &policy.quarantine {
        if !tools.contains(name.as_str()) {
            let problem = Problem::Nothing {
                what: "tool",
                name: name.clone(),
                suggestion: closest(name, &mut tools.iter().copied()),
            };
            findings.error(&Pointer::of(["quarantine"]), problem);
        }
    }
    for (name, role) in &policy.roles {
        if takes_over_itself(name, &policy.roles) {
            let role_name = name.clone();
            findings.error(&role.pointer, Problem::RoleCircle { role: role_name });
        }
    }
}

/// Every group a tool is in or that is described, with the groups around it.
fn known_groups(policy: &Policy) -> BTreeSet<&str> {
    let of_tools = policy.tools.iter().flat_map(|tool| &tool.groups);
    of_tools
        .chain(policy.groups.keys())
        .flat_map(|group| super::group_and_parents(group))
        .chain([DEFAULT_GROUP])
        .collect()
}

fn takes_over_itself(start: &str, roles: &BTreeMap<String, Grants>) -> bool {
    let mut seen = BTreeSet::new();
    let mut pending: Vec<&str> = roles
        .get(start)
        .into_iter()
        .flat_map(|role| role.roles.iter().map(String::as_str))
        .collect();
    while let Some(name) = pending.pop() {
        if name == start {
            return true;
        }
        if seen.insert(name) {
            let next = roles.get(name).into_iter().flat_map(|role| &role.roles);
            pending.extend(next.map(String::as_str));
        }
    }
    false
}
