//! Gauges sampled on scrape.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use toolwarden_live_guard::LiveGuard;
use toolwarden_live_guard::audit::StoreUsage;

/// Values sampled on scrape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayGauges {
    /// The servers, by their name in the settings.
    pub servers: BTreeMap<String, ServerGauges>,
    /// The alert destinations, by their name in the settings.
    pub targets: BTreeMap<String, TargetGauges>,
    /// How many conversations are open.
    pub conversations: usize,
    /// Results that were accepted to learn shapes.
    pub observations: u64,
    /// Results that were dropped because the queue was full.
    pub dropped_observations: u64,
    /// Alerts that were dropped because the queue was full.
    pub dropped_alerts: u64,
    /// The space that the store uses, and its quota.
    pub store: Option<StoreUsage>,
}

/// The status of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerGauges {
    /// Whether it responds.
    pub up: bool,
    /// How often a link was reopened.
    pub restarts: u64,
    /// Requests in flight or waiting.
    pub in_flight: usize,
    /// Open links.
    pub links: usize,
    /// Whether its circuit breaker is open.
    pub breaker_open: bool,
    /// The number of its tools by treatment.
    pub tools: BTreeMap<ToolActionLabel, usize>,
}

/// The deliveries to an alert destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetGauges {
    /// Delivered alerts.
    pub delivered: u64,
    /// Alerts whose delivery was given up.
    pub failed: u64,
    /// Alerts pending delivery for delivery.
    pub pending: usize,
}

/// How a tool is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolActionLabel {
    /// It is served.
    Serve,
    /// It is hidden.
    Hide,
    /// It is pending approval.
    Quarantine,
    /// Its server is blocked.
    Block,
}

impl ToolActionLabel {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::Hide => "hide",
            Self::Quarantine => "quarantine",
            Self::Block => "block",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServerLabel {
    server: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolsLabels {
    server: String,
    treatment: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TargetLabel {
    target: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeliveryLabels {
    target: String,
    outcome: &'static str,
}

impl GatewayGauges {
    pub(super) fn register(&self, registry: &mut Registry) {
        self.register_servers(registry);
        self.register_targets(registry);
        self.register_store(registry);
        registry.register(
            "toolwarden_conversations",
            "Conversations that are open",
            ConstGauge::new(to_i64(self.conversations)),
        );
        registry.register(
            "toolwarden_observations",
            "Results that were accepted to learn shapes",
            ConstCounter::new(self.observations),
        );
        registry.register(
            "toolwarden_observations_dropped",
            "Results dropped because the queue was full",
            ConstCounter::new(self.dropped_observations),
        );
        registry.register(
            "toolwarden_alerts_dropped",
            "Alerts dropped because the queue was full",
            ConstCounter::new(self.dropped_alerts),
        );
    }

    fn register_store(&self, registry: &mut Registry) {
        let Some(StoreUsage { used, quota }) = self.store else {
            return;
        };
        let bytes = |bytes: u64| ConstGauge::new(i64::try_from(bytes).unwrap_or(i64::MAX));
        registry.register("toolwarden_store_bytes", "Size of the store", bytes(used));
        registry.register(
            "toolwarden_store_quota_bytes",
            "Quota of the store",
            bytes(quota),
        );
    }

    fn register_servers(&self, registry: &mut Registry) {
        let gauge = |value: fn(&ServerGauges) -> i64| {
            let family = Family::<ServerLabel, Gauge>::default();
            for (server, reading) in &self.servers {
                let server = server.clone();
                family
                    .get_or_create(&ServerLabel { server })
                    .set(value(reading));
            }
            family
        };
        let up = gauge(|it| i64::from(it.up));
        registry.register("toolwarden_upstream_up", "Whether a server answers", up);
        let in_flight = gauge(|it| to_i64(it.in_flight));
        registry.register(
            "toolwarden_upstream_in_flight",
            "Requests to a server in flight or waiting",
            in_flight,
        );
        let links = gauge(|it| to_i64(it.links));
        registry.register("toolwarden_upstream_links", "Open links to a server", links);
        let open = gauge(|it| i64::from(it.breaker_open));
        registry.register(
            "toolwarden_upstream_breaker_open",
            "Whether the circuit breaker of a server is open",
            open,
        );
        let restarts = Family::<ServerLabel, Counter>::default();
        let tools = Family::<ToolsLabels, Gauge>::default();
        for (server, reading) in &self.servers {
            let label = ServerLabel {
                server: server.clone(),
            };
            set(&restarts.get_or_create(&label), reading.restarts);
            for (treated, count) in &reading.tools {
                let labels = ToolsLabels {
                    server: server.clone(),
                    treatment: treated.as_str(),
                };
                tools.get_or_create(&labels).set(to_i64(*count));
            }
        }
        registry.register(
            "toolwarden_upstream_restarts",
            "Links to a server that were reopened",
            restarts,
        );
        registry.register("toolwarden_tools", "Tools of a server by treatment", tools);
    }

    fn register_targets(&self, registry: &mut Registry) {
        let deliveries = Family::<DeliveryLabels, Counter>::default();
        let pending = Family::<TargetLabel, Gauge>::default();
        for (target, reading) in &self.targets {
            for (outcome, count) in [("delivered", reading.delivered), ("failed", reading.failed)] {
                let labels = DeliveryLabels {
                    target: target.clone(),
                    outcome,
                };
                set(&deliveries.get_or_create(&labels), count);
            }
            let target = target.clone();
            let waiting = to_i64(reading.pending);
            pending.get_or_create(&TargetLabel { target }).set(waiting);
        }
        registry.register(
            "toolwarden_alert_deliveries",
            "Alert deliveries by target and outcome",
            deliveries,
        );
        registry.register(
            "toolwarden_alerts_pending",
            "Alerts pending delivery",
            pending,
        );
    }
}

/// Adds the metrics of the audit log; a log in memory has no queue.
pub(super) fn register_audit(guard: &LiveGuard, registry: &mut Registry) {
    let Some(health) = guard.log().health() else {
        return;
    };
    registry.register(
        "toolwarden_audit_queued",
        "Records queued for writing",
        ConstGauge::new(to_i64(health.queued)),
    );
    registry.register(
        "toolwarden_audit_written",
        "Records that were written",
        ConstCounter::new(health.written),
    );
    registry.register(
        "toolwarden_audit_failing",
        "Whether the last attempt to write a record failed",
        ConstGauge::new(i64::from(health.failure.is_some())),
    );
}

fn set(counter: &Counter, total: u64) {
    counter.inner().store(total, Ordering::Relaxed);
}

pub(super) fn to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
