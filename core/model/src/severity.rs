/// How severe something reported is, ordered from least to most severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// For information.
    Info,
    /// To be reviewed: callers may notice it.
    Warning,
    /// To be acted on: callers break, or a rule cannot be meant as it is.
    Breaking,
}

impl Severity {
    /// The word used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Breaking => "breaking",
        }
    }
}
