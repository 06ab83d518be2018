use std::fmt;

/// Why a trial says nothing about the model. It is neither a pass nor a fail, and two of them are not
/// equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotMeasured {
    /// What happened.
    pub failure: Failure,
    /// What a reader should know, in a sentence, without secrets.
    pub detail: String,
}

impl fmt::Display for NotMeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.failure.as_str(), self.detail)
    }
}

/// What kept a trial from being measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// Nobody answered, or the connection broke.
    Connection,
    /// It took too long.
    Timeout,
    /// A status that is no success.
    Status,
    /// The schema of a tool was refused, and with it the whole request.
    SchemaRejected,
    /// The answer led elsewhere.
    Redirect,
    /// A success that holds an error.
    ErrorBody,
    /// A reply with nothing in it: no choices, no candidates.
    Empty,
    /// Something other than JSON or events.
    NotJson,
    /// JSON of another shape.
    WrongEnvelope,
    /// It ended before it was whole.
    Truncated,
    /// It is larger than what is read.
    TooLarge,
    /// Nothing was asked: a budget was used up, or the key is missing.
    NotAsked,
}

impl Failure {
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

    /// The failure of a word of a snapshot.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}
