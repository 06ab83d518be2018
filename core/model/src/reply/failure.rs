use std::fmt;

/// Why a trial says nothing about the model. It is neither a pass nor a fail, and two of them are
/// not equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotMeasured {
    /// What happened.
    pub failure: TrialFailure,
    /// An explanation in one sentence, without secrets.
    pub detail: String,
}

impl fmt::Display for NotMeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.failure.as_str(), self.detail)
    }
}

/// Why a trial could not be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrialFailure {
    /// The provider did not answer, or the connection broke.
    Connection,
    /// The request timed out.
    Timeout,
    /// A status other than success.
    Status,
    /// The provider refused the schema of a tool, and with it the whole request.
    SchemaRejected,
    /// The response is a redirect.
    Redirect,
    /// A successful status with an error in the body.
    ErrorBody,
    /// A reply without content: no choices, no candidates.
    Empty,
    /// The body is neither JSON nor events.
    NotJson,
    /// JSON with an unexpected structure.
    WrongEnvelope,
    /// The response is incomplete.
    Truncated,
    /// The response exceeds the size limit.
    TooLarge,
    /// No request was sent: the budget was used up, or the key is missing.
    NotAsked,
}

impl TrialFailure {
    /// Every failure.
    pub const ALL: [Self; 12] = [
        Self::Connection,
        Self::Timeout,
        Self::Status,
        Self::SchemaRejected,
        Self::Redirect,
        Self::ErrorBody,
        Self::Empty,
        Self::NotJson,
        Self::WrongEnvelope,
        Self::Truncated,
        Self::TooLarge,
        Self::NotAsked,
    ];

    /// The word used in snapshots.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Status => "status",
            Self::SchemaRejected => "schema_rejected",
            Self::Redirect => "redirect",
            Self::ErrorBody => "error_body",
            Self::Empty => "empty",
            Self::NotJson => "not_json",
            Self::WrongEnvelope => "wrong_envelope",
            Self::Truncated => "truncated",
            Self::TooLarge => "too_large",
            Self::NotAsked => "not_asked",
        }
    }

    /// The failure for a word in a snapshot.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}
