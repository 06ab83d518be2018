//! Schemas that a definition carries and its format does not read.

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer, type_name};
use toolwarden_model::{Format, Tool};

use crate::container::{UnreadPart, unread_parts};
use crate::formats::{self, describes_arguments};

/// A member that should be a schema of the tool and is not read as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadSchema {
    /// The place of the member in the definition.
    pub pointer: Pointer,
    /// Why it is not read.
    pub problem: SchemaProblem,
}

/// Why a member is not read as a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaProblem {
    /// It is neither an object nor a boolean.
    NotASchema {
        /// What it is.
        found: &'static str,
    },
    /// It is `true` or `false`: a schema that names no arguments.
    Boolean,
    /// It looks like the schema of the arguments, under a key that the format does not read.
    Misplaced {
        /// The format of the definition.
        format: Format,
    },
    /// The definition has another schema of the arguments, which is read instead.
    Second,
    /// A part of an operation of an OpenAPI document is not read.
    Part(UnreadPart),
    /// It is a type that no schema expresses, so the tool that is read accepts other values too.
    UnknownType {
        /// The type.
        word: String,
    },
}

impl SchemaProblem {
    /// The stable code of the kind of problem.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotASchema { .. } => "not-a-schema",
            Self::Boolean => "boolean-schema",
            Self::Misplaced { .. } => "unread-schema",
            Self::Second => "second-schema",
            Self::Part(part) => part.code(),
            Self::UnknownType { .. } => "unknown-type",
        }
    }

    /// What is wrong.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::NotASchema { found } => format!("the schema is {found}, not an object"),
            Self::Boolean => "the schema is a boolean, which declares no arguments".to_owned(),
            Self::Misplaced { format } => format!(
                "this looks like the schema of the arguments, under a key that {format} does not read"
            ),
            Self::Second => {
                "this is a second schema of the arguments and differs from the one that is read"
                    .to_owned()
            }
            Self::Part(part) => part.describe(),
            Self::UnknownType { word } => {
                let word = word.escape_debug();
                format!("JSON Schema has no type `{word}`, so other values are accepted too")
            }
        }
    }

    /// Whether it is a mistake in the definition.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        match self {
            Self::Part(part) => part.is_error(),
            Self::NotASchema { .. } | Self::Boolean | Self::Misplaced { .. } | Self::Second => true,
            // It is what the format calls it; only other formats cannot say it.
            Self::UnknownType { .. } => false,
        }
    }

    /// What to write instead.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::NotASchema { .. } | Self::Boolean => {
                "write an object with `type: object` and the arguments under `properties`"
                    .to_owned()
            }
            Self::Misplaced { format } => match formats::input_key(*format) {
                Some(key) => format!("move it to `{key}`"),
                None => "move it to the key that the provider reads".to_owned(),
            },
            Self::Second => "keep one of them".to_owned(),
            Self::Part(part) => part.fix().to_owned(),
            Self::UnknownType { .. } => {
                "use a type of JSON, such as a string that holds a URL or base64 data".to_owned()
            }
        }
    }
}

/// Keys that hold the schema of arguments in some format.
const INPUT_KEYS: &[&str] = &[
    "inputSchema",
    "input_schema",
    "parameters",
    "args_schema",
    "params_json_schema",
    "parametersJsonSchema",
    "parameters_json_schema",
    "parameter_definitions",
    "fn_schema",
];

/// Keys that hold it too, and other things as often.
const LOOSE_INPUT_KEYS: &[&str] = &[
    "schema",
    "args",
    "arguments",
    "inputs",
    "input",
    "params",
    "inputParameters",
    "input_parameters",
];

const OUTPUT_KEYS: &[&str] = &[
    "outputSchema",
    "output_schema",
    "responseJsonSchema",
    "response_json_schema",
];

/// Whether a key names the arguments of a tool, whatever it holds.
pub(crate) fn names_arguments(key: &str) -> bool {
    INPUT_KEYS.contains(&key) || LOOSE_INPUT_KEYS.contains(&key) || key == "signature"
}

/// Objects inside a definition that hold its parts.
const WRAPPERS: &[&str] = &["function", "toolSpec", "custom", "metadata", "definition"];

/// Every member of a definition that should be one of its schemas and is not read.
#[must_use]
pub fn unread_schemas(tool: &Tool) -> Vec<UnreadSchema> {
    if tool.format == Format::Openapi {
        return unread_parts(tool)
            .map(|(pointer, part)| UnreadSchema {
                pointer,
                problem: SchemaProblem::Part(part),
            })
            .collect();
    }
    let closed = matches!(
        tool.format,
        Format::Canonical | Format::JsonSchema | Format::A2aSkill
    );
    let mut found = Vec::new();
    if let (false, Some(members)) = (
        closed || tool.format.is_hosted(),
        tool.extensions.get(&tool.format),
    ) {
        search(tool, members, &Pointer::root(), &mut found);
        let types = formats::unknown_types(tool).into_iter();
        found.extend(types.map(|(pointer, word)| UnreadSchema {
            pointer,
            problem: SchemaProblem::UnknownType { word },
        }));
    }
    found
}

fn search(tool: &Tool, members: &Object, at: &Pointer, found: &mut Vec<UnreadSchema>) {
    for (key, value) in members {
        let pointer = at.child(key);
        // Bedrock wraps its schema once more.
        let wrapped = value.as_object().filter(|it| it.len() == 1);
        let wrapped = wrapped.and_then(|it| it.get("json"));
        let (pointer, value) = match wrapped.filter(|_| INPUT_KEYS.contains(&key.as_str())) {
            Some(inner) => (pointer.child("json"), inner),
            None => (pointer, value),
        };
        if let Some(problem) = problem(tool, key, value) {
            found.push(UnreadSchema { pointer, problem });
        } else if let (true, Value::Object(inner)) = (WRAPPERS.contains(&key.as_str()), value) {
            search(tool, inner, &pointer, found);
        }
    }
}

fn problem(tool: &Tool, key: &str, value: &Value) -> Option<SchemaProblem> {
    let format = tool.format;
    // A part that the format writes differently is read, and the original is kept beside it.
    let converted = formats::has_conversion(format, key)
        || (format == Format::Raw && formats::is_converted(tool, format, key, value));
    if converted {
        return None;
    }
    let (input, output) = (INPUT_KEYS.contains(&key), OUTPUT_KEYS.contains(&key));
    let loose = LOOSE_INPUT_KEYS.contains(&key);
    let own = format == Format::Raw || formats::reads_schema(format, key);
    match value {
        Value::Object(_) if (input || loose) && describes_arguments(value) => {
            if tool.absent.inputs {
                return Some(SchemaProblem::Misplaced { format });
            }
            let second = input && value.as_object() != Some(&tool.inputs);
            second.then_some(SchemaProblem::Second)
        }
        Value::Object(_) => None,
        // Some providers read `null` as leaving the key out, and so do most readers of other keys.
        Value::Null if !own || formats::is_nullable(format, key) => None,
        Value::Bool(_) if input || (output && own) => Some(SchemaProblem::Boolean),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_)
            if input || (output && own) =>
        {
            let found = type_name(value);
            Some(SchemaProblem::NotASchema { found })
        }
        _ => None,
    }
}
