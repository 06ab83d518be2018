use std::time::Duration;

use crate::guard::Clock;
use crate::pool::Gathering;

/// How watching inside the gateway works.
#[derive(Clone, Debug)]
pub struct InlineOptions {
    /// Where the time comes from.
    pub clock: Clock,
    /// In whose name tools are pinned that were never seen.
    pub by: String,
    /// How long to wait for other processes that hold the store.
    pub patience: Duration,
    /// How often the store is asked whether others changed pins.
    pub poll: Duration,
    /// How long the answer to a list holds for the same list.
    pub fresh_for: Duration,
    /// How many results may wait to be read.
    pub queue: usize,
    /// How many bytes of results may wait to be read.
    pub queue_bytes: usize,
    /// How long results of a few tools are gathered before they are kept.
    pub flush_every: Duration,
    /// For each so many tools more they are gathered as long again: to keep them costs by the tool.
    pub flush_tools: usize,
    /// The results of how many tools are gathered at most.
    pub most_tools: usize,
    /// How often the results of one tool are held to their shape at most: each look costs certainty.
    pub judge_every: Duration,
    /// How results are gathered before they are held to anything.
    pub gathering: Gathering,
    /// How many threads compare definitions.
    pub compare_threads: usize,
    /// How often the same finding in the results of a tool raises an alert at most.
    pub finding_every: Duration,
}

impl Default for InlineOptions {
    fn default() -> Self {
        Self {
            clock: Clock::default(),
            by: "gateway".to_owned(),
            patience: Duration::from_secs(10),
            poll: Duration::from_secs(1),
            fresh_for: Duration::from_secs(60),
            queue: 1024,
            queue_bytes: 32 * 1024 * 1024,
            flush_every: Duration::from_secs(5),
            flush_tools: 1024,
            most_tools: 16 * 1024,
            judge_every: Duration::from_secs(60),
            gathering: Gathering::default(),
            compare_threads: compare_threads(),
            finding_every: Duration::from_secs(3600),
        }
    }
}

/// One for each core, so that comparisons of a few servers leave room for others.
fn compare_threads() -> usize {
    let cores = std::thread::available_parallelism();
    cores.map_or(2, std::num::NonZero::get).clamp(2, 8)
}
