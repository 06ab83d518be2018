use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use toolwarden_guard::Code;

/// How many calls were decided with each code. Every code has its place, so that counting looks nothing
/// up and takes no lock.
#[derive(Clone, Debug, Default)]
pub(super) struct Decisions(Arc<[Counter; Code::ALL.len()]>);

impl Decisions {
    pub(super) fn count(&self, code: Code) {
        if let Some(counter) = self.0.get(code as usize) {
            counter.inc();
        }
    }

    pub(super) fn of(&self, code: Code) -> u64 {
        self.0.get(code as usize).map_or(0, Counter::get)
    }
}

impl EncodeMetric for Decisions {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        for code in Code::ALL {
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
    fn every_code_has_a_place_of_its_own() {
        let decisions = Decisions::default();
        for (at, code) in Code::ALL.iter().enumerate() {
            assert_eq!(*code as usize, at);
            decisions.count(*code);
            assert_eq!(decisions.of(*code), 1);
        }
    }
}
