//! Time limits for comparisons of definitions. A definition is untrusted, and a few kilobytes of it can
//! require hours of work.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use toolwarden_drift::Options;
use toolwarden_schema::{SearchBudget, TimeLimit};

/// Time limits for comparisons. A comparison that exceeds them has an unknown result, which quarantines the
/// tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparisonTimeouts {
    /// The maximum time for one tool.
    pub tool: Duration,
    /// The maximum time for all tools of a list.
    pub list: Duration,
}

impl Default for ComparisonTimeouts {
    fn default() -> Self {
        Self {
            tool: Duration::from_secs(1),
            list: Duration::from_secs(5),
        }
    }
}

impl ComparisonTimeouts {
    /// The limits when a person waits for the result.
    pub const INTERACTIVE: Self = Self {
        tool: Duration::from_secs(1),
        list: Duration::from_secs(60),
    };

    /// The default options of a list comparison that starts now.
    #[must_use]
    pub fn options(self) -> Options {
        Options {
            budget: self.budget(),
            ..Options::default()
        }
    }

    /// The budget of a list comparison that starts now.
    #[must_use]
    pub fn budget(self) -> SearchBudget {
        SearchBudget {
            time: TimeLimit::new(since_start, self.tool).within(self.list),
            ..SearchBudget::default()
        }
    }
}

/// The time since the first call of this function.
fn since_start() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
