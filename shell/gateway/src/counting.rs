//! What is counted on the way of a message, and how things are when somebody looks.

use std::collections::BTreeMap;
use std::time::Duration;

use toolwarden_mcp::Era;
use toolwarden_warden::inline::{Checked, Treatment};

use crate::catalogue::Shelf;
use crate::gateway::Gateway;
use crate::metrics::{Outcome, Reading, ServerReading, Stage, TargetReading, Treated};
use crate::relay::Reply;
use crate::upstream::{BreakerStatus, Health};

impl Gateway {
    pub(crate) fn count_checked(&self, server: &str, checked: &Checked) {
        for change in checked.changes.iter().filter(|it| it.is_news) {
            self.metrics().drifted(server, change.class);
        }
    }

    pub(crate) fn count_answered(&self, method: &str, era: Era, reply: &Reply, took: u64) {
        let outcome = match reply {
            Reply::Result(_) => Outcome::Result,
            Reply::Error(_) => Outcome::Error,
            Reply::Nothing => Outcome::Nothing,
        };
        self.metrics().answered(method, era, outcome);
        self.count_stage(Stage::Total, took);
    }

    pub(crate) fn count_stage(&self, stage: Stage, took: u64) {
        self.metrics().took(stage, Duration::from_nanos(took));
    }

    /// How things are now, in the text format of OpenMetrics.
    #[must_use]
    pub fn metrics_text(
        &self,
        targets: BTreeMap<String, TargetReading>,
        dropped_alerts: u64,
    ) -> String {
        let figures = self.watch().figures();
        let reading = Reading {
            servers: self
                .shelves()
                .iter()
                .map(|shelf| (shelf.upstream.name().to_owned(), server(shelf)))
                .collect(),
            targets,
            conversations: self.conversations().len(),
            observations: figures.taken(),
            dropped_observations: figures.dropped(),
            dropped_alerts,
            store: self.guard().log().usage(),
        };
        self.metrics().text(self.guard(), &reading)
    }
}

fn server(shelf: &Shelf) -> ServerReading {
    let status = shelf.upstream.status();
    let mut tools: BTreeMap<Treated, usize> = BTreeMap::new();
    if let Some(list) = shelf.last_tools("") {
        for tool in &list.tools {
            let treated = match (&list.blocked, &tool.treatment) {
                (Some(_), _) => Treated::Block,
                (None, Treatment::Serve) => Treated::Serve,
                (None, Treatment::Hide { .. }) => Treated::Hide,
                (None, Treatment::Quarantine { .. }) => Treated::Quarantine,
            };
            *tools.entry(treated).or_default() += 1;
        }
    }
    ServerReading {
        up: matches!(status.health, Health::Up | Health::Degraded),
        restarts: status.restarts,
        in_flight: status.in_flight,
        links: status.links,
        breaker_open: matches!(status.breaker, BreakerStatus::Open { .. }),
        tools,
    }
}
