//! What servers offer besides tools, ready to be decided: resources, prompts, skills and methods of
//! extensions. Each is decided by the rules that name it, else by the defaults of its server.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::groups::{Activity, Groups};
use super::profile::Patterns;
use super::request::{Reach, Request};
use super::{Guard, Names, Quarantine, Required, Tool, ToolId};
use crate::decision::{Code, Denial};
use crate::input::Check;
use crate::policy::{FeatureKind, NamePattern, Policy, States, ToolPolicy, Unlisted, normalized};

/// One thing a server offers, as a request names it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Feature<'f> {
    /// What it is.
    pub kind: FeatureKind,
    /// Its name or its server's own address; records have it.
    pub name: &'f str,
    /// Other names by which rules may know it: with and without the name of its server.
    pub aliases: &'f [String],
    /// The server that offers it; none where no server does. Tools need not say it.
    pub server: Option<&'f str>,
    /// Why it is quarantined, where it is.
    pub withheld: Option<&'f str>,
    /// The skills whose file or folder it is: who may not use these may not read it.
    pub skills: &'f [Arc<str>],
    /// The method by which it is used.
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
    /// Its name in records: that of a tool as it is, of others with their kind before it.
    #[must_use]
    pub fn record_name(&self) -> Cow<'_, str> {
        match self.kind {
            FeatureKind::Tool => Cow::Borrowed(self.name),
            kind => Cow::Owned(format!("{kind}:{}", self.name)),
        }
    }

    /// The names rules are looked up by, in the spelling in which they are compared.
    fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let aliases = self.aliases.iter().map(String::as_str);
        let names = std::iter::once(self.name).chain(aliases);
        names.map(|name| normalized(self.kind, name))
    }
}

/// The rules of everything besides tools.
#[derive(Clone, Debug, Default)]
pub(super) struct Features {
    /// Those that name one thing, by kind and name.
    exact: Names<(FeatureKind, Box<str>), Rule>,
    /// The others, those that say most of a name first.
    patterns: Vec<(NamePattern, Rule)>,
    /// What is named by no rule, by server.
    servers: Names<Arc<str>, Arc<Tool>>,
}

#[derive(Clone, Debug)]
struct Rule {
    server: Option<Box<str>>,
    tool: Arc<Tool>,
}

impl Rule {
    fn is_for(&self, server: Option<&str>) -> bool {
        self.server.is_none() || self.server.as_deref() == server
    }
}

impl Features {
    pub(super) fn new(policy: &Policy, groups: &mut Groups) -> Self {
        let mut features = Self::default();
        for rules in &policy.features {
            let mut tool = compiled(rules, groups);
            if policy.quarantine.contains(&rules.name) {
                tool.quarantine = Some(Quarantine::default());
            }
            let rule = Rule {
                server: rules.server.as_deref().map(Box::from),
                tool: Arc::new(tool),
            };
            let pattern = NamePattern::new(rules.kind, &rules.name);
            if pattern.is_exact() {
                let name = normalized(rules.kind, &rules.name).into();
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
    fn rules(&self, wanted: &Feature<'_>) -> Option<&Arc<Tool>> {
        // What no server offers is not there, whatever the rules say.
        let server = wanted.server?;
        self.named(wanted).or_else(|| self.servers.get(server))
    }

    /// The rules that name a feature: exactly, else by the pattern that says most of its name.
    fn named(&self, wanted: &Feature<'_>) -> Option<&Arc<Tool>> {
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

    /// The same rules, with the patterns that cover what they require.
    pub(super) fn covered_by(&self, patterns: &Patterns) -> Self {
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

fn cover(required: &mut [Required], patterns: &Patterns) {
    for required in required {
        required.covered_by = patterns.covering(&required.permission);
    }
}

/// Rules without what only tools have: they check no arguments and move no workflow.
fn compiled(rules: &ToolPolicy, groups: &mut Groups) -> Tool {
    let (own, reachable_by) = groups.of_tool(&rules.groups);
    let states = match &rules.states {
        States::Every => None,
        States::Only(states) => Some(states.iter().map(|it| Arc::from(it.as_str())).collect()),
    };
    let required = rules.permissions.iter().map(|permission| Required {
        permission: permission.clone(),
        covered_by: Box::default(),
    });
    Tool {
        // No deny rule names it by number.
        id: ToolId::MAX,
        kind: rules.kind,
        name: rules.name.as_str().into(),
        counted_as: rules.name.as_str().into(),
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
        input: Arc::new(Check::Nothing),
        output: Arc::new(Check::Nothing),
        output_mode: rules.output_mode,
        quarantine: None,
        listed: true,
        gone: false,
    }
}

impl Guard {
    /// This guard with servers, and what it decides by of what they offer and no rule names: the
    /// defaults of tools. A policy that hides what it does not name takes no notice of them.
    #[must_use]
    pub fn with_servers(&self, servers: &BTreeMap<Arc<str>, Arc<ToolPolicy>>) -> Self {
        let mut guard = self.clone();
        let mut groups = Groups::clone(&self.groups);
        let mut features = Features::clone(&self.features);
        features.servers.clear();
        for (server, defaults) in servers {
            if self.unlisted == Unlisted::Serve {
                let mut tool = compiled(defaults, &mut groups);
                tool.listed = false;
                cover(&mut tool.required, &self.patterns);
                features.servers.insert(Arc::clone(server), Arc::new(tool));
            }
        }
        guard.groups = Arc::new(groups);
        guard.features = Arc::new(features);
        guard
    }

    /// What a feature besides a tool is decided by, under its own name.
    pub(super) fn known_feature(&self, wanted: &Feature<'_>) -> Result<Arc<Tool>, Denial> {
        let kind = wanted.kind;
        let Some(rules) = self.features.rules(wanted) else {
            return Err(self.not_offered(wanted));
        };
        let quarantine = wanted.withheld.map(|why| Quarantine {
            why: Some(why.into()),
        });
        // What one rule covers counts together, or the rule would limit nothing where addresses are
        // made up. Completion is asked for with every key that is pressed, and counts by itself.
        let use_of = if wanted.method == COMPLETION {
            COMPLETION
        } else {
            ""
        };
        let rule = if rules.listed {
            ("rule", &*rules.name)
        } else {
            ("server", wanted.server.unwrap_or_default())
        };
        let counted_as = format!("{kind}\0{}\0{}\0{use_of}", rule.0, rule.1);
        Ok(Arc::new(Tool {
            kind,
            name: wanted.record_name().into(),
            counted_as: counted_as.into(),
            quarantine: quarantine.or_else(|| rules.quarantine.clone()),
            ..Tool::clone(rules)
        }))
    }

    fn not_offered(&self, wanted: &Feature<'_>) -> Denial {
        let (kind, name) = (wanted.kind, wanted.name);
        let reason = if wanted.server.is_some() && self.unlisted == Unlisted::Hide {
            format!("the policy does not name {kind} '{name}', and hides what it does not name")
        } else {
            format!("no server offers {kind} '{name}'")
        };
        Denial::new(Code::NotOffered, reason)
    }

    /// Whether a deny rule of the principal names the feature.
    pub(super) fn not_denied(
        &self,
        wanted: &Feature<'_>,
        request: &Request<'_>,
        reach: &Reach<'_>,
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
        Err(Denial::new(Code::DeniedByRule, reason))
    }

    /// The skills that a file belongs to have to be within reach, too.
    pub(super) fn skills_admitted(
        &self,
        wanted: &Feature<'_>,
        request: &Request<'_>,
        reach: &Reach<'_>,
        activity: &mut Activity<'_>,
    ) -> Result<(), Denial> {
        for name in wanted.skills {
            let skill = Feature {
                kind: FeatureKind::Skill,
                name,
                server: wanted.server,
                ..Feature::default()
            };
            let known = self.known_feature(&skill)?;
            self.not_denied(&skill, request, reach)?;
            self.admits(&known, request, reach, activity)?;
        }
        Ok(())
    }

    /// Which features a request may reach: those that pass every gate up to permissions, and nothing
    /// else.
    ///
    /// # Errors
    /// The request asks for groups it may not ask for.
    pub fn reachable<'f>(
        &self,
        request: &Request<'_>,
        features: impl IntoIterator<Item = Feature<'f>>,
    ) -> Result<ReachableFeatures, Denial> {
        let reach = self.reach(request)?;
        let mut activity = Activity::new(&self.groups, request.circumstances);
        let admitted = features.into_iter().map(|wanted| {
            let known = self.known_feature(&wanted);
            known
                .and_then(|known| {
                    self.not_denied(&wanted, request, &reach)?;
                    self.admits(&known, request, &reach, &mut activity)?;
                    self.skills_admitted(&wanted, request, &reach, &mut activity)
                })
                .is_ok()
        });
        Ok(ReachableFeatures {
            admitted: admitted.collect(),
            unknown_groups: reach.unknown,
            narrowed: reach.narrowed,
        })
    }

    /// Whether rules for other things than tools name states, so that a workflow changes what is listed.
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

/// Which of some features a request may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachableFeatures {
    /// For each, in the order given, whether it may.
    pub admitted: Vec<bool>,
    /// Groups asked for that nothing is in.
    pub unknown_groups: Vec<String>,
    /// Groups asked for that were not granted and left out.
    pub narrowed: Vec<String>,
}

/// The method that completes arguments.
const COMPLETION: &str = "completion/complete";
