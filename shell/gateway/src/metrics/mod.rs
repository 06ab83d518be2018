//! What the gateway and its guard have counted, as one text for Prometheus.
//!
//! What happens on the way of a call is counted in places that are known beforehand: no lock, no
//! look-up, no memory. Everything else is read where the text is made ([`Reading`]). Labels come from
//! closed sets, from the settings and from the policy, never from agents or servers.

mod reading;
mod requests;
#[cfg(test)]
mod tests;
mod timings;

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use toolwarden_drift::Class;
use toolwarden_mcp::Era;
use toolwarden_warden::guard::LiveGuard;

pub use reading::{Reading, ServerReading, TargetReading, Treated};
pub use requests::Outcome;
use requests::Requests;
pub use timings::Stage;
use timings::Timings;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the gateway counts as it goes. Cheap to clone; clones count together.
#[derive(Clone, Debug, Default)]
pub struct GatewayMetrics {
    stages: Timings,
    requests: Requests,
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
    /// Nothing counted yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A stage of a call took this long.
    pub fn took(&self, stage: Stage, time: Duration) {
        self.stages.observe(stage, time);
    }

    /// A message of an agent was answered, or needed no answer.
    pub fn answered(&self, method: &str, era: Era, outcome: Outcome) {
        self.requests.count(method, era, outcome);
    }

    /// A tool of a server drifted, which nobody was told before.
    pub fn drifted(&self, server: &str, class: Class) {
        let server = server.to_owned();
        let class = class.as_str();
        self.drift
            .get_or_create(&DriftLabels { server, class })
            .inc();
    }

    /// So many schemas of servers cannot be used at present.
    pub fn schemas_unusable(&self, count: usize) {
        self.unusable_schemas.set(reading::whole(count));
    }

    /// The settings were read again, and taken over or refused.
    pub fn reloaded(&self, taken_over: bool) {
        if taken_over {
            self.reloads.inc();
        } else {
            self.reloads_failed.inc();
        }
    }

    /// Everything in the text format of OpenMetrics: what was counted here and by the guard, and how
    /// things are now.
    #[must_use]
    pub fn text(&self, guard: &LiveGuard, now: &Reading) -> String {
        let mut registry = Registry::default();
        guard.metrics().register(&mut registry);
        self.register(&mut registry);
        now.register(&mut registry);
        reading::register_audit(guard, &mut registry);
        let mut text = String::new();
        // Writing to a string does not fail.
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
            "Schemas of servers that cannot be used at present",
            self.unusable_schemas.clone(),
        );
        registry.register(
            "toolwarden_reloads",
            "Settings that were taken over at run time",
            self.reloads.clone(),
        );
        registry.register(
            "toolwarden_reload_failures",
            "Settings that were refused at run time",
            self.reloads_failed.clone(),
        );
    }
}
