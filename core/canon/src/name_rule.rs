/// What a target accepts as a tool's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameRule {
    /// Characters besides ASCII letters and digits.
    pub punctuation: &'static str,
    /// The longest name.
    pub max_length: usize,
    /// Whether the first character must be a letter or an underscore.
    pub starts_with_letter: bool,
}

impl NameRule {
    /// Letters, digits, `_` and `-`, up to 64: OpenAI, Bedrock and most compatible endpoints.
    pub const ASCII_64: Self = Self {
        punctuation: "_-",
        max_length: 64,
        starts_with_letter: false,
    };
    /// The same, up to 128: Anthropic.
    pub const ASCII_128: Self = Self {
        max_length: 128,
        ..Self::ASCII_64
    };
    /// Gemini's function names.
    pub const GEMINI: Self = Self {
        punctuation: "_.:-",
        max_length: 128,
        starts_with_letter: true,
    };

    /// Whether a name is accepted as it is.
    #[must_use]
    pub fn accepts(&self, name: &str) -> bool {
        !name.is_empty()
            && name.chars().count() <= self.max_length
            && name.chars().all(|c| self.allows(c))
            && name
                .chars()
                .next()
                .is_some_and(|first| self.may_start(first))
    }

    pub(crate) fn allows(&self, c: char) -> bool {
        c.is_ascii_alphanumeric() || self.punctuation.contains(c)
    }

    pub(crate) fn may_start(&self, c: char) -> bool {
        !self.starts_with_letter || c.is_ascii_alphabetic() || c == '_'
    }
}
