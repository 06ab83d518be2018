use super::rate::Rate;

/// One difference between two snapshots, or between a snapshot and what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct ContractChange {
    /// The tool it is about, if it is about one.
    pub tool: Option<String>,
    /// What differs, as a stable word.
    pub field: String,
    /// Where: in the arguments of the tool with `*` for the items of an array, or in the snapshot.
    pub pointer: String,
    /// How grave that is.
    pub severity: Severity,
    /// What it was.
    pub before: String,
    /// What it is.
    pub after: String,
    /// What a reader should know, in a sentence.
    pub note: String,
    /// How often it was so on either side, where it is a matter of how often.
    pub rates: Option<(Rate, Rate)>,
}

/// How grave a change is, the gravest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Info,
    /// Callers may notice.
    Warning,
    /// Callers break.
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

/// By tool, the gravest first.
pub(super) fn sort(changes: &mut [ContractChange]) {
    changes.sort_by(|one, other| {
        let key = |it: &ContractChange| (it.tool.is_none(), it.tool.clone());
        let place = |it: &ContractChange| (it.field.clone(), it.pointer.clone());
        key(one)
            .cmp(&key(other))
            .then(other.severity.cmp(&one.severity))
            .then_with(|| place(one).cmp(&place(other)))
    });
}
