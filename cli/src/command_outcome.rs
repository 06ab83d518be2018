use toolwarden_model::Verdict;

/// The outcome of a command, which decides its exit code. Commands that look for drift come to a
/// [`Verdict`]; the others have findings of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandOutcome {
    Pass,
    Finding,
    /// Something could not be checked, and nothing was found elsewhere.
    NotMeasured,
}

impl CommandOutcome {
    pub(crate) const fn from_finding(found: bool) -> Self {
        if found { Self::Finding } else { Self::Pass }
    }

    pub(crate) const fn from_measured(all: bool) -> Self {
        if all { Self::Pass } else { Self::NotMeasured }
    }

    /// The exit code. A caller may ask for zero where something was found.
    pub(crate) const fn exit_code(self, exit_zero: bool) -> u8 {
        let verdict = match self {
            Self::Finding if exit_zero => Verdict::Pass,
            Self::Pass => Verdict::Pass,
            Self::Finding => Verdict::Drift,
            Self::NotMeasured => Verdict::NotMeasured,
        };
        verdict.exit_code()
    }
}

impl From<Verdict> for CommandOutcome {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Pass,
            Verdict::Drift => Self::Finding,
            Verdict::NotMeasured => Self::NotMeasured,
        }
    }
}
