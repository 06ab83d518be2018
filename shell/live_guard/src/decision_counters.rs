use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use toolwarden_guard::ReasonCode;

/// The number of decisions with each code. Every code has its own counter, so that counting needs no lookup
/// and no lock.
#[derive(Clone, Debug, Default)]
pub(super) struct DecisionCounters(Arc<[Counter; ReasonCode::ALL.len()]>);

impl DecisionCounters {
    pub(super) fn count(&self, code: ReasonCode) {
        if let Some(counter) = self.0.get(code as usize) {
            counter.inc();
        }
    }

    pub(super) fn get(&self, code: ReasonCode) -> u64 {
        self.0.get(code as usize).map_or(0, Counter::get)
    }
}

impl EncodeMetric for DecisionCounters {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        for code in ReasonCode::ALL {
            let label = [("code", code.as_str())];
            let encoder = encoder.encode_family(&label)?;
            if let Some(counter) = self.0.get(*code as usize) {
                counter.encode(encoder)?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_counter() {
        let decisions = DecisionCounters::default();
        for (at, code) in ReasonCode::ALL.iter().enumerate() {
            assert_eq!(*code as usize, at);
            decisions.count(*code);
            assert_eq!(decisions.get(*code), 1);
        }
    }
}
