use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// A stage of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStage {
    /// Authenticating the caller.
    Identify,
    /// Passing the gates.
    Decide,
    /// Waiting for the record of the decision.
    Record,
    /// Waiting for the server.
    Upstream,
    /// Checking the result, and waiting for the record of the outcome.
    Settle,
    /// The whole call.
    Total,
}

impl CallStage {
    /// Every stage, in order.
    pub const ALL: [Self; 6] = [
        Self::Identify,
        Self::Decide,
        Self::Record,
        Self::Upstream,
        Self::Settle,
        Self::Total,
    ];

    /// The label of the stage.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identify => "identify",
            Self::Decide => "decide",
            Self::Record => "record",
            Self::Upstream => "upstream",
            Self::Settle => "settle",
            Self::Total => "total",
        }
    }
}

/// The upper bounds of the buckets in nanoseconds; longer durations have their own bucket.
const BOUNDS: [u64; 10] = [
    10_000,
    50_000,
    200_000,
    1_000_000,
    5_000_000,
    20_000_000,
    100_000_000,
    500_000_000,
    2_500_000_000,
    30_000_000_000,
];

/// The durations of the stages of calls. The library's histogram takes a lock for each value; this one adds to
/// two numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct StageTimings(Arc<[StageHistogram; CallStage::ALL.len()]>);

/// One histogram, in its own cache lines.
#[derive(Debug, Default)]
#[repr(align(64))]
struct StageHistogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl StageTimings {
    pub(super) fn observe(&self, stage: CallStage, time: Duration) {
        if let Some(timing) = self.0.get(stage as usize) {
            timing.observe(time);
        }
    }
}

impl StageHistogram {
    fn observe(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let place = BOUNDS.iter().take_while(|bound| time > **bound).count();
        if let Some(bucket) = self.buckets.get(place) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.nanoseconds.fetch_add(time, Ordering::Relaxed);
    }

    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let bounds = BOUNDS.iter().map(|bound| seconds(*bound));
        let counts = self.buckets.iter().map(|it| it.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.chain([f64::INFINITY]).zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = seconds(self.nanoseconds.load(Ordering::Relaxed));
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }
}

impl EncodeMetric for StageTimings {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        for (stage, timing) in CallStage::ALL.iter().zip(self.0.iter()) {
            let label = [("stage", stage.as_str())];
            timing.encode(encoder.encode_family(&label)?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}
