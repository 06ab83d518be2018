use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use toolwarden_mcp::Era;

/// The outcome of an agent's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseOutcome {
    /// A result, possibly of a tool that failed.
    Result,
    /// A protocol error.
    Error,
    /// No answer: the message needs none, or the agent no longer waits for it.
    NoResponse,
}

impl ResponseOutcome {
    const ALL: [Self; 3] = [Self::Result, Self::Error, Self::NoResponse];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Error => "error",
            Self::NoResponse => "nothing",
        }
    }
}

/// The methods with their own label, most frequent first; the last one stands for all others.
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

/// Messages by method, era and outcome, with one counter per combination.
#[derive(Clone, Debug)]
pub(super) struct RequestCounters(Arc<[Counter]>);

impl Default for RequestCounters {
    fn default() -> Self {
        let places = METHODS.len() * ERAS.len() * ResponseOutcome::ALL.len();
        Self((0..places).map(|_| Counter::default()).collect())
    }
}

impl RequestCounters {
    pub(super) fn count(&self, method: &str, era: Era, outcome: ResponseOutcome) {
        let known = METHODS.iter().position(|it| *it == method);
        let method = known.unwrap_or(METHODS.len() - 1);
        let era = ERAS
            .iter()
            .position(|(it, _)| *it == era)
            .unwrap_or_default();
        if let Some(counter) = self.0.get(counter_index(method, era, outcome)) {
            counter.inc();
        }
    }
}

const fn counter_index(method: usize, era: usize, outcome: ResponseOutcome) -> usize {
    (method * ERAS.len() + era) * ResponseOutcome::ALL.len() + outcome as usize
}

impl EncodeMetric for RequestCounters {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        for (at, method) in METHODS.iter().enumerate() {
            for (era, (_, era_name)) in ERAS.iter().enumerate() {
                for outcome in ResponseOutcome::ALL {
                    let Some(counter) = self.0.get(counter_index(at, era, outcome)) else {
                        continue;
                    };
                    // Combinations that never happened are left out, which is most of them.
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
