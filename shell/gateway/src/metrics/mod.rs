//! The metrics of the gateway and its guard, as one text for Prometheus.
//!
//! Events on the path of a call are counted in preallocated counters: no lock, no lookup, no allocation. Everything
//! else is read when the text is written ([`GatewayGauges`]). Labels come from closed sets, from the settings and from
//! the policy, never from agents or servers.

mod gauges;
mod request_counters;
mod stage_timings;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use toolwarden_drift::ChangeClass;
use toolwarden_live_guard::LiveGuard;
use toolwarden_mcp::Era;

pub use gauges::{GatewayGauges, ServerGauges, TargetGauges, ToolActionLabel};
use request_counters::RequestCounters;
pub use request_counters::ResponseOutcome;
pub use stage_timings::CallStage;
use stage_timings::StageTimings;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The counters of the gateway. Cheap to clone; clones share the counters.
#[derive(Clone, Debug, Default)]
pub struct GatewayMetrics {
    stages: StageTimings,
    requests: RequestCounters,
    drift: Family<DriftLabels, Counter>,
    unusable_schemas: Gauge,
    reloads: Counter,
    reloads_failed: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DriftLabels {
    server: String,
    class: &'static str,
}

impl GatewayMetrics {
    /// Counters at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the duration of a stage of a call.
    pub fn observe_stage(&self, stage: CallStage, time: Duration) {
        self.stages.observe(stage, time);
    }

    /// Counts a message of an agent that was answered, or needed no answer.
    pub fn count_response(&self, method: &str, era: Era, outcome: ResponseOutcome) {
        self.requests.count(method, era, outcome);
    }

    /// Counts a tool whose drift was not reported before.
    pub fn count_drift(&self, server: &str, class: ChangeClass) {
        let server = server.to_owned();
        let class = class.as_str();
        self.drift
            .get_or_create(&DriftLabels { server, class })
            .inc();
    }

    /// Sets how many schemas of servers are currently unusable.
    pub fn set_unusable_schemas(&self, count: usize) {
        self.unusable_schemas.set(gauges::to_i64(count));
    }

    /// Counts a reload of the settings that was applied or refused.
    pub fn count_reload(&self, taken_over: bool) {
        if taken_over {
            self.reloads.inc();
        } else {
            self.reloads_failed.inc();
        }
    }

    /// All metrics in the OpenMetrics text format: the counters of the gateway and of the guard, and the current
    /// gauges.
    #[must_use]
    pub fn text(&self, guard: &LiveGuard, now: &GatewayGauges) -> String {
        let mut registry = Registry::default();
        guard.metrics().register(&mut registry);
        self.register(&mut registry);
        now.register(&mut registry);
        gauges::register_audit(guard, &mut registry);
        let mut text = String::new();
        // Writing to a string cannot fail.
        match encode(&mut text, &registry) {
            Ok(()) => text,
            Err(fmt::Error) => String::new(),
        }
    }

    fn register(&self, registry: &mut Registry) {
        // The library adds `_total` to the names of counters.
        registry.register(
            "toolwarden_stage_seconds",
            "Time the stages of a call take",
            self.stages.clone(),
        );
        registry.register(
            "toolwarden_requests",
            "Messages of agents by method",
            self.requests.clone(),
        );
        registry.register(
            "toolwarden_drift_changes",
            "Tools that drifted, by the gravest class",
            self.drift.clone(),
        );
        registry.register(
            "toolwarden_unusable_schemas",
            "Schemas of servers that are currently unusable",
            self.unusable_schemas.clone(),
        );
        registry.register(
            "toolwarden_reloads",
            "Changed settings that were applied at run time",
            self.reloads.clone(),
        );
        registry.register(
            "toolwarden_reload_failures",
            "Changed settings that were refused at run time",
            self.reloads_failed.clone(),
        );
    }
}
