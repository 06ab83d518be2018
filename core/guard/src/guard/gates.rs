//! One function for each gate; the order is that of [`Gate::ALL`](crate::Gate::ALL).

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::features::Feature;
use super::groups::{Activity, Switch};
use super::permit::{Admitted, Overrun};
use super::request::{Reach, Request};
use super::{Guard, Tool};
use crate::decision::{Code, Denial, Gate, INPUT_FAILED};
use crate::input::{Check, well_formed};
use crate::policy::{FeatureKind, Limits};
use crate::window::Limit;

/// What one gate says about a call, for an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The gate.
    pub gate: Gate,
    /// What lets the call pass, or what refuses it; none where the gate cannot be asked.
    pub outcome: Option<Result<String, Denial>>,
}

/// The most tools that are looked at for the next step of a workflow, and the most that are told.
const MAX_LEADS: (usize, usize) = (64, 3);

impl Guard {
    /// Lets a call pass every gate that needs neither counters nor arguments.
    ///
    /// # Errors
    /// The first gate that refuses decides.
    pub fn admit<'g, 'f>(
        &'g self,
        request: &Request<'_>,
        wanted: impl Into<Feature<'f>>,
    ) -> Result<Admitted<'g>, Denial> {
        let wanted = wanted.into();
        let known = self.known(&wanted, request.variant)?;
        not_quarantined(&known)?;
        let reach = self.reach(request)?;
        self.not_denied(&wanted, request, &reach)?;
        let mut activity = Activity::new(&self.groups, request.circumstances);
        if let Err(mut denial) = self.admits(&known, request, &reach, &mut activity) {
            if denial.code == Code::FilteredByState {
                denial.leads = self.leads(&known, request, &reach, &mut activity);
            }
            return Err(denial);
        }
        self.skills_admitted(&wanted, request, &reach, &mut activity)?;
        Ok(Admitted::new(known, reach))
    }

    /// Tools the request reaches that lead to a state in which a tool is available.
    fn leads(
        &self,
        tool: &Tool,
        request: &Request<'_>,
        reach: &Reach<'_>,
        activity: &mut Activity<'_>,
    ) -> Vec<Arc<str>> {
        let states = tool.states.iter().flatten();
        let leading = states.filter_map(|state| Some((state, self.tools.leading.get(state)?)));
        let mut leads: Vec<Arc<str>> = Vec::new();
        // Only so many are looked at, so that a refusal stays cheap.
        for (state, id) in leading
            .flat_map(|(state, ids)| ids.iter().map(move |id| (state, id)))
            .take(MAX_LEADS.0)
        {
            let Some(other) = self.tools.list.get(*id as usize) else {
                continue;
            };
            let leads_there = !other.gone && other.next_state.as_ref() == Some(state);
            if leads_there
                && leads.len() < MAX_LEADS.1
                && !leads.contains(&other.name)
                && self.admits(other, request, reach, activity).is_ok()
            {
                leads.push(Arc::clone(&other.name));
            }
        }
        leads
    }

    /// The gates from quarantine to permissions.
    pub(super) fn admits(
        &self,
        tool: &Tool,
        request: &Request<'_>,
        reach: &Reach<'_>,
        activity: &mut Activity<'_>,
    ) -> Result<(), Denial> {
        not_quarantined(tool)?;
        self.in_group(tool, request, reach, activity)?;
        in_state(tool, request.state)?;
        permitted(tool, request.principal, reach)
    }

    fn known(
        &self,
        wanted: &Feature<'_>,
        variant: Option<&str>,
    ) -> Result<Cow<'_, Arc<Tool>>, Denial> {
        let name = wanted.name;
        if wanted.kind != FeatureKind::Tool {
            return self.known_feature(wanted).map(Cow::Owned);
        }
        well_formed(name)?;
        let known = self.tool(name).ok_or_else(|| {
            let reason = format!("connector '{name}' is not registered");
            Denial::new(Code::UnknownTool, reason)
        })?;
        Ok(Cow::Borrowed(self.tools.for_variant(known, variant)))
    }

    fn in_group(
        &self,
        tool: &Tool,
        request: &Request<'_>,
        reach: &Reach<'_>,
        activity: &mut Activity<'_>,
    ) -> Result<(), Denial> {
        if reach.profile.denies_tool(tool.id, &tool.reachable_by)
            || reach.profile.denies_any(&tool.also)
        {
            return Err(Denial::new(
                Code::DeniedByRule,
                if tool.kind == FeatureKind::Tool {
                    format!(
                        "a deny rule keeps '{}' from '{}'",
                        request.principal, tool.name
                    )
                } else {
                    format!(
                        "a deny rule keeps '{}' from {}",
                        request.principal,
                        tool.label()
                    )
                },
            ));
        }
        let requested = |group: u32| {
            reach.every
                || self
                    .groups
                    .chain(group)
                    .iter()
                    .any(|id| reach.groups.contains(id))
        };
        // A tool without groups is reached by a request for every group, and by nothing else.
        if reach.every && tool.groups.is_empty() {
            return Ok(());
        }
        let mut off = None;
        for group in &tool.groups {
            if requested(*group) {
                if activity.is_on(*group) {
                    return Ok(());
                }
                off = Some(*group);
            }
        }
        if let Some(group) = off {
            let name = self.groups.name(group);
            return Err(Denial::new(
                Code::GroupOff,
                format!("group '{name}' is off{}", self.why_off(group, activity)),
            ));
        }
        let asked: Vec<&str> = request.groups.names().collect();
        let own: Vec<&str> = tool.groups.iter().map(|id| self.groups.name(*id)).collect();
        Err(Denial::new(
            Code::FilteredByGroup,
            format!(
                "{} is not in the requested groups (requested: {}; {}: {})",
                tool.label(),
                listed(&asked),
                tool.kind,
                listed(&own)
            ),
        ))
    }

    fn why_off(&self, group: u32, activity: &mut Activity<'_>) -> String {
        for id in self.groups.chain(group) {
            let Some(group) = self.groups.get(*id) else {
                continue;
            };
            let Some(condition) = &group.condition else {
                continue;
            };
            let condition = condition.text();
            match activity.switch(*id) {
                Switch::On => {}
                Switch::Off => return format!(": `{condition}` does not hold"),
                Switch::Unevaluable(why) => {
                    return format!(": `{condition}` cannot be evaluated ({why})");
                }
            }
        }
        String::new()
    }

    /// What every gate says about a call, also those behind the first that refuses.
    #[must_use]
    pub fn explain<'f>(
        &self,
        request: &Request<'_>,
        wanted: impl Into<Feature<'f>>,
        arguments: &Value,
        windows: impl FnOnce(&str, &Limits) -> Result<(), Overrun>,
    ) -> Vec<Step> {
        let wanted = wanted.into();
        let mut steps = Vec::new();
        let mut told = |gate, outcome| steps.push(Step { gate, outcome });
        let known = self.known(&wanted, request.variant);
        let found = match known {
            Ok(tool) => {
                let version = tool.version.as_ref();
                let version = version.map_or(String::new(), |it| format!(", version {it}"));
                let who = if tool.listed {
                    "the policy has it"
                } else {
                    "a server has it, and the policy serves what it does not name"
                };
                told(Gate::Known, Some(Ok(format!("{who}{version}"))));
                tool
            }
            Err(denial) => {
                told(Gate::Known, Some(Err(denial)));
                for gate in Gate::ALL.iter().skip(1).filter(|it| **it != Gate::Audit) {
                    told(*gate, None);
                }
                return steps;
            }
        };
        let found = &found;
        let calm = not_quarantined(found).map(|()| "it is not quarantined".to_owned());
        told(Gate::Quarantine, Some(calm));
        let mut activity = Activity::new(&self.groups, request.circumstances);
        let asked: Vec<&str> = request.groups.names().collect();
        match self.reach(request) {
            Err(denial) => {
                told(Gate::Group, Some(Err(denial)));
                told(Gate::State, Some(self.explain_state(found, request.state)));
                told(Gate::Permission, None);
            }
            Ok(reach) => {
                let denied = self.not_denied(&wanted, request, &reach);
                let grouped =
                    denied.and_then(|()| self.in_group(found, request, &reach, &mut activity));
                let grouped = grouped.map(|()| {
                    let left = asked
                        .iter()
                        .filter(|it| !reach.narrowed.iter().any(|no| no == *it));
                    let left: Vec<&str> = left.copied().collect();
                    if left.len() < asked.len() {
                        return format!(
                            "asked for {}; what is granted of that reaches it",
                            listed(&asked)
                        );
                    }
                    format!(
                        "asked for {}, which is granted and reaches it",
                        listed(&left)
                    )
                });
                told(Gate::Group, Some(grouped));
                told(Gate::State, Some(self.explain_state(found, request.state)));
                let held = permitted(found, request.principal, &reach).map(|()| {
                    let names: Vec<&str> = found
                        .required
                        .iter()
                        .map(|it| it.permission.as_str())
                        .collect();
                    match names.as_slice() {
                        [] => "it requires none".to_owned(),
                        names => format!("'{}' holds {}", request.principal, names.join(", ")),
                    }
                });
                told(Gate::Permission, Some(held));
            }
        }
        let metered = match windows(&found.counted_as, &found.limits) {
            Ok(()) => Ok(limits_in_words(&found.limits)),
            Err(overrun) => Err(rate_denial(found, &overrun)),
        };
        told(Gate::Rate, Some(metered));
        let valid = valid_input(found, arguments).map(|()| match &*found.input {
            Check::Nothing => "it has no input schema".to_owned(),
            Check::Schema { .. } | Check::Broken(_) => {
                "the arguments satisfy the input schema".to_owned()
            }
        });
        told(Gate::Input, Some(valid));
        steps
    }

    fn explain_state(&self, tool: &Tool, state: &str) -> Result<String, Denial> {
        in_state(tool, state).map(|()| match &tool.states {
            None => "it is available in every state".to_owned(),
            Some(_) => format!("it is available in state '{state}'"),
        })
    }
}

fn not_quarantined(tool: &Tool) -> Result<(), Denial> {
    let Some(quarantine) = &tool.quarantine else {
        return Ok(());
    };
    let mut reason = format!("{} is quarantined", tool.label());
    if let Some(why) = &quarantine.why {
        reason.push_str(": ");
        reason.push_str(why);
    }
    Err(Denial::new(Code::Quarantined, reason))
}

fn in_state(tool: &Tool, state: &str) -> Result<(), Denial> {
    if tool.available_in(state) {
        return Ok(());
    }
    let states: Vec<&str> = tool.states.iter().flatten().map(|it| &**it).collect();
    Err(Denial::new(
        Code::FilteredByState,
        format!(
            "{} is not available in state '{state}' (available in: {})",
            tool.label(),
            listed(&states)
        ),
    ))
}

fn permitted(tool: &Tool, principal: &str, reach: &Reach<'_>) -> Result<(), Denial> {
    if tool.required.iter().all(|it| reach.profile.holds(it)) {
        return Ok(());
    }
    let lacking = tool.required.iter().filter(|it| !reach.profile.holds(it));
    let names: Vec<&str> = lacking.map(|it| it.permission.as_str()).collect();
    Err(Denial::new(
        Code::MissingPermissions,
        format!(
            "agent '{principal}' is missing required permissions: {}",
            names.join(", ")
        ),
    ))
}

/// A tool as the connectorguard document calls it, anything else by its kind.
fn connector(tool: &Tool) -> String {
    if tool.kind == FeatureKind::Tool {
        format!("connector '{}'", tool.name)
    } else {
        tool.label()
    }
}

pub(super) fn rate_denial(tool: &Tool, overrun: &Overrun) -> Denial {
    match overrun {
        Overrun::Limit { limit, retry_after } => {
            let mut denial = Denial::new(
                Code::RateLimited,
                format!(
                    "rate limit exceeded for {} (limit: {} req/{}s)",
                    connector(tool),
                    limit.max,
                    seconds(limit.window)
                ),
            );
            denial.retry_after = Some(*retry_after);
            denial
        }
        Overrun::Capacity { retry_after } => {
            let mut denial = Denial::new(
                Code::RateCapacity,
                format!(
                    "no room to count calls of {} for one more principal",
                    connector(tool)
                ),
            );
            denial.retry_after = Some(*retry_after);
            denial
        }
    }
}

pub(super) fn valid_input(tool: &Tool, arguments: &Value) -> Result<(), Denial> {
    if let Check::Broken(broken) = &*tool.input {
        return Err(Denial::new(
            Code::BrokenSchema,
            format!("{INPUT_FAILED}{broken}"),
        ));
    }
    if !arguments.is_object() {
        // Arguments are named; a bare value would pass a schema that says nothing of its type.
        let found = toolwarden_model::json::type_name(arguments);
        let message = format!("arguments must be an object, not {found}");
        return Err(Denial::of_input(message));
    }
    tool.input.strictly(arguments)?;
    tool.carries_bound(arguments)?;
    let faults = tool.input.faults(arguments);
    let Some(first) = faults.first() else {
        return Ok(());
    };
    let mut denial = Denial::new(
        Code::InvalidInput,
        format!("{INPUT_FAILED}{}", first.message),
    );
    denial.faults = faults;
    Err(denial)
}

fn limits_in_words(limits: &Limits) -> String {
    let of = |limit: &Limit, whose: &str| {
        format!(
            "within {} calls in {}s {whose}",
            limit.max,
            seconds(limit.window)
        )
    };
    let agent = limits.agent.as_ref().map(|it| of(it, "for this principal"));
    let tool = limits.tool.as_ref().map(|it| of(it, "for all principals"));
    let words: Vec<String> = agent.into_iter().chain(tool).collect();
    if words.is_empty() {
        return "its rate is not limited".to_owned();
    }
    words.join(" and ")
}

/// Whole seconds where they are, as the document writes them.
fn seconds(time: Duration) -> String {
    if time.subsec_nanos() == 0 {
        time.as_secs().to_string()
    } else {
        time.as_secs_f64().to_string()
    }
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.join(", ")
}
