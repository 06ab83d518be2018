/// In which form the arguments of a call were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArgumentsClass {
    /// A string that is JSON of an object, as most wires want it.
    JsonObjectString,
    /// An object.
    Object,
    /// A string of nothing but white space.
    EmptyString,
    /// A null, or a string that says so.
    Null,
    /// The member is missing.
    Absent,
    /// JSON that is no object.
    JsonNonObject,
    /// A dictionary as Python writes it.
    PythonLiteral,
    /// A string of JSON that is a string of JSON, or such a string where the schema wants more than a
    /// string.
    DoubleEncoded,
    /// JSON that ends too early.
    Truncated,
    /// Markup of the model's own template is inside.
    MarkupPolluted,
    /// None of these.
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

    /// The class of a word of a snapshot.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}
