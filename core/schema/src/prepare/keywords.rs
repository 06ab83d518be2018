use serde_json::Value;

use super::draft::Draft;

/// How an assertion of one schema reads in draft 2020-12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeywordKind {
    /// A value that is copied unchanged after its form is checked.
    Plain(ValueForm),
    /// One schema.
    Schema,
    /// A list of schemas, at least one.
    Schemas,
    /// A map from names to schemas.
    SchemaMap,
    /// A keyword whose meaning depends on its sibling keywords; the lifter handles it by name.
    Special,
    /// An annotation, which does not decide about a value.
    Annotation,
}

/// What a plain keyword must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueForm {
    Types,
    List,
    Anything,
    Number,
    PositiveNumber,
    Count,
    Text,
    Boolean,
    Names,
    NameLists,
}

/// What a keyword means in a draft.
pub(crate) fn keyword_kind(keyword: &str, draft: Draft) -> KeywordKind {
    let since = |first: Draft, kind: KeywordKind| {
        if draft >= first {
            kind
        } else {
            KeywordKind::Annotation
        }
    };
    match keyword {
        "type" => KeywordKind::Plain(ValueForm::Types),
        "enum" => KeywordKind::Plain(ValueForm::List),
        "const" => since(Draft::Draft6, KeywordKind::Plain(ValueForm::Anything)),
        "minimum" | "maximum" => KeywordKind::Special,
        "exclusiveMinimum" | "exclusiveMaximum" => {
            if draft == Draft::Draft4 {
                KeywordKind::Special
            } else {
                KeywordKind::Plain(ValueForm::Number)
            }
        }
        "multipleOf" => KeywordKind::Plain(ValueForm::PositiveNumber),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            KeywordKind::Plain(ValueForm::Count)
        }
        "minContains" | "maxContains" => {
            since(Draft::Draft2019, KeywordKind::Plain(ValueForm::Count))
        }
        "pattern" => KeywordKind::Plain(ValueForm::Text),
        "uniqueItems" => KeywordKind::Plain(ValueForm::Boolean),
        "required" => KeywordKind::Plain(ValueForm::Names),
        "dependentRequired" => since(Draft::Draft2019, KeywordKind::Plain(ValueForm::NameLists)),
        "additionalProperties" | "not" => KeywordKind::Schema,
        "propertyNames" | "contains" => since(Draft::Draft6, KeywordKind::Schema),
        "if" | "then" | "else" => since(Draft::Draft7, KeywordKind::Schema),
        "unevaluatedProperties" | "unevaluatedItems" => {
            since(Draft::Draft2019, KeywordKind::Schema)
        }
        "allOf" | "anyOf" | "oneOf" => KeywordKind::Schemas,
        "prefixItems" => since(Draft::Draft2020, KeywordKind::Schemas),
        "properties" | "patternProperties" => KeywordKind::SchemaMap,
        "dependentSchemas" => since(Draft::Draft2019, KeywordKind::SchemaMap),
        "items" | "additionalItems" | "dependencies" | "format" | "$ref" => KeywordKind::Special,
        // Since 2019-09 these are annotations.
        "contentEncoding" | "contentMediaType"
            if matches!(draft, Draft::Draft6 | Draft::Draft7) =>
        {
            KeywordKind::Special
        }
        "$recursiveRef" | "$dynamicRef" => since(Draft::Draft2019, KeywordKind::Special),
        _ => KeywordKind::Annotation,
    }
}

impl ValueForm {
    /// Whether a value has this form; otherwise what it should be.
    pub(crate) fn check(self, value: &Value) -> Result<(), &'static str> {
        let names = |value: &Value| {
            value
                .as_array()
                .is_some_and(|names| names.iter().all(Value::is_string))
        };
        let fits = match self {
            Self::Types => match value {
                Value::String(word) => is_type(word),
                Value::Array(words) => {
                    !words.is_empty() && words.iter().all(|word| word.as_str().is_some_and(is_type))
                }
                _ => false,
            },
            Self::List => value.is_array(),
            Self::Anything => true,
            Self::Number => value.is_number(),
            Self::PositiveNumber => match value {
                // By its text: a large or small number may be no binary fraction.
                Value::Number(number) => {
                    let (digits, _) = number
                        .as_str()
                        .split_once(['e', 'E'])
                        .unwrap_or((number.as_str(), ""));
                    !digits.starts_with('-')
                        && digits.contains(|digit| ('1'..='9').contains(&digit))
                }
                _ => false,
            },
            Self::Count => parse_count(value).is_some(),
            Self::Text => value.is_string(),
            Self::Boolean => value.is_boolean(),
            Self::Names => names(value),
            Self::NameLists => value
                .as_object()
                .is_some_and(|lists| lists.values().all(names)),
        };
        if fits { Ok(()) } else { Err(self.expected()) }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Types => "one of the seven type names or a list of them",
            Self::List => "a list",
            Self::Anything => "any value",
            Self::Number => "a number",
            Self::PositiveNumber => "a number above zero",
            Self::Count => "a whole number from zero",
            Self::Text => "a string",
            Self::Boolean => "true or false",
            Self::Names => "a list of names",
            Self::NameLists => "an object of lists of names",
        }
    }
}

/// A count, also where it is written as `5.0`.
pub(crate) fn parse_count(value: &Value) -> Option<u64> {
    if let Some(count) = value.as_u64() {
        return Some(count);
    }
    let number = value.as_f64()?;
    let whole = number >= 0.0 && number.fract() == 0.0 && number < 9e15;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be a whole number in range"
    )]
    whole.then_some(number as u64)
}

fn is_type(word: &str) -> bool {
    matches!(
        word,
        "null" | "boolean" | "integer" | "number" | "string" | "array" | "object"
    )
}
