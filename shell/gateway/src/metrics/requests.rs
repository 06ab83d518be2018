use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use toolwarden_mcp::Era;

/// How a message of an agent was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With a result, which may be that of a tool that failed.
    Result,
    /// With an error of the protocol.
    Error,
    /// Not at all: it needs no answer, or nobody waits for it any more.
    Nothing,
}

impl Outcome {
    const ALL: [Self; 3] = [Self::Result, Self::Error, Self::Nothing];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Error => "error",
            Self::Nothing => "nothing",
        }
    }
}

/// The methods that are told apart, by how often they come; the last stands for all others.
const METHODS: [&str; 26] = [
    "tools/call",
    "tools/list",
    "initialize",
    "notifications/initialized",
    "server/discover",
    "ping",
    "notifications/cancelled",
    "notifications/progress",
    "subscriptions/listen",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "logging/setLevel",
    "notifications/roots/list_changed",
    "tasks/get",
    "tasks/update",
    "tasks/result",
    "tasks/list",
    "tasks/cancel",
    "notifications/tasks/status",
    "other",
];

const ERAS: [(Era, &str); 2] = [(Era::Handshake, "handshake"), (Era::Stateless, "stateless")];

/// Messages by method, era and outcome, each combination in a place of its own.
#[derive(Clone, Debug)]
pub(super) struct Requests(Arc<[Counter]>);

impl Default for Requests {
    fn default() -> Self {
        let places = METHODS.len() * ERAS.len() * Outcome::ALL.len();
        Self((0..places).map(|_| Counter::default()).collect())
    }
}

impl Requests {
    pub(super) fn count(&self, method: &str, era: Era, outcome: Outcome) {
        let known = METHODS.iter().position(|it| *it == method);
        let method = known.unwrap_or(METHODS.len() - 1);
        let era = ERAS
            .iter()
            .position(|(it, _)| *it == era)
            .unwrap_or_default();
        if let Some(counter) = self.0.get(place(method, era, outcome)) {
            counter.inc();
        }
    }
}

const fn place(method: usize, era: usize, outcome: Outcome) -> usize {
    (method * ERAS.len() + era) * Outcome::ALL.len() + outcome as usize
}

impl EncodeMetric for Requests {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        for (at, method) in METHODS.iter().enumerate() {
            for (era, (_, era_name)) in ERAS.iter().enumerate() {
                for outcome in Outcome::ALL {
                    let Some(counter) = self.0.get(place(at, era, outcome)) else {
                        continue;
                    };
                    // What never happened is left out: most combinations never do.
                    if counter.get() == 0 {
                        continue;
                    }
                    let labels = [
                        ("method", *method),
                        ("era", *era_name),
                        ("outcome", outcome.as_str()),
                    ];
                    counter.encode(encoder.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}
