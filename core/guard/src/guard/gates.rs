//! One function for each gate, in the order of [`Gate::ALL`](crate::Gate::ALL).

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolwarden_model::{GroupName, StateName};

use super::features::Feature;
use super::groups::{ActiveGroups, GroupStatus};
use super::permit::{AdmittedCall, LimitExceeded};
use super::request::{Request, RequestScope};
use super::{Guard, GuardedTool};
use crate::decision::{Denial, Gate, INPUT_FAILED, ReasonCode};
use crate::input::{SchemaCheck, check_tool_name};
use crate::policy::{FeatureKind, ToolLimits};
use crate::window::Limit;

/// The result of one gate, for an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateResult {
    /// The gate.
    pub gate: Gate,
    /// Why the call passes or is denied; `None` if the gate cannot be evaluated.
    pub outcome: Option<Result<String, Denial>>,
}

/// The maximum number of tools that are examined for the next step of a workflow, and that are listed.
const MAX_NEXT_TOOLS: (usize, usize) = (64, 3);

impl Guard {
    /// Evaluates every gate that needs neither counters nor arguments.
    ///
    /// # Errors
    /// The denial of the first gate that denies the call.
    pub fn admit<'g, 'f>(
        &'g self,
        request: &Request<'_>,
        wanted: impl Into<Feature<'f>>,
    ) -> Result<AdmittedCall<'g>, Denial> {
        let wanted = wanted.into();
        let known = self.find_tool(&wanted, request.variant)?;
        check_quarantine(&known)?;
        let reach = self.resolve_request(request)?;
        self.check_not_denied(&wanted, request, &reach)?;
        let mut activity = ActiveGroups::new(&self.groups, request.condition_inputs);
        if let Err(mut denial) = self.check_admission(&known, request, &reach, &mut activity) {
            if denial.code == ReasonCode::FilteredByState {
                denial.next_tools = self.next_tools(&known, request, &reach, &mut activity);
            }
            return Err(denial);
        }
        self.check_skills(&wanted, request, &reach, &mut activity)?;
        Ok(AdmittedCall::new(known, reach))
    }

    /// Tools within reach of the request that lead to a state in which the given tool is available.
    fn next_tools(
        &self,
        tool: &GuardedTool,
        request: &Request<'_>,
        reach: &RequestScope<'_>,
        activity: &mut ActiveGroups<'_>,
    ) -> Vec<Arc<str>> {
        let states = tool.states.iter().flatten();
        let leading =
            states.filter_map(|state| Some((state, self.tools.tools_leading_to.get(state)?)));
        let mut leads: Vec<Arc<str>> = Vec::new();
        // The number is bounded, so that a denial stays cheap.
        for (state, id) in leading
            .flat_map(|(state, ids)| ids.iter().map(move |id| (state, id)))
            .take(MAX_NEXT_TOOLS.0)
        {
            let Some(other) = self.tools.list.get(*id as usize) else {
                continue;
            };
            let leads_there = !other.removed && other.next_state.as_ref() == Some(state);
            if leads_there
                && leads.len() < MAX_NEXT_TOOLS.1
                && !leads.contains(&other.name)
                && self
                    .check_admission(other, request, reach, activity)
                    .is_ok()
            {
                leads.push(Arc::clone(&other.name));
            }
        }
        leads
    }

    /// The gates from quarantine to permissions.
    pub(super) fn check_admission(
        &self,
        tool: &GuardedTool,
        request: &Request<'_>,
        reach: &RequestScope<'_>,
        activity: &mut ActiveGroups<'_>,
    ) -> Result<(), Denial> {
        check_quarantine(tool)?;
        self.check_group(tool, request, reach, activity)?;
        check_state(tool, request.state)?;
        check_permissions(tool, request.principal, reach)
    }

    fn find_tool(
        &self,
        wanted: &Feature<'_>,
        variant: Option<&str>,
    ) -> Result<Cow<'_, Arc<GuardedTool>>, Denial> {
        let name = wanted.name;
        if wanted.kind != FeatureKind::Tool {
            return self.known_feature(wanted).map(Cow::Owned);
        }
        check_tool_name(name)?;
        let known = self.tool(name).ok_or_else(|| {
            let reason = format!("connector '{name}' is not registered");
            Denial::new(ReasonCode::UnknownTool, reason)
        })?;
        Ok(Cow::Borrowed(self.tools.for_variant(known, variant)))
    }

    fn check_group(
        &self,
        tool: &GuardedTool,
        request: &Request<'_>,
        reach: &RequestScope<'_>,
        activity: &mut ActiveGroups<'_>,
    ) -> Result<(), Denial> {
        if reach.profile.denies_tool(tool.id, &tool.reachable_by)
            || reach.profile.denies_any(&tool.also)
        {
            return Err(Denial::new(
                ReasonCode::DeniedByRule,
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
        // Only a request for every group reaches a tool without groups.
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
                ReasonCode::GroupOff,
                format!("group '{name}' is off{}", self.off_reason(group, activity)),
            ));
        }
        let asked: Vec<&str> = request.groups.names().map(GroupName::as_str).collect();
        let own = tool.groups.iter().map(|id| self.groups.name(*id).as_str());
        let own: Vec<&str> = own.collect();
        Err(Denial::new(
            ReasonCode::FilteredByGroup,
            format!(
                "{} is not in the requested groups (requested: {}; {}: {})",
                tool.label(),
                join_names(&asked),
                tool.kind,
                join_names(&own)
            ),
        ))
    }

    fn off_reason(&self, group: u32, activity: &mut ActiveGroups<'_>) -> String {
        for id in self.groups.chain(group) {
            let Some(group) = self.groups.get(*id) else {
                continue;
            };
            let Some(condition) = &group.condition else {
                continue;
            };
            let condition = condition.text();
            match activity.status(*id) {
                GroupStatus::On => {}
                GroupStatus::Off => return format!(": `{condition}` does not hold"),
                GroupStatus::Unevaluable(why) => {
                    return format!(": `{condition}` cannot be evaluated ({why})");
                }
            }
        }
        String::new()
    }

    /// The result of every gate for a call, including the gates after the first denial.
    #[must_use]
    pub fn explain<'f>(
        &self,
        request: &Request<'_>,
        wanted: impl Into<Feature<'f>>,
        arguments: &Value,
        windows: impl FnOnce(&str, &ToolLimits) -> Result<(), LimitExceeded>,
    ) -> Vec<GateResult> {
        let wanted = wanted.into();
        let mut steps = Vec::new();
        let mut told = |gate, outcome| steps.push(GateResult { gate, outcome });
        let known = self.find_tool(&wanted, request.variant);
        let found = match known {
            Ok(tool) => {
                let version = tool.version.as_ref();
                let version = version.map_or(String::new(), |it| format!(", version {it}"));
                let who = if tool.join_names {
                    "the policy names it"
                } else {
                    "a server has it, and the policy serves tools that it does not name"
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
        let calm = check_quarantine(found).map(|()| "it is not quarantined".to_owned());
        told(Gate::Quarantine, Some(calm));
        let mut activity = ActiveGroups::new(&self.groups, request.condition_inputs);
        let asked: Vec<&str> = request.groups.names().map(GroupName::as_str).collect();
        match self.resolve_request(request) {
            Err(denial) => {
                told(Gate::Group, Some(Err(denial)));
                told(Gate::State, Some(self.explain_state(found, request.state)));
                told(Gate::Permission, None);
            }
            Ok(reach) => {
                let denied = self.check_not_denied(&wanted, request, &reach);
                let grouped =
                    denied.and_then(|()| self.check_group(found, request, &reach, &mut activity));
                let grouped = grouped.map(|()| {
                    let left = asked
                        .iter()
                        .filter(|it| !reach.dropped_groups.iter().any(|no| *no == **it));
                    let left: Vec<&str> = left.copied().collect();
                    if left.len() < asked.len() {
                        return format!(
                            "requested {}; the granted part contains it",
                            join_names(&asked)
                        );
                    }
                    format!(
                        "requested {}, which is granted and contains it",
                        join_names(&left)
                    )
                });
                told(Gate::Group, Some(grouped));
                told(Gate::State, Some(self.explain_state(found, request.state)));
                let held = check_permissions(found, request.principal, &reach).map(|()| {
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
        let valid = check_input(found, arguments).map(|()| match &*found.input {
            SchemaCheck::Nothing => "it has no input schema".to_owned(),
            SchemaCheck::Schema { .. } | SchemaCheck::Broken(_) => {
                "the arguments satisfy the input schema".to_owned()
            }
        });
        told(Gate::Input, Some(valid));
        steps
    }

    fn explain_state(&self, tool: &GuardedTool, state: &StateName) -> Result<String, Denial> {
        check_state(tool, state).map(|()| match &tool.states {
            None => "it is available in every state".to_owned(),
            Some(_) => format!("it is available in state '{state}'"),
        })
    }
}

fn check_quarantine(tool: &GuardedTool) -> Result<(), Denial> {
    let Some(quarantine) = &tool.quarantine else {
        return Ok(());
    };
    let mut reason = format!("{} is quarantined", tool.label());
    if let Some(why) = &quarantine.why {
        reason.push_str(": ");
        reason.push_str(why);
    }
    Err(Denial::new(ReasonCode::Quarantined, reason))
}

fn check_state(tool: &GuardedTool, state: &StateName) -> Result<(), Denial> {
    if tool.available_in(state) {
        return Ok(());
    }
    let states: Vec<&str> = tool
        .states
        .iter()
        .flatten()
        .map(StateName::as_str)
        .collect();
    Err(Denial::new(
        ReasonCode::FilteredByState,
        format!(
            "{} is not available in state '{state}' (available in: {})",
            tool.label(),
            join_names(&states)
        ),
    ))
}

fn check_permissions(
    tool: &GuardedTool,
    principal: &str,
    reach: &RequestScope<'_>,
) -> Result<(), Denial> {
    if tool.required.iter().all(|it| reach.profile.holds(it)) {
        return Ok(());
    }
    let lacking = tool.required.iter().filter(|it| !reach.profile.holds(it));
    let names: Vec<&str> = lacking.map(|it| it.permission.as_str()).collect();
    Err(Denial::new(
        ReasonCode::MissingPermissions,
        format!(
            "agent '{principal}' is missing required permissions: {}",
            names.join(", ")
        ),
    ))
}

/// The label of a tool as in the connectorguard document; other features are labelled by their kind.
fn display_label(tool: &GuardedTool) -> String {
    if tool.kind == FeatureKind::Tool {
        format!("connector '{}'", tool.name)
    } else {
        tool.label()
    }
}

pub(super) fn rate_denial(tool: &GuardedTool, overrun: &LimitExceeded) -> Denial {
    match overrun {
        LimitExceeded::Limit { limit, retry_after } => {
            let mut denial = Denial::new(
                ReasonCode::RateLimited,
                format!(
                    "rate limit exceeded for {} (limit: {} req/{}s)",
                    display_label(tool),
                    limit.max,
                    seconds(limit.window)
                ),
            );
            denial.retry_after = Some(*retry_after);
            denial
        }
        LimitExceeded::Capacity { retry_after } => {
            let mut denial = Denial::new(
                ReasonCode::RateCapacity,
                format!(
                    "no room to count calls of {} for one more principal",
                    display_label(tool)
                ),
            );
            denial.retry_after = Some(*retry_after);
            denial
        }
    }
}

pub(super) fn check_input(tool: &GuardedTool, arguments: &Value) -> Result<(), Denial> {
    if let SchemaCheck::Broken(broken) = &*tool.input {
        return Err(Denial::new(
            ReasonCode::BrokenSchema,
            format!("{INPUT_FAILED}{broken}"),
        ));
    }
    if !arguments.is_object() {
        // Arguments must be named; a bare value would pass a schema that does not restrict its type.
        let found = toolwarden_model::json::type_name(arguments);
        let message = format!("arguments must be an object, not {found}");
        return Err(Denial::invalid_input(message));
    }
    tool.input.check_strict(arguments)?;
    tool.check_bound_arguments(arguments)?;
    let faults = tool.input.faults(arguments);
    let Some(first) = faults.first() else {
        return Ok(());
    };
    let mut denial = Denial::new(
        ReasonCode::InvalidInput,
        format!("{INPUT_FAILED}{}", first.message),
    );
    denial.faults = faults;
    Err(denial)
}

fn limits_in_words(limits: &ToolLimits) -> String {
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

/// Seconds, without decimals if they are whole, as the connectorguard document writes them.
fn seconds(time: Duration) -> String {
    if time.subsec_nanos() == 0 {
        time.as_secs().to_string()
    } else {
        time.as_secs_f64().to_string()
    }
}

fn join_names(names: &[&str]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.join(", ")
}
