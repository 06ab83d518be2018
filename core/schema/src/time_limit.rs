use std::time::Duration;

/// How long a comparison may take. The caller supplies the clock, because this crate reads none.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimit {
    /// The time since any fixed moment; `None` disables the limit.
    clock: Option<fn() -> Duration>,
    /// The most time for one comparison.
    each: Duration,
    /// When all comparisons have to end.
    deadline: Duration,
}

impl TimeLimit {
    /// No time limit: only the other budgets apply, and answers do not depend on the machine.
    pub const NONE: Self = Self {
        clock: None,
        each: Duration::MAX,
        deadline: Duration::MAX,
    };

    /// A limit for each comparison. The clock must not run backwards.
    #[must_use]
    pub const fn new(clock: fn() -> Duration, each: Duration) -> Self {
        Self {
            clock: Some(clock),
            each,
            deadline: Duration::MAX,
        }
    }

    /// The same limit, with an additional limit for all comparisons from now on together.
    #[must_use]
    pub fn within(self, total: Duration) -> Self {
        self.ending_after(total)
    }

    /// The limit of a comparison that starts now.
    #[must_use]
    pub fn start(self) -> Self {
        self.ending_after(self.each)
    }

    /// Whether there is a limit.
    #[must_use]
    pub const fn is_set(&self) -> bool {
        self.clock.is_some()
    }

    /// Whether the time is used up.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.clock.is_some_and(|now| now() >= self.deadline)
    }

    fn ending_after(self, length: Duration) -> Self {
        let deadline = match self.clock {
            Some(now) => now().saturating_add(length).min(self.deadline),
            None => self.deadline,
        };
        Self { deadline, ..self }
    }
}

/// Limits are compared by what they allow, not by where the time comes from.
impl PartialEq for TimeLimit {
    fn eq(&self, other: &Self) -> bool {
        let parts = |it: &Self| (it.clock.is_some(), it.each, it.deadline);
        parts(self) == parts(other)
    }
}

impl Eq for TimeLimit {}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Duration {
        Duration::from_secs(100)
    }

    #[test]
    fn the_nearer_deadline_counts() {
        let limit = TimeLimit::new(clock, Duration::from_secs(1));
        assert!(!limit.is_over());
        assert!(!limit.start().is_over());
        assert!(limit.within(Duration::ZERO).is_over());
        assert!(limit.within(Duration::ZERO).start().is_over());
        assert!(!limit.within(Duration::from_secs(9)).start().is_over());
    }

    #[test]
    fn no_limit_never_ends() {
        assert!(!TimeLimit::NONE.within(Duration::ZERO).start().is_over());
    }
}
