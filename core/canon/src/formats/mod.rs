//! The wire shapes. Most are a table that says which key feeds which part of a [`Tool`]; the few
//! that are not have a module of their own. Reading and writing use the same table, so what is
//! read can be written back.

mod a2a;
mod anthropic;
mod bedrock;
mod bfcl;
mod cohere;
mod definition_pointer;
mod gemini;
mod huggingface;
mod json_schema;
mod langchain;
mod llamaindex;
mod mcp;
mod openai;
mod parameters;
mod python_types;
mod raw;
mod read;
mod semantic_kernel;
mod smolagents;
mod table;
mod vercel;
mod write;

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::{Format, Tool};

pub use definition_pointer::definition_pointer;
pub(crate) use gemini::HOSTED_KEYS as GEMINI_HOSTED_KEYS;
pub(crate) use parameters::describes_arguments;
pub(crate) use raw::is_parameter_map;
pub use read::ParseError;
pub(crate) use table::{FieldTable, ToolField};

/// Reads a definition of a known format.
pub(crate) fn read(format: Format, definition: Object) -> Result<Tool, ParseError> {
    match format {
        Format::JsonSchema => json_schema::read(definition),
        Format::LangchainFlat => Ok(langchain::read_flat(definition)),
        Format::Raw => Ok(raw::read(definition)),
        _ => read::read(format, table(format), definition),
    }
}

/// Writes a tool in the format it was read from, or in any other that has a table.
///
/// Parts that the format cannot express are left out; `emit` reports them.
pub(crate) fn write(format: Format, tool: Tool) -> Value {
    match format {
        Format::JsonSchema => json_schema::write(tool),
        Format::LangchainFlat => langchain::write_flat(tool),
        Format::Raw => raw::write(tool),
        _ => write::write(format, table(format), tool),
    }
}

/// The field table of a format; empty for formats that no table describes.
pub(crate) const fn table(format: Format) -> FieldTable {
    match format {
        Format::OpenaiChat => openai::CHAT,
        Format::OpenaiChatCustom => openai::CHAT_CUSTOM,
        Format::OpenaiResponses | Format::GeminiInteractions => openai::RESPONSES,
        Format::OpenaiResponsesCustom => openai::RESPONSES_CUSTOM,
        Format::OpenaiHosted => openai::HOSTED,
        Format::OpenaiLegacy => openai::LEGACY,
        Format::OpenaiAgents => openai::AGENTS,
        Format::Anthropic => anthropic::MESSAGES,
        Format::AnthropicServer => anthropic::SERVER,
        Format::Mcp => mcp::TOOL,
        Format::Langchain => langchain::TOOL,
        Format::LangchainArgs => langchain::ARGS,
        Format::LangchainSchema => langchain::SCHEMA,
        Format::Gemini => gemini::DECLARATION,
        Format::GeminiJsonSchema => gemini::DECLARATION_JSON_SCHEMA,
        Format::Bedrock => bedrock::TOOL_SPEC,
        Format::CohereV1 => cohere::V1,
        Format::VercelAi => vercel::FUNCTION,
        Format::VercelProvider => vercel::PROVIDER,
        Format::HfTransformers => huggingface::TOOL,
        Format::LlamaIndex => llamaindex::METADATA,
        Format::SemanticKernel => semantic_kernel::FUNCTION,
        Format::Smolagents => smolagents::TOOL,
        Format::A2aSkill => a2a::SKILL,
        Format::Bfcl => bfcl::FUNCTION,
        Format::Canonical
        | Format::LangchainFlat
        | Format::GeminiHosted
        | Format::BedrockSystem
        | Format::Openapi
        | Format::JsonSchema
        | Format::Raw => &[],
    }
}

/// Whether the table has a key for these very annotations.
pub(crate) fn supports_annotations(table: FieldTable, annotations: &Object) -> bool {
    table.iter().any(|field| {
        let converts = || {
            field.conversion.is_none_or(|conversion| {
                (conversion.encode)(&Value::Object(annotations.clone())).is_some()
            })
        };
        matches!(field.field, ToolField::Annotations) && converts()
    })
}

/// The path of the argument schema in a format.
pub(crate) fn input_key(format: Format) -> Option<String> {
    fn of(table: FieldTable, at: &str) -> Option<String> {
        table.iter().find_map(|field| match field.field {
            ToolField::Inputs => Some(format!("{at}/{}", field.key)),
            ToolField::Nested(inner) => of(inner, &format!("{at}/{}", field.key)),
            _ => None,
        })
    }
    of(table(format), "")
}

/// Whether the format has a schema under this key.
pub(crate) fn reads_schema(format: Format, key: &str) -> bool {
    any_field(table(format), &|field| {
        field.matches_key(key) && matches!(field.field, ToolField::Inputs | ToolField::Outputs)
    })
}

/// Whether `null` under this key means the same as leaving it out.
pub(crate) fn is_nullable(format: Format, key: &str) -> bool {
    any_field(table(format), &|field| {
        field.matches_key(key) && field.nullable
    })
}

fn any_field(table: FieldTable, test: &dyn Fn(&table::FieldMapping) -> bool) -> bool {
    table.iter().any(|field| match field.field {
        ToolField::Nested(inner) => test(field) || any_field(inner, test),
        _ => test(field),
    })
}

/// Whether a kept member of a tool is carried over in another spelling, with everything in it.
pub(crate) fn is_converted(tool: &Tool, format: Format, key: &str, value: &Value) -> bool {
    if format == Format::Raw {
        return raw::reads_as(key, value).is_some_and(|it| it.as_object() == Some(&tool.inputs));
    }
    is_converted_by(table(format), key, value)
}

fn is_converted_by(table: FieldTable, key: &str, value: &Value) -> bool {
    let field = table.iter().find(|field| field.matches_key(key));
    match (field.map(|field| (field.field, field.conversion)), value) {
        (Some((ToolField::Nested(inner), _)), Value::Object(members)) => {
            let mut members = members.iter();
            members.all(|(key, value)| is_converted_by(inner, key, value))
        }
        (Some((_, conversion)), _) => conversion.is_some(),
        (None, _) => false,
    }
}

/// Whether the format writes the part under this key in its own way.
pub(crate) fn has_conversion(format: Format, key: &str) -> bool {
    any_field(table(format), &|field| {
        field.matches_key(key) && field.conversion.is_some()
    })
}

/// The types that a tool's definition names and no schema expresses, with their places in it.
pub(crate) fn unknown_types(tool: &Tool) -> Vec<(Pointer, String)> {
    let Some(members) = tool.extensions.get(&tool.format) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if tool.format == Format::Raw {
        let read = members
            .iter()
            .filter(|(key, value)| is_converted(tool, Format::Raw, key, value));
        for (key, value) in read {
            let types = parameters::unknown_types(value).into_iter();
            let at = Pointer::of([key.as_str()]);
            found.extend(types.map(|(inner, word)| (at.join(&inner), word)));
        }
        return found;
    }
    collect_unknown_types(table(tool.format), members, &Pointer::root(), &mut found);
    found
}

fn collect_unknown_types(
    table: FieldTable,
    members: &Object,
    at: &Pointer,
    found: &mut Vec<(Pointer, String)>,
) {
    for (key, value) in members {
        let Some(field) = table.iter().find(|field| field.matches_key(key)) else {
            continue;
        };
        let at = at.child(key);
        match (field.field, field.conversion, value) {
            (ToolField::Nested(inner), _, Value::Object(members)) => {
                collect_unknown_types(inner, members, &at, found);
            }
            (_, Some(conversion), value) => {
                let types = (conversion.unknown_types)(value).into_iter();
                found.extend(types.map(|(inner, word)| (at.join(&inner), word)));
            }
            _ => {}
        }
    }
}

/// The members of a tool's definition that its fields do not carry, by format. A member that is
/// carried over in another spelling is left out, except for what that spelling does not say.
#[must_use]
pub fn uncarried_members(tool: &Tool) -> BTreeMap<Format, Object> {
    let formats = tool.extensions.iter().map(|(format, members)| {
        let rest = match format {
            Format::Raw => {
                let rest = members.iter().filter_map(|(key, value)| {
                    let rest = match is_converted(tool, Format::Raw, key, value) {
                        true => raw::remainder(value)?,
                        false => value.clone(),
                    };
                    Some((key.clone(), rest))
                });
                rest.collect()
            }
            format => uncarried(table(*format), members),
        };
        (*format, rest)
    });
    formats.filter(|(_, rest)| !rest.is_empty()).collect()
}

fn uncarried(table: FieldTable, members: &Object) -> Object {
    let rest = members.iter().filter_map(|(key, value)| {
        let field = table.iter().find(|field| field.matches_key(key));
        let rest = match (field.map(|field| (field.field, field.conversion)), value) {
            (Some((ToolField::Nested(inner), _)), Value::Object(members)) => {
                Some(Value::Object(uncarried(inner, members)))
            }
            (Some((_, Some(conversion))), value) if (conversion.decode)(value).is_some() => {
                (conversion.remainder)(value)
            }
            _ => Some(value.clone()),
        };
        Some((key.clone(), rest?))
    });
    rest.collect()
}
