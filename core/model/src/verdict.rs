/// What a check or a comparison comes to, ordered so that the maximum of several is the verdict on all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Nothing that matters differs.
    Pass,
    /// Something could not be measured, or not often enough, and nothing else was found.
    NotMeasured,
    /// Something that matters differs.
    Drift,
}

impl Verdict {
    /// The verdict on what was found: drift counts even if not everything was measured.
    #[must_use]
    pub const fn new(drifted: bool, measured: bool) -> Self {
        match (drifted, measured) {
            (true, _) => Self::Drift,
            (false, false) => Self::NotMeasured,
            (false, true) => Self::Pass,
        }
    }

    /// The exit code of a command with this verdict.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Drift => 1,
            Self::NotMeasured => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict;

    #[test]
    fn drift_prevails_over_what_was_not_measured() {
        let parts = [(false, true), (false, false), (true, true), (true, false)];
        assert_eq!(
            parts.map(|(drifted, measured)| Verdict::new(drifted, measured)),
            [
                Verdict::Pass,
                Verdict::NotMeasured,
                Verdict::Drift,
                Verdict::Drift
            ]
        );
        assert_eq!(
            Verdict::Drift.max(Verdict::NotMeasured).max(Verdict::Pass),
            Verdict::Drift
        );
        assert_eq!(
            Verdict::NotMeasured.max(Verdict::Pass),
            Verdict::NotMeasured
        );
    }

    #[test]
    fn every_verdict_has_its_own_exit_code() {
        let all = [Verdict::Pass, Verdict::Drift, Verdict::NotMeasured];
        assert_eq!(all.map(Verdict::exit_code), [0, 1, 3]);
    }
}
