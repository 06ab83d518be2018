use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use toolwarden_guard::{Availability, Code, Guard, Request};

use super::decisions::Decisions;

/// What a guard has counted: under the names of the tool-group document, and decisions by code.
pub struct Metrics {
    decisions: Decisions,
    group_requests: Family<GroupLabel, Counter>,
    group_availability: Family<GroupLabel, Gauge>,
    filtered_tools: Histogram,
    transitions: Family<TransitionLabels, Counter>,
    /// How many transitions are told apart.
    told_apart: AtomicUsize,
    workflow_duration: Family<StateLabel, Histogram>,
    state_availability: Family<StateLabel, Gauge>,
    access_denied: Family<GroupLabel, Counter>,
    invalid_transitions: Family<ReasonLabel, Counter>,
    escalations: Family<ReasonLabel, Counter>,
    unknown_groups: Counter,
    unrecorded: Counter,
    reloads_failed: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GroupLabel {
    group: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TransitionLabels {
    tool: String,
    from: String,
    to: String,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            decisions: Decisions::default(),
            group_requests: Family::default(),
            group_availability: Family::default(),
            filtered_tools: Histogram::new(COUNTS),
            transitions: Family::default(),
            told_apart: AtomicUsize::new(0),
            workflow_duration: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            state_availability: Family::default(),
            access_denied: Family::default(),
            invalid_transitions: Family::default(),
            escalations: Family::default(),
            unknown_groups: Counter::default(),
            unrecorded: Counter::default(),
            reloads_failed: Counter::default(),
        }
    }
}

/// The label of every group and state the policy does not know, so that callers cannot make up labels.
const UNKNOWN: &str = "(unknown)";

/// The label of tools the policy does not name, and of those beyond the most that are told apart.
const OTHER: &str = "(other)";

/// The most transitions that are told apart by tool and states.
const MAX_TRANSITIONS: usize = 1_000;

const COUNTS: [f64; 9] = [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0];
const SECONDS: [f64; 9] = [0.01, 0.1, 1.0, 5.0, 30.0, 60.0, 600.0, 3600.0, 86_400.0];

impl Metrics {
    /// Adds everything to a registry, so that it is told together with what others count.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "toolwarden_decisions",
            "Decisions on calls by code",
            self.decisions.clone(),
        );
        // The library adds `_total` to the names of counters.
        registry.register(
            "agent_tool_group_requests",
            "Requests by group",
            self.group_requests.clone(),
        );
        registry.register(
            "agent_tool_group_availability",
            "Tools available per group in the latest listing",
            self.group_availability.clone(),
        );
        registry.register(
            "agent_filtered_tools_count",
            "Tools left after filtering by group, state and permission",
            self.filtered_tools.clone(),
        );
        registry.register(
            "agent_state_transitions",
            "State transitions by tool",
            self.transitions.clone(),
        );
        registry.register(
            "agent_workflow_duration_seconds",
            "Time spent in each state",
            self.workflow_duration.clone(),
        );
        registry.register(
            "agent_state_availability",
            "Tools available per state in the latest listing",
            self.state_availability.clone(),
        );
        registry.register(
            "agent_group_access_denied",
            "Requests for groups that are not granted",
            self.access_denied.clone(),
        );
        registry.register(
            "agent_invalid_state_transition",
            "Calls, claims and transitions that do not fit the state",
            self.invalid_transitions.clone(),
        );
        registry.register(
            "agent_privilege_escalation_attempts",
            "Requests for more than is granted",
            self.escalations.clone(),
        );
        registry.register(
            "toolwarden_unknown_group_requests",
            "Requests for groups no tool is in",
            self.unknown_groups.clone(),
        );
        registry.register(
            "toolwarden_audit_unrecorded",
            "Entries the log did not take",
            self.unrecorded.clone(),
        );
        registry.register(
            "toolwarden_policy_reload_failures",
            "Policies that were refused at run time",
            self.reloads_failed.clone(),
        );
    }

    /// Everything in the text format of OpenMetrics.
    #[must_use]
    pub fn text(&self) -> String {
        let mut registry = Registry::default();
        self.register(&mut registry);
        let mut text = String::new();
        // Writing to a string does not fail.
        match encode(&mut text, &registry) {
            Ok(()) => text,
            Err(fmt::Error) => String::new(),
        }
    }

    /// A call was decided with this code.
    pub(crate) fn decided(&self, code: Code) {
        self.decisions.count(code);
    }

    /// How many calls were decided with a code.
    #[must_use]
    pub fn decisions(&self, code: Code) -> u64 {
        self.decisions.of(code)
    }

    /// A request saw this many tools.
    pub(crate) fn listed(&self, guard: &Guard, request: &Request<'_>, found: &Availability) {
        let count = found.available.len();
        self.filtered_tools.observe(as_float(count));
        let gauge = i64::try_from(count).unwrap_or(i64::MAX);
        if guard.knows_state(request.state) {
            let state = request.state.to_owned();
            self.state_availability
                .get_or_create(&StateLabel { state })
                .set(gauge);
        }
        for group in request.groups.names() {
            let label = group_label(guard, group);
            self.group_requests.get_or_create(&label).inc();
            let of_group = guard.count_in_group(group, &found.available);
            let of_group = i64::try_from(of_group).unwrap_or(i64::MAX);
            self.group_availability.get_or_create(&label).set(of_group);
        }
    }

    pub(crate) fn unknown_groups(&self, count: usize) {
        self.unknown_groups.inc_by(count as u64);
    }

    pub(crate) fn group_denied(&self, guard: &Guard, group: &str) {
        self.access_denied
            .get_or_create(&group_label(guard, group))
            .inc();
    }

    pub(crate) fn transition(&self, guard: &Guard, step: (&str, &str, &str), after: Duration) {
        let (tool, from, to) = step;
        let known = |state: &str| {
            let known = state == toolwarden_guard::INITIAL_STATE || guard.knows_state(state);
            if known { state } else { UNKNOWN }.to_owned()
        };
        // Servers make up names; a policy does not.
        let tool = if guard.lists_tool(tool) { tool } else { OTHER };
        let state = known(from);
        let labels = self.told_apart(TransitionLabels {
            tool: tool.to_owned(),
            from: state.clone(),
            to: known(to),
        });
        self.transitions.get_or_create(&labels).inc();
        let spent = self.workflow_duration.get_or_create(&StateLabel { state });
        spent.observe(after.as_secs_f64());
    }

    /// The labels of a transition, as long as there are not too many of them.
    fn told_apart(&self, labels: TransitionLabels) -> TransitionLabels {
        let new = self.transitions.get(&labels).is_none();
        if new && self.told_apart.fetch_add(1, Ordering::Relaxed) >= MAX_TRANSITIONS {
            return TransitionLabels {
                tool: OTHER.to_owned(),
                from: OTHER.to_owned(),
                to: OTHER.to_owned(),
            };
        }
        labels
    }

    pub(crate) fn invalid_transition(&self, reason: &str) {
        let reason = reason.to_owned();
        self.invalid_transitions
            .get_or_create(&ReasonLabel { reason })
            .inc();
    }

    pub(crate) fn escalation(&self, reason: &str) {
        let reason = reason.to_owned();
        self.escalations
            .get_or_create(&ReasonLabel { reason })
            .inc();
    }

    /// How many entries the log did not take.
    #[must_use]
    pub fn unrecorded_entries(&self) -> u64 {
        self.unrecorded.get()
    }

    pub(crate) fn unrecorded(&self) {
        self.unrecorded.inc();
    }

    pub(crate) fn reload_failed(&self) {
        self.reloads_failed.inc();
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

fn group_label(guard: &Guard, group: &str) -> GroupLabel {
    let known = group == toolwarden_guard::EVERY || guard.knows_group(group);
    let group = if known { group } else { UNKNOWN };
    GroupLabel {
        group: group.to_owned(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "no policy has 2^52 tools")]
fn as_float(count: usize) -> f64 {
    count as f64
}
