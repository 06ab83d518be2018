//! Decisions on features besides tools: resources, prompts, skills and extension methods. The rules that
//! name a feature decide it, and otherwise the defaults of its server.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use toolwarden_model::GroupName;

use super::groups::{ActiveGroups, GroupTable};
use super::profile::PermissionPatterns;
use super::request::{Request, RequestScope};
use super::{Guard, GuardedTool, NameMap, Quarantine, RequiredPermission, ToolId};
use crate::decision::{Denial, ReasonCode};
use crate::input::SchemaCheck;
use crate::policy::{
    FeatureKind, NamePattern, Policy, StateSet, ToolPolicy, UnlistedTools, normalize_name,
};

/// A feature of a server, as a request names it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Feature<'f> {
    /// The kind of feature.
    pub kind: FeatureKind,
    /// Its name or its server's own address, as it is in records.
    pub name: &'f str,
    /// Other names that rules may use for it: with and without the name of its server.
    pub aliases: &'f [String],
    /// The server that offers it; `None` if no server does. Tools may omit it.
    pub server: Option<&'f str>,
    /// Why it is quarantined, if it is.
    pub quarantine_reason: Option<&'f str>,
    /// The skills whose file or folder it is: a principal that may not use them may not read it.
    pub skills: &'f [Arc<str>],
    /// The method that uses it.
    pub method: &'f str,
}

impl<'f> From<&'f str> for Feature<'f> {
    fn from(tool: &'f str) -> Self {
        Self {
            name: tool,
            ..Self::default()
        }
    }
}

impl Feature<'_> {
    /// Its name in records: the plain name for a tool, the kind and the name for other features.
    #[must_use]
    pub fn record_name(&self) -> Cow<'_, str> {
        match self.kind {
            FeatureKind::Tool => Cow::Borrowed(self.name),
            kind => Cow::Owned(format!("{kind}:{}", self.name)),
        }
    }

    /// The names for looking up rules, normalized for comparison.
    fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let aliases = self.aliases.iter().map(String::as_str);
        let names = std::iter::once(self.name).chain(aliases);
        names.map(|name| normalize_name(self.kind, name))
    }
}

/// The rules of all features besides tools.
#[derive(Clone, Debug, Default)]
pub(super) struct Features {
    /// The rules for a single feature, by kind and name.
    exact: NameMap<(FeatureKind, Box<str>), FeatureRule>,
    /// The pattern rules, those with the most literal characters first.
    patterns: Vec<(NamePattern, FeatureRule)>,
    /// The defaults for features that no rule names, by server.
    servers: NameMap<Arc<str>, Arc<GuardedTool>>,
}

#[derive(Clone, Debug)]
struct FeatureRule {
    server: Option<Box<str>>,
    tool: Arc<GuardedTool>,
}

impl FeatureRule {
    fn is_for(&self, server: Option<&str>) -> bool {
        self.server.is_none() || self.server.as_deref() == server
    }
}

impl Features {
    pub(super) fn new(policy: &Policy, groups: &mut GroupTable) -> Self {
        let mut features = Self::default();
        for rules in &policy.features {
            let mut tool = compile_feature(rules, groups);
            if policy.quarantine.contains(&rules.name) {
                tool.quarantine = Some(Quarantine::default());
            }
            let rule = FeatureRule {
                server: rules.server.as_deref().map(Box::from),
                tool: Arc::new(tool),
            };
            let pattern = NamePattern::new(rules.kind, &rules.name);
            if pattern.is_exact() {
                let name = normalize_name(rules.kind, &rules.name).into();
                features.exact.insert((rules.kind, name), rule);
            } else {
                features.patterns.push((pattern, rule));
            }
        }
        let patterns = &mut features.patterns;
        patterns.sort_by(|(a, _), (b, _)| {
            let lengths = b.literal_length().cmp(&a.literal_length());
            lengths.then_with(|| a.cmp(b))
        });
        features
    }

    /// The rules that name a feature, else the defaults of its server.
    fn rules(&self, wanted: &Feature<'_>) -> Option<&Arc<GuardedTool>> {
        // A feature that no server offers does not exist, even if a rule names it.
        let server = wanted.server?;
        self.rules_by_name(wanted)
            .or_else(|| self.servers.get(server))
    }

    /// The rules that name a feature: by its exact name, else by the pattern with the most literal
    /// characters.
    fn rules_by_name(&self, wanted: &Feature<'_>) -> Option<&Arc<GuardedTool>> {
        if self.exact.is_empty() && self.patterns.is_empty() {
            return None;
        }
        let kind = wanted.kind;
        let names: Vec<Cow<'_, str>> = wanted.names().collect();
        for name in &names {
            let rule = self.exact.get(&(kind, Box::from(&**name)));
            if let Some(rule) = rule.filter(|rule| rule.is_for(wanted.server)) {
                return Some(&rule.tool);
            }
        }
        let mut patterns = self.patterns.iter();
        let fitting = patterns.find(|(pattern, rule)| {
            pattern.kind() == kind
                && rule.is_for(wanted.server)
                && names.iter().any(|name| pattern.matches(name))
        });
        fitting.map(|(_, rule)| &rule.tool)
    }

    /// The same rules, with the patterns that cover their required permissions.
    pub(super) fn covered_by(&self, patterns: &PermissionPatterns) -> Self {
        let mut features = self.clone();
        let rules = features.exact.values_mut();
        let rules = rules.chain(features.patterns.iter_mut().map(|(_, rule)| rule));
        let tools = rules.map(|rule| &mut rule.tool);
        for tool in tools.chain(features.servers.values_mut()) {
            if !tool.required.is_empty() {
                cover(&mut Arc::make_mut(tool).required, patterns);
            }
        }
        features
    }
}

fn cover(required: &mut [RequiredPermission], patterns: &PermissionPatterns) {
    for required in required {
        required.covered_by = patterns.covering(&required.permission);
    }
}

/// Rules reduced to what applies to features: they check no arguments and change no state.
fn compile_feature(rules: &ToolPolicy, groups: &mut GroupTable) -> GuardedTool {
    let (own, reachable_by) = groups.of_tool(&rules.groups);
    let states = match &rules.states {
        StateSet::Every => None,
        StateSet::Only(states) => Some(states.iter().cloned().collect()),
    };
    let required = rules
        .permissions
        .iter()
        .map(|permission| RequiredPermission {
            permission: permission.clone(),
            covered_by: Box::default(),
        });
    GuardedTool {
        // Deny rules do not refer to features by number.
        id: ToolId::MAX,
        kind: rules.kind,
        name: rules.name.as_str().into(),
        counted_as: rules.name.as_str().into(),
        destination: None,
        binds: Box::default(),
        uses_state: false,
        outside: false,
        also: Box::default(),
        version: None,
        groups: own,
        reachable_by,
        states,
        next_state: None,
        required: required.collect(),
        limits: rules.limits,
        input: Arc::new(SchemaCheck::Nothing),
        output: Arc::new(SchemaCheck::Nothing),
        output_mode: rules.output_mode,
        quarantine: None,
        join_names: true,
        removed: false,
    }
}

impl Guard {
    /// Adds servers to this guard, each with the defaults for features that no rule names. A policy that
    /// hides unlisted features ignores these defaults.
    #[must_use]
    pub fn with_servers(&self, servers: &BTreeMap<Arc<str>, Arc<ToolPolicy>>) -> Self {
        let mut guard = self.clone();
        let mut groups = GroupTable::clone(&self.groups);
        let mut features = Features::clone(&self.features);
        features.servers.clear();
        for (server, defaults) in servers {
            if self.unlisted == UnlistedTools::Serve {
                let mut tool = compile_feature(defaults, &mut groups);
                tool.join_names = false;
                cover(&mut tool.required, &self.patterns);
                features.servers.insert(Arc::clone(server), Arc::new(tool));
            }
        }
        guard.groups = Arc::new(groups);
        guard.features = Arc::new(features);
        guard
    }

    /// The rules that decide a feature besides a tool, under its own name.
    pub(super) fn known_feature(&self, wanted: &Feature<'_>) -> Result<Arc<GuardedTool>, Denial> {
        let kind = wanted.kind;
        let Some(rules) = self.features.rules(wanted) else {
            return Err(self.not_offered(wanted));
        };
        let quarantine = wanted.quarantine_reason.map(|why| Quarantine {
            why: Some(why.into()),
        });
        // Everything that one rule covers shares a counter: otherwise a client could evade the limit with
        // made-up addresses. Clients request completion on every keystroke, so it has its own counter.
        let use_of = if wanted.method == COMPLETION {
            COMPLETION
        } else {
            ""
        };
        let rule = if rules.join_names {
            ("rule", &*rules.name)
        } else {
            ("server", wanted.server.unwrap_or_default())
        };
        let counted_as = format!("{kind}\0{}\0{}\0{use_of}", rule.0, rule.1);
        Ok(Arc::new(GuardedTool {
            kind,
            name: wanted.record_name().into(),
            counted_as: counted_as.into(),
            quarantine: quarantine.or_else(|| rules.quarantine.clone()),
            ..GuardedTool::clone(rules)
        }))
    }

    fn not_offered(&self, wanted: &Feature<'_>) -> Denial {
        let (kind, name) = (wanted.kind, wanted.name);
        let reason = if wanted.server.is_some() && self.unlisted == UnlistedTools::Hide {
            format!("the policy does not name {kind} '{name}', and hides what it does not name")
        } else {
            format!("no server offers {kind} '{name}'")
        };
        Denial::new(ReasonCode::NotOffered, reason)
    }

    /// Denies a feature that a deny rule of the principal names.
    pub(super) fn check_not_denied(
        &self,
        wanted: &Feature<'_>,
        request: &Request<'_>,
        reach: &RequestScope<'_>,
    ) -> Result<(), Denial> {
        let denied = &reach.profile.denied_features;
        if denied.is_empty() || wanted.kind == FeatureKind::Tool {
            return Ok(());
        }
        let is_denied = wanted.names().any(|name| {
            let mut patterns = denied.iter().filter(|it| it.kind() == wanted.kind);
            patterns.any(|pattern| pattern.matches(&name))
        });
        if !is_denied {
            return Ok(());
        }
        let (principal, kind, name) = (request.principal, wanted.kind, wanted.name);
        let reason = format!("a deny rule keeps '{principal}' from {kind} '{name}'");
        Err(Denial::new(ReasonCode::DeniedByRule, reason))
    }

    /// Denies a file unless the request also reaches the skills that the file belongs to.
    pub(super) fn check_skills(
        &self,
        wanted: &Feature<'_>,
        request: &Request<'_>,
        reach: &RequestScope<'_>,
        activity: &mut ActiveGroups<'_>,
    ) -> Result<(), Denial> {
        for name in wanted.skills {
            let skill = Feature {
                kind: FeatureKind::Skill,
                name,
                server: wanted.server,
                ..Feature::default()
            };
            let known = self.known_feature(&skill)?;
            self.check_not_denied(&skill, request, reach)?;
            self.check_admission(&known, request, reach, activity)?;
        }
        Ok(())
    }

    /// Which features a request may reach: those that pass every gate up to permissions, and nothing
    /// else.
    ///
    /// # Errors
    /// The request names groups that the principal may not request.
    pub fn reachable<'f>(
        &self,
        request: &Request<'_>,
        features: impl IntoIterator<Item = Feature<'f>>,
    ) -> Result<ReachableFeatures, Denial> {
        let reach = self.resolve_request(request)?;
        let mut activity = ActiveGroups::new(&self.groups, request.condition_inputs);
        let admitted = features.into_iter().map(|wanted| {
            let known = self.known_feature(&wanted);
            known
                .and_then(|known| {
                    self.check_not_denied(&wanted, request, &reach)?;
                    self.check_admission(&known, request, &reach, &mut activity)?;
                    self.check_skills(&wanted, request, &reach, &mut activity)
                })
                .is_ok()
        });
        Ok(ReachableFeatures {
            admitted: admitted.collect(),
            unknown_groups: reach.unknown,
            dropped_groups: reach.dropped_groups,
        })
    }

    /// Whether rules for features besides tools name states, so that a transition changes their lists.
    #[must_use]
    pub fn has_features_by_state(&self) -> bool {
        let features = &self.features;
        let exact = features.exact.values();
        let rules = exact.chain(features.patterns.iter().map(|(_, rule)| rule));
        let tools = rules.map(|rule| &rule.tool);
        tools
            .chain(features.servers.values())
            .any(|tool| tool.states.is_some())
    }
}

/// Which of the given features a request may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachableFeatures {
    /// For each feature, in the given order, whether the request may reach it.
    pub admitted: Vec<bool>,
    /// Requested groups that are empty.
    pub unknown_groups: Vec<GroupName>,
    /// Requested groups that were not granted and were left out.
    pub dropped_groups: Vec<GroupName>,
}

/// The method that completes arguments.
const COMPLETION: &str = "completion/complete";
