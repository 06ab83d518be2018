use std::time::Duration;

use toolwarden_live_guard::Clock;

/// The options for watching inside the gateway.
#[derive(Clone, Debug)]
pub struct InlineOptions {
    /// The source of time.
    pub clock: Clock,
    /// The name under which new tools are pinned.
    pub pinned_by: String,
    /// How long to wait for other processes that lock the store.
    pub busy_timeout: Duration,
    /// How often to check the store for pins that other processes changed.
    pub poll_interval: Duration,
    /// How long the answer to a list is cached.
    pub cache_ttl: Duration,
    /// The maximum number of queued results.
    pub max_queued: usize,
    /// The maximum size of queued results in bytes.
    pub max_queued_bytes: usize,
    /// How long results of a few tools are collected before they are stored.
    pub flush_interval: Duration,
    /// For each further group of this many tools, the collection time grows by the same amount: the cost of
    /// storing depends on the number of tools.
    pub tools_per_flush_interval: usize,
    /// The maximum number of tools whose results are collected.
    pub max_tools: usize,
    /// The minimum time between two comparisons of a tool's results with their shape: each comparison costs
    /// certainty.
    pub result_check_interval: Duration,
    /// The number of threads that compare definitions.
    pub compare_threads: usize,
    /// The minimum time between two alerts for the same finding in the results of a tool.
    pub finding_interval: Duration,
}

impl Default for InlineOptions {
    fn default() -> Self {
        Self {
            clock: Clock::default(),
            pinned_by: "gateway".to_owned(),
            busy_timeout: Duration::from_secs(10),
            poll_interval: Duration::from_secs(1),
            cache_ttl: Duration::from_secs(60),
            max_queued: 1024,
            max_queued_bytes: 32 * 1024 * 1024,
            flush_interval: Duration::from_secs(5),
            tools_per_flush_interval: 1024,
            max_tools: 16 * 1024,
            result_check_interval: Duration::from_secs(60),
            compare_threads: compare_threads(),
            finding_interval: Duration::from_secs(3600),
        }
    }
}

/// One for each core, so that comparisons of a few servers leave room for others.
fn compare_threads() -> usize {
    let cores = std::thread::available_parallelism();
    cores.map_or(2, std::num::NonZero::get).clamp(2, 8)
}
