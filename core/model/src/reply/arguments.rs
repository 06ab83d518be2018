/// The form in which the arguments of a call were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArgumentsClass {
    /// A string with a JSON object, as most wires require.
    JsonObjectString,
    /// An object.
    Object,
    /// An empty string or only white space.
    EmptyString,
    /// A null, or a string `null`.
    Null,
    /// The member is missing.
    Absent,
    /// JSON that is not an object.
    JsonNonObject,
    /// A Python dictionary literal.
    PythonLiteral,
    /// A JSON string that contains another JSON string, or such a string where the schema requires
    /// another type.
    DoubleEncoded,
    /// JSON that is cut off.
    Truncated,
    /// It contains markup of the model's own template.
    MarkupPolluted,
    /// None of the above.
    Invalid,
}

impl ArgumentsClass {
    /// Every class.
    pub const ALL: [Self; 11] = [
        Self::JsonObjectString,
        Self::Object,
        Self::EmptyString,
        Self::Null,
        Self::Absent,
        Self::JsonNonObject,
        Self::PythonLiteral,
        Self::DoubleEncoded,
        Self::Truncated,
        Self::MarkupPolluted,
        Self::Invalid,
    ];

    /// The word used in snapshots.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JsonObjectString => "json_object_string",
            Self::Object => "object",
            Self::EmptyString => "empty_string",
            Self::Null => "null",
            Self::Absent => "absent",
            Self::JsonNonObject => "json_non_object",
            Self::PythonLiteral => "python_literal",
            Self::DoubleEncoded => "double_encoded",
            Self::Truncated => "truncated",
            Self::MarkupPolluted => "markup_polluted",
            Self::Invalid => "invalid",
        }
    }

    /// The class for a word in a snapshot.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}
