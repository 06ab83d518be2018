use serde_json::Value;

use super::draft::Draft;

/// How an assertion of one schema reads in draft 2020-12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A value that is taken over as it is, once its form is known to be right.
    Plain(Form),
    /// One schema.
    Schema,
    /// A list of schemas, at least one.
    Schemas,
    /// A map from names to schemas.
    SchemaMap,
    /// A keyword whose reading depends on its neighbours; the lifter knows them by name.
    Special,
    /// Nothing that decides about a value.
    Annotation,
}

/// What a plain keyword must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
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
pub(crate) fn kind(keyword: &str, draft: Draft) -> Kind {
    let since = |first: Draft, kind: Kind| {
        if draft >= first {
            kind
        } else {
            Kind::Annotation
        }
    };
    match keyword {
        "type" => Kind::Plain(Form::Types),
        "enum" => Kind::Plain(Form::List),
        "const" => since(Draft::Six, Kind::Plain(Form::Anything)),
        "minimum" | "maximum" => Kind::Special,
        "exclusiveMinimum" | "exclusiveMaximum" => {
            if draft == Draft::Four {
                Kind::Special
            } else {
                Kind::Plain(Form::Number)
            }
        }
        "multipleOf" => Kind::Plain(Form::PositiveNumber),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            Kind::Plain(Form::Count)
        }
        "minContains" | "maxContains" => since(Draft::Draft2019, Kind::Plain(Form::Count)),
        "pattern" => Kind::Plain(Form::Text),
        "uniqueItems" => Kind::Plain(Form::Boolean),
        "required" => Kind::Plain(Form::Names),
        "dependentRequired" => since(Draft::Draft2019, Kind::Plain(Form::NameLists)),
        "additionalProperties" | "not" => Kind::Schema,
        "propertyNames" | "contains" => since(Draft::Six, Kind::Schema),
        "if" | "then" | "else" => since(Draft::Seven, Kind::Schema),
        "unevaluatedProperties" | "unevaluatedItems" => since(Draft::Draft2019, Kind::Schema),
        "allOf" | "anyOf" | "oneOf" => Kind::Schemas,
        "prefixItems" => since(Draft::Draft2020, Kind::Schemas),
        "properties" | "patternProperties" => Kind::SchemaMap,
        "dependentSchemas" => since(Draft::Draft2019, Kind::SchemaMap),
        "items" | "additionalItems" | "dependencies" | "format" | "$ref" => Kind::Special,
        // Since 2019-09 these only inform.
        "contentEncoding" | "contentMediaType" if matches!(draft, Draft::Six | Draft::Seven) => {
            Kind::Special
        }
        "$recursiveRef" | "$dynamicRef" => since(Draft::Draft2019, Kind::Special),
        _ => Kind::Annotation,
    }
}

impl Form {
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
            Self::PositiveNumber => value.as_f64().is_some_and(|number| number > 0.0),
            Self::Count => count(value).is_some(),
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
pub(crate) fn count(value: &Value) -> Option<u64> {
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
