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
mod python_types;
mod raw;
mod read;
mod semantic_kernel;
mod smolagents;
mod table;
mod vercel;
mod write;

use serde_json::Value;
use toolwarden_model::json::Object;
use toolwarden_model::{Format, Tool};

pub use definition_pointer::definition_pointer;
pub(crate) use gemini::HOSTED_KEYS as GEMINI_HOSTED_KEYS;
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

/// Whether the format's key is carried over in another spelling.
pub(crate) fn is_converted(format: Format, key: &str) -> bool {
    table(format)
        .iter()
        .any(|field| field.matches_key(key) && field.conversion.is_some())
}
