use serde_json::Value;

/// A set of JSON types. Whole numbers are apart from others, so that `integer` is a type like any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TypeSet(u8);

impl TypeSet {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOLEAN: Self = Self(2);
    pub(crate) const INTEGER: Self = Self(4);
    pub(crate) const FRACTION: Self = Self(8);
    pub(crate) const NUMBER: Self = Self(4 | 8);
    pub(crate) const STRING: Self = Self(16);
    pub(crate) const ARRAY: Self = Self(32);
    pub(crate) const OBJECT: Self = Self(64);
    pub(crate) const ALL: Self = Self(127);

    /// The types a search tries one by one, the simplest first.
    pub(crate) const KINDS: [Self; 6] = [
        Self::STRING,
        Self::NUMBER,
        Self::BOOLEAN,
        Self::NULL,
        Self::OBJECT,
        Self::ARRAY,
    ];

    pub(crate) fn named(word: &str) -> Self {
        match word {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => Self::NONE,
        }
    }

    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) => match super::Ratio::of(number) {
                Some(ratio) if ratio.is_integer() => Self::INTEGER,
                Some(_) => Self::FRACTION,
                None => Self::NUMBER,
            },
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn complement(self) -> Self {
        Self(!self.0 & 127)
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }
}
