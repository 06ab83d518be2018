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
use toolwarden_guard::{Availability, Guard, ReasonCode, Request};

use toolwarden_model::{GroupName, StateName};

use super::decision_counters::DecisionCounters;

/// The metrics of a guard: those that the tool-group document names, and decisions by code.
pub struct GuardMetrics {
    decisions: DecisionCounters,
    group_requests: Family<GroupLabel, Counter>,
    group_availability: Family<GroupLabel, Gauge>,
    filtered_tools: Histogram,
    transitions: Family<TransitionLabels, Counter>,
    /// The number of transitions with their own labels.
    distinct_transitions: AtomicUsize,
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

impl GuardMetrics {
    pub(crate) fn new() -> Self {
        Self {
            decisions: DecisionCounters::default(),
            group_requests: Family::default(),
            group_availability: Family::default(),
            filtered_tools: Histogram::new(COUNT_BUCKETS),
            transitions: Family::default(),
            distinct_transitions: AtomicUsize::new(0),
            workflow_duration: Family::new_with_constructor(|| Histogram::new(DURATION_BUCKETS)),
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

/// The label of every group and state that the policy does not know, so that callers cannot invent labels.
const UNKNOWN_LABEL: &str = "(unknown)";

/// The label of tools that the policy does not name, and of tools beyond the maximum number of labels.
const OTHER_LABEL: &str = "(other)";

/// The maximum number of transitions that get their own labels for tool and states.
const MAX_TRANSITIONS: usize = 1_000;

const COUNT_BUCKETS: [f64; 9] = [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0];
const DURATION_BUCKETS: [f64; 9] = [0.01, 0.1, 1.0, 5.0, 30.0, 60.0, 600.0, 3600.0, 86_400.0];

impl GuardMetrics {
    /// Adds all metrics to a registry, so that they are exported together with others.
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

    /// All metrics in the OpenMetrics text format.
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

    /// Counts a decision with this code.
    pub(crate) fn count_decision(&self, code: ReasonCode) {
        self.decisions.count(code);
    }

    /// The number of decisions with a code.
    #[must_use]
    pub fn decisions(&self, code: ReasonCode) -> u64 {
        self.decisions.get(code)
    }

    /// Counts a listing that returned these tools.
    pub(crate) fn count_listing(&self, guard: &Guard, request: &Request<'_>, found: &Availability) {
        let count = found.available.len();
        self.filtered_tools.observe(as_float(count));
        let gauge = i64::try_from(count).unwrap_or(i64::MAX);
        if guard.has_state(request.state) {
            let state = request.state.to_string();
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

    pub(crate) fn count_unknown_groups(&self, count: usize) {
        self.unknown_groups.inc_by(count as u64);
    }

    pub(crate) fn count_group_denial(&self, guard: &Guard, group: &GroupName) {
        self.access_denied
            .get_or_create(&group_label(guard, group))
            .inc();
    }

    pub(crate) fn count_transition(
        &self,
        guard: &Guard,
        step: (&str, &StateName, &StateName),
        after: Duration,
    ) {
        let (tool, from, to) = step;
        let known = |state: &StateName| {
            let known = *state == toolwarden_guard::INITIAL_STATE || guard.has_state(state);
            if known { state.as_str() } else { UNKNOWN_LABEL }.to_owned()
        };
        // Servers can invent names; a policy cannot.
        let tool = if guard.lists_tool(tool) {
            tool
        } else {
            OTHER_LABEL
        };
        let state = known(from);
        let labels = self.bounded_labels(TransitionLabels {
            tool: tool.to_owned(),
            from: state.clone(),
            to: known(to),
        });
        self.transitions.get_or_create(&labels).inc();
        let spent = self.workflow_duration.get_or_create(&StateLabel { state });
        spent.observe(after.as_secs_f64());
    }

    /// The labels of a transition, until there are too many of them.
    fn bounded_labels(&self, labels: TransitionLabels) -> TransitionLabels {
        let new = self.transitions.get(&labels).is_none();
        if new && self.distinct_transitions.fetch_add(1, Ordering::Relaxed) >= MAX_TRANSITIONS {
            return TransitionLabels {
                tool: OTHER_LABEL.to_owned(),
                from: OTHER_LABEL.to_owned(),
                to: OTHER_LABEL.to_owned(),
            };
        }
        labels
    }

    pub(crate) fn count_invalid_transition(&self, reason: &str) {
        let reason = reason.to_owned();
        self.invalid_transitions
            .get_or_create(&ReasonLabel { reason })
            .inc();
    }

    pub(crate) fn count_escalation(&self, reason: &str) {
        let reason = reason.to_owned();
        self.escalations
            .get_or_create(&ReasonLabel { reason })
            .inc();
    }

    /// The number of entries that the log did not accept.
    #[must_use]
    pub fn unrecorded_entries(&self) -> u64 {
        self.unrecorded.get()
    }

    pub(crate) fn count_unrecorded(&self) {
        self.unrecorded.inc();
    }

    pub(crate) fn count_failed_reload(&self) {
        self.reloads_failed.inc();
    }
}

impl fmt::Debug for GuardMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

fn group_label(guard: &Guard, group: &GroupName) -> GroupLabel {
    let known = *group == toolwarden_guard::EVERY_GROUP || guard.has_group(group);
    let group = if known { group.as_str() } else { UNKNOWN_LABEL };
    GroupLabel {
        group: group.to_owned(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "no policy has 2^52 tools")]
fn as_float(count: usize) -> f64 {
    count as f64
}
