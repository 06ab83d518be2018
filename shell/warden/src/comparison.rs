//! How long comparisons of definitions may take. A definition comes from outside, and a few kilobytes of
//! it can ask for hours of work.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use toolwarden_drift::Options;
use toolwarden_schema::{Budget, TimeLimit};

/// How long comparisons may take. A comparison that needs longer is unknown, which quarantines the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparisonTime {
    /// The most time for one tool.
    pub tool: Duration,
    /// The most time for all tools of a list.
    pub list: Duration,
}

impl Default for ComparisonTime {
    fn default() -> Self {
        Self {
            tool: Duration::from_secs(1),
            list: Duration::from_secs(5),
        }
    }
}

impl ComparisonTime {
    /// For a person who waits for the answer.
    pub const ATTENDED: Self = Self {
        tool: Duration::from_secs(1),
        list: Duration::from_secs(60),
    };

    /// The default options of a comparison of lists that starts now.
    #[must_use]
    pub fn options(self) -> Options {
        Options {
            budget: self.budget(),
            ..Options::default()
        }
    }

    /// The budget of a comparison of lists that starts now.
    #[must_use]
    pub fn budget(self) -> Budget {
        Budget {
            time: TimeLimit::new(since_start, self.tool).within(self.list),
            ..Budget::default()
        }
    }
}

/// The time since this was first called.
fn since_start() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
