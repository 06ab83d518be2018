use serde_json::Value;

/// The format of a call id. Other providers may refuse a history with ids in an unknown format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallIdClass {
    /// `call_…`, as OpenAI writes them.
    OpenaiCall,
    /// `functions.get_weather:0`, as Kimi writes them.
    KimiFunctions,
    /// `get_weather:0`.
    KimiBare,
    /// Nine letters and digits, as Mistral writes them.
    Alnum9,
    /// A UUID.
    Uuid,
    /// `toolu_…`, as Anthropic writes them.
    Toolu,
    /// An empty text.
    Empty,
    /// Missing, or null.
    Absent,
    /// Anything else, including a number.
    Other,
}

impl CallIdClass {
    /// Every class.
    pub const ALL: [Self; 9] = [
        Self::OpenaiCall,
        Self::KimiFunctions,
        Self::KimiBare,
        Self::Alnum9,
        Self::Uuid,
        Self::Toolu,
        Self::Empty,
        Self::Absent,
        Self::Other,
    ];

    /// The class of an id as it was sent.
    #[must_use]
    pub fn of(id: Option<&Value>) -> Self {
        let text = match id {
            None | Some(Value::Null) => return Self::Absent,
            Some(Value::String(text)) => text.as_str(),
            Some(_) => return Self::Other,
        };
        let is_uuid = || {
            let lengths = text.split('-').map(str::len);
            lengths.eq([8, 4, 4, 4, 12]) && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
        };
        let numbered = || {
            let (name, number) = text.rsplit_once(':')?;
            let is_number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
            (is_number && !name.is_empty()).then_some(name)
        };
        if text.is_empty() {
            Self::Empty
        } else if text.strip_prefix("call_").is_some_and(|it| it.len() >= 3) {
            Self::OpenaiCall
        } else if text.starts_with("toolu_") {
            Self::Toolu
        } else if is_uuid() {
            Self::Uuid
        } else if text.len() == 9 && text.bytes().all(|it| it.is_ascii_alphanumeric()) {
            Self::Alnum9
        } else if let Some(name) = numbered() {
            if name.starts_with("functions.") {
                Self::KimiFunctions
            } else {
                Self::KimiBare
            }
        } else {
            Self::Other
        }
    }

    /// The word used in snapshots.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiCall => "openai_call",
            Self::KimiFunctions => "kimi_functions",
            Self::KimiBare => "kimi_bare",
            Self::Alnum9 => "alnum9",
            Self::Uuid => "uuid",
            Self::Toolu => "toolu",
            Self::Empty => "empty",
            Self::Absent => "absent",
            Self::Other => "other",
        }
    }

    /// The class for a word in a snapshot.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_told_by_their_looks() {
        for (id, class) in [
            (json!(null), CallIdClass::Absent),
            (json!(""), CallIdClass::Empty),
            (json!(7), CallIdClass::Other),
            (json!("call_0_9a8b7c6d5e4f"), CallIdClass::OpenaiCall),
            (json!("call_"), CallIdClass::Other),
            (json!("toolu_01ABC"), CallIdClass::Toolu),
            (json!("functions.get_weather:0"), CallIdClass::KimiFunctions),
            (json!("get_weather:12"), CallIdClass::KimiBare),
            (json!("get_weather:"), CallIdClass::Other),
            (json!("D681PevKs"), CallIdClass::Alnum9),
            (
                json!("0b1f6f5e-7a52-4c8e-9d4b-0c9a3f1e2d4c"),
                CallIdClass::Uuid,
            ),
            (json!("chatcmpl-tool-1b2c"), CallIdClass::Other),
        ] {
            assert_eq!(CallIdClass::of(Some(&id)), class, "{id}");
        }
        assert_eq!(CallIdClass::of(None), CallIdClass::Absent);
        for class in CallIdClass::ALL {
            assert_eq!(CallIdClass::from_word(class.as_str()), Some(class));
        }
    }
}
