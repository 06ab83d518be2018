//! A parameter of a request, and its type.

use jiff::Timestamp;
use serde_json::{Value, json};

/// A parameter in the path, the query or the body.
pub(super) struct ApiField {
    pub(super) name: &'static str,
    pub(super) kind: ApiFieldType,
    pub(super) required: bool,
    pub(super) description: &'static str,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApiFieldType {
    /// A string that is not empty.
    Text,
    /// Several strings: a list in a body, separated by commas in a query.
    Names,
    /// `true` or `false`.
    Flag,
    /// A number from 1 to this.
    Count(u32),
    /// A time in RFC 3339 format.
    Time,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// An object; only in a body.
    Object,
    /// Anything; only in a body.
    Any,
}

/// The longest accepted string.
const MAX_TEXT_BYTES: usize = 4_096;

impl ApiField {
    pub(super) const fn new(
        name: &'static str,
        kind: ApiFieldType,
        description: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            required: false,
            description,
        }
    }

    pub(super) const fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }
}

impl ApiFieldType {
    /// Its JSON Schema.
    pub(super) fn schema(self) -> Value {
        match self {
            Self::Text => json!({"type": "string", "minLength": 1, "maxLength": MAX_TEXT_BYTES}),
            Self::Names => json!({"type": "array", "items": Self::Text.schema()}),
            Self::Flag => json!({"type": "boolean"}),
            Self::Count(most) => json!({"type": "integer", "minimum": 1, "maximum": most}),
            Self::Time => json!({"type": "string", "format": "date-time"}),
            Self::OneOf(words) => json!({"type": "string", "enum": words}),
            Self::Object => json!({"type": "object"}),
            Self::Any => json!({}),
        }
    }

    /// The value of a query parameter.
    pub(super) fn parse_query(self, text: &str) -> Value {
        match self {
            Self::Names => {
                let names = text.split(',').map(str::trim);
                names.filter(|it| !it.is_empty()).map(Value::from).collect()
            }
            Self::Flag => match text {
                "true" => true.into(),
                "false" => false.into(),
                _ => text.into(),
            },
            Self::Count(_) => match text.parse::<u32>() {
                Ok(count) => count.into(),
                Err(_) => text.into(),
            },
            Self::Text | Self::Time | Self::OneOf(_) | Self::Object | Self::Any => text.into(),
        }
    }

    /// What is wrong with a value; `None` if it is valid.
    pub(super) fn find_fault(self, value: &Value) -> Option<String> {
        let is_text = |value: &Value| {
            let text = value.as_str();
            text.is_some_and(|it| (1..=MAX_TEXT_BYTES).contains(&it.chars().count()))
        };
        let (fits, wanted) = match self {
            Self::Text => {
                let wanted = format!("a text of 1 to {MAX_TEXT_BYTES} characters");
                (is_text(value), wanted)
            }
            Self::Names => {
                let names = value.as_array();
                let fits = names.is_some_and(|it| it.iter().all(is_text));
                (fits, "a list of texts".to_owned())
            }
            Self::Flag => (value.is_boolean(), "true or false".to_owned()),
            Self::Count(most) => {
                let count = value.as_u64();
                let fits = count.is_some_and(|it| (1..=u64::from(most)).contains(&it));
                (fits, format!("a whole number from 1 to {most}"))
            }
            Self::Time => {
                let text = value.as_str();
                let fits = text.is_some_and(|it| it.parse::<Timestamp>().is_ok());
                let wanted = "a time such as `2026-01-31T12:00:00Z`".to_owned();
                (fits, wanted)
            }
            Self::OneOf(words) => {
                let text = value.as_str().unwrap_or_default();
                let suggestion = toolwarden_model::did_you_mean(text, words.iter().copied());
                let wanted = format!("one of {}{suggestion}", words.join(", "));
                (words.contains(&text), wanted)
            }
            Self::Object => (value.is_object(), "an object".to_owned()),
            Self::Any => (true, String::new()),
        };
        (!fits).then_some(wanted)
    }
}
