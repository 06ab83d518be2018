use serde_json::Value;
use toolwarden_model::json::Object;
use toolwarden_model::{Format, FormatFamily};

use crate::format_keys::{Key, Keys};
use crate::formats::is_parameter_map;

/// The detected format of a definition, with scores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    /// The answer: the first rule of the decision list that holds.
    pub format: Format,
    /// Every format whose marks are present, in decision order, with its score.
    pub scores: Vec<(Format, Score)>,
    /// Other families whose marks are equally strong.
    pub ambiguous_with: Vec<Format>,
}

/// How strongly the marks indicate a format, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score(u8);

impl Score {
    /// From this score on a format is a serious candidate.
    pub const LIKELY: Self = Self(70);

    /// The score in per cent.
    #[must_use]
    pub const fn percent(self) -> u8 {
        self.0
    }

    /// The score as a fraction.
    #[must_use]
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

/// Detects the format of one definition by its structure.
#[must_use]
pub fn detect(definition: &Value) -> Detection {
    match definition {
        Value::Object(members) => detect_object(members, Keys::of(members)),
        _ => Detection {
            format: Format::Raw,
            scores: vec![(Format::Raw, Score(10))],
            ambiguous_with: Vec::new(),
        },
    }
}

/// As [`detect`], with the keys already collected.
pub(crate) fn detect_object(members: &Object, keys: Keys) -> Detection {
    let definition = DefinitionKeys { members, keys };
    let mut scores: Vec<(Format, Score)> = Vec::with_capacity(4);
    for rule in RULES {
        if scores.iter().all(|(format, _)| *format != rule.format) && (rule.holds)(&definition) {
            scores.push((rule.format, Score(rule.percent)));
        }
    }
    let format = scores.first().map_or(Format::Raw, |(format, _)| *format);
    let ambiguous_with = ambiguous_formats(format, &scores);
    Detection {
        format,
        scores,
        ambiguous_with,
    }
}

impl Detection {
    /// The best score of a family's formats.
    #[must_use]
    pub fn family_score(&self, family: FormatFamily) -> Score {
        let scores = self
            .scores
            .iter()
            .filter(|(format, _)| format.family() == family);
        scores.map(|(_, score)| *score).max().unwrap_or(Score(0))
    }
}

/// The formats of other families that also score highly: two such families cannot both be right.
fn ambiguous_formats(chosen: Format, scores: &[(Format, Score)]) -> Vec<Format> {
    scores
        .iter()
        .filter(|(format, score)| format.family() != chosen.family() && *score >= Score::LIKELY)
        .map(|(format, _)| *format)
        .collect()
}

struct DefinitionKeys<'d> {
    members: &'d Object,
    keys: Keys,
}

impl DefinitionKeys<'_> {
    fn has(&self, key: Key) -> bool {
        self.keys.has(key)
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.members.get(key)
    }

    fn is_object(&self, key: &str) -> bool {
        self.get(key).is_some_and(Value::is_object)
    }

    fn is_array(&self, key: &str) -> bool {
        self.get(key).is_some_and(Value::is_array)
    }

    fn type_is(&self, word: &str) -> bool {
        self.has(Key::Type) && self.get("type").and_then(Value::as_str) == Some(word)
    }

    fn type_word(&self) -> &str {
        self.get("type").and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether `type: function` is beside a name, without a schema under another provider's key.
    fn is_flat_function(&self) -> bool {
        self.has(Key::Name)
            && self.type_is("function")
            && (self.has(Key::Parameters)
                || !(self.has(Key::InputSchemaCamel) || self.has(Key::InputSchemaSnake)))
    }

    /// Whether `inputs` is the schema of an object, or nothing at all as in a canonical tool.
    fn inputs_is_schema(&self) -> bool {
        let inputs = self.get("inputs").and_then(Value::as_object);
        inputs.is_some_and(|inputs| {
            let typed = inputs.get("type").and_then(Value::as_str) == Some("object");
            inputs.is_empty()
                || typed
                || inputs.get("properties").is_some_and(Value::is_object)
                || inputs.get("$ref").is_some_and(Value::is_string)
        })
    }

    /// Whether the wrapped function says what it returns, which only one SDK's does.
    fn returns(&self) -> bool {
        self.get("function")
            .is_some_and(|function| function.get("return").is_some())
    }

    /// Whether `parameters` describes one parameter after the other, and is not a schema.
    fn has_parameter_map(&self) -> bool {
        let parameters = self.get("parameters").and_then(Value::as_object);
        parameters.is_some_and(is_parameter_map)
    }

    /// Whether any type in `parameters` satisfies the test, looked for a few levels down.
    fn parameter_type(&self, test: fn(&str) -> bool) -> bool {
        self.get("parameters")
            .is_some_and(|schema| any_type(schema, test, 8))
    }
}

fn any_type(schema: &Value, test: fn(&str) -> bool, depth: usize) -> bool {
    let Some(members) = schema.as_object() else {
        return false;
    };
    if members
        .get("type")
        .and_then(Value::as_str)
        .is_some_and(test)
    {
        return true;
    }
    depth > 0
        && ["properties", "items", "anyOf", "any_of"]
            .iter()
            .any(|key| match members.get(*key) {
                Some(Value::Object(map)) if *key == "properties" => {
                    map.values().any(|schema| any_type(schema, test, depth - 1))
                }
                Some(Value::Array(items)) => {
                    items.iter().any(|schema| any_type(schema, test, depth - 1))
                }
                Some(schema) => any_type(schema, test, depth - 1),
                None => false,
            })
}

struct Rule {
    format: Format,
    percent: u8,
    holds: fn(&DefinitionKeys<'_>) -> bool,
}

const fn rule(format: Format, percent: u8, holds: fn(&DefinitionKeys<'_>) -> bool) -> Rule {
    Rule {
        format,
        percent,
        holds,
    }
}

/// The ordered decision list: the first rule that holds decides. A rule checks what it needs
/// and does not rely on what earlier rules have excluded, so that every score is independent.
const RULES: &[Rule] = &[
    rule(Format::Canonical, 100, |d| {
        d.has(Key::Capabilities)
            && d.has(Key::Name)
            && d.has(Key::Inputs)
            && d.is_object("capabilities")
    }),
    rule(Format::Canonical, 80, |d| {
        d.has(Key::Name) && d.has(Key::Inputs) && !d.has(Key::OutputType) && d.inputs_is_schema()
    }),
    // The toolcanon document takes `name` and `parameters` before every other pair of keys.
    rule(Format::OpenaiLegacy, 70, |d| {
        d.has(Key::Name)
            && d.is_object("parameters")
            && !d.has(Key::Type)
            && [
                Key::InputSchemaSnake,
                Key::InputSchemaCamel,
                Key::ArgsSchema,
                Key::Schema,
            ]
            .into_iter()
            .any(|key| d.has(key))
    }),
    rule(Format::Bedrock, 100, |d| d.has(Key::ToolSpec)),
    rule(Format::BedrockSystem, 100, |d| {
        d.has(Key::SystemTool) || d.has(Key::CachePoint)
    }),
    rule(Format::HfTransformers, 100, |d| {
        d.has(Key::Function) && d.type_is("function") && d.returns()
    }),
    rule(Format::OpenaiChat, 100, |d| {
        d.has(Key::Function) && d.type_is("function") && !d.returns()
    }),
    rule(Format::OpenaiChatCustom, 100, |d| {
        d.type_is("custom") && d.is_object("custom")
    }),
    rule(Format::VercelProvider, 100, |d| {
        d.type_is("provider")
            && d.get("id")
                .and_then(Value::as_str)
                .is_some_and(|id| id.contains('.'))
    }),
    rule(Format::VercelAi, 100, |d| {
        d.has(Key::InputSchemaCamel) && d.type_is("function") && !d.has(Key::Parameters)
    }),
    rule(Format::OpenaiResponses, 70, |d| d.is_flat_function()),
    rule(Format::GeminiInteractions, 70, |d| {
        d.is_flat_function()
            && !d.has(Key::Strict)
            && !["output_schema", "defer_loading", "allowed_callers", "async"]
                .iter()
                .any(|key| d.get(key).is_some())
    }),
    rule(Format::Anthropic, 100, |d| {
        d.has(Key::Name) && d.has(Key::InputSchemaSnake)
    }),
    rule(Format::OpenaiResponsesCustom, 90, |d| {
        d.has(Key::Name) && d.type_is("custom") && !d.has(Key::InputSchemaSnake)
    }),
    rule(Format::AnthropicServer, 100, |d| {
        d.has(Key::Type) && is_dated_type(d.type_word())
    }),
    rule(Format::OpenaiHosted, 100, |d| {
        d.has(Key::Type) && HOSTED_TYPES.contains(&d.type_word())
    }),
    rule(Format::Mcp, 100, |d| {
        d.has(Key::Name) && d.has(Key::InputSchemaCamel) && !d.type_is("function")
    }),
    rule(Format::GeminiJsonSchema, 100, |d| {
        d.has(Key::GeminiJsonSchema)
    }),
    rule(Format::OpenaiAgents, 100, |d| d.has(Key::ParamsJsonSchema)),
    rule(Format::CohereV1, 100, |d| d.has(Key::ParameterDefinitions)),
    rule(Format::Langchain, 90, |d| {
        d.has(Key::ArgsSchema) || (d.has(Key::Lc) && d.get("lc") == Some(&Value::from(1)))
    }),
    rule(Format::LangchainArgs, 90, |d| {
        d.has(Key::Args) && d.has(Key::Name) && d.is_object("args") && !d.type_is("provider")
    }),
    rule(Format::LlamaIndex, 100, |d| d.has(Key::FnSchema)),
    rule(Format::Openapi, 100, |d| {
        d.has(Key::OperationId)
            || (d.has(Key::Responses)
                && (d.get("requestBody").is_some() || d.is_array("parameters")))
    }),
    rule(Format::SemanticKernel, 100, |d| {
        d.has(Key::PluginName) || (d.has(Key::IsPrompt) && d.is_array("parameters"))
    }),
    rule(Format::Smolagents, 100, |d| {
        d.has(Key::Inputs) && d.has(Key::OutputType)
    }),
    rule(Format::A2aSkill, 100, |d| {
        d.has(Key::Tags) && d.has(Key::Name) && d.get("id").is_some() && d.is_array("tags")
    }),
    rule(Format::Gemini, 100, |d| {
        d.has(Key::Name) && d.has(Key::Parameters) && d.parameter_type(is_upper_case_type)
    }),
    rule(Format::Bfcl, 90, |d| {
        d.has(Key::Name) && d.has(Key::Parameters) && d.parameter_type(|word| word == "dict")
    }),
    rule(Format::OpenaiLegacy, 70, |d| {
        d.has(Key::Name)
            && d.has(Key::Parameters)
            && !d.is_array("parameters")
            && !d.has_parameter_map()
            && !d.parameter_type(|word| word == "dict" || is_upper_case_type(word))
    }),
    rule(Format::LangchainSchema, 90, |d| d.has(Key::Schema)),
    rule(Format::LangchainFlat, 60, |d| {
        d.has(Key::Name) && d.has(Key::Properties)
    }),
    rule(Format::JsonSchema, 100, |d| {
        d.has(Key::XCapabilities) && !d.has(Key::Name)
    }),
    rule(Format::JsonSchema, 60, |d| {
        d.has(Key::Title) && d.has(Key::Properties) && !d.has(Key::Name)
    }),
    rule(Format::Raw, 10, |_| true),
];

/// Types of tools that OpenAI runs itself.
const HOSTED_TYPES: &[&str] = &[
    "mcp",
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
    "file_search",
    "computer",
    "computer_use_preview",
    "code_interpreter",
    "image_generation",
    "local_shell",
    "shell",
    "apply_patch",
    "tool_search",
    "programmatic_tool_calling",
];

/// Whether a type is `mcp_toolset` or ends in a date such as `_20250305`.
fn is_dated_type(word: &str) -> bool {
    let date = word.rsplit('_').next().unwrap_or_default();
    word == "mcp_toolset"
        || (date.len() == 8
            && date.len() < word.len()
            && date.starts_with("20")
            && date.bytes().all(|b| b.is_ascii_digit()))
}

fn is_upper_case_type(word: &str) -> bool {
    [
        "STRING",
        "NUMBER",
        "INTEGER",
        "BOOLEAN",
        "ARRAY",
        "OBJECT",
        "NULL",
        "TYPE_UNSPECIFIED",
    ]
    .contains(&word)
}
