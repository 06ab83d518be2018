//! Metrics that the router records per message, and gauges sampled on scrape.

use std::collections::BTreeMap;
use std::time::Duration;

use toolwarden_mcp::Era;
use toolwarden_watch::inline::{ListCheck, ToolAction};

use super::RpcReply;
use crate::catalog::ServerCatalog;
use crate::gateway::Gateway;
use crate::metrics::{
    CallStage, GatewayGauges, ResponseOutcome, ServerGauges, TargetGauges, ToolActionLabel,
};
use crate::upstream::{BreakerStatus, UpstreamHealth};

impl Gateway {
    pub(crate) fn count_check(&self, server: &str, checked: &ListCheck) {
        for change in checked.changes.iter().filter(|it| it.is_new) {
            self.metrics().count_drift(server, change.class);
        }
    }

    pub(crate) fn count_response(&self, method: &str, era: Era, reply: &RpcReply, took: u64) {
        let outcome = match reply {
            RpcReply::Result(_) => ResponseOutcome::Result,
            RpcReply::Error(_) => ResponseOutcome::Error,
            RpcReply::NoReply => ResponseOutcome::NoResponse,
        };
        self.metrics().count_response(method, era, outcome);
        self.count_stage(CallStage::Total, took);
    }

    pub(crate) fn count_stage(&self, stage: CallStage, took: u64) {
        self.metrics()
            .observe_stage(stage, Duration::from_nanos(took));
    }

    /// The current metrics in the OpenMetrics text format.
    #[must_use]
    pub fn metrics_text(
        &self,
        targets: BTreeMap<String, TargetGauges>,
        dropped_alerts: u64,
    ) -> String {
        let figures = self.watch().counters();
        let reading = GatewayGauges {
            servers: self
                .server_catalogs()
                .iter()
                .map(|catalog| (catalog.upstream.name().to_owned(), server_gauges(catalog)))
                .collect(),
            targets,
            conversations: self.conversations().len(),
            observations: figures.results_read(),
            dropped_observations: figures.results_dropped(),
            dropped_alerts,
            store: self.guard().log().usage(),
        };
        self.metrics().text(self.guard(), &reading)
    }
}

fn server_gauges(catalog: &ServerCatalog) -> ServerGauges {
    let status = catalog.upstream.status();
    let mut tools: BTreeMap<ToolActionLabel, usize> = BTreeMap::new();
    if let Some(list) = catalog.last_tools("") {
        for tool in &list.tools {
            let treated = match (&list.blocked, &tool.tool_action) {
                (Some(_), _) => ToolActionLabel::Block,
                (None, ToolAction::Serve) => ToolActionLabel::Serve,
                (None, ToolAction::Hide { .. }) => ToolActionLabel::Hide,
                (None, ToolAction::Quarantine { .. }) => ToolActionLabel::Quarantine,
            };
            *tools.entry(treated).or_default() += 1;
        }
    }
    ServerGauges {
        up: matches!(status.health, UpstreamHealth::Up | UpstreamHealth::Degraded),
        restarts: status.restarts,
        in_flight: status.in_flight,
        links: status.links,
        breaker_open: matches!(status.breaker, BreakerStatus::Open { .. }),
        tools,
    }
}
