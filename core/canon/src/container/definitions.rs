use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::{Format, Tool};

use super::openapi;
use crate::format_keys::{Key, Keys};
use crate::formats::GEMINI_HOSTED_KEYS;

/// The kind of container a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// One definition.
    Single,
    /// A JSON array.
    Array,
    /// An object with a list of tools, such as a request body.
    Tools,
    /// A JSON-RPC response to `tools/list`.
    ToolsList,
    /// An object with a list of functions.
    Functions,
    /// A Gemini tool with function declarations.
    FunctionDeclarations,
    /// An OpenAI namespace of tools.
    Namespace,
    /// A map from names to definitions.
    NameMap,
    /// An OpenAPI document.
    Openapi,
    /// An A2A agent card with skills.
    AgentCard,
}

/// One definition found in a document.
#[derive(Debug)]
pub(crate) struct ContainedDefinition {
    pub(crate) pointer: Pointer,
    pub(crate) definition: Value,
    /// The name the container gives, where the definition has none of its own.
    pub(crate) name: Option<String>,
    /// The format the container implies, if the definition's own keys do not indicate one.
    pub(crate) implied: Option<Format>,
    /// The keys that indicate the definition's format, if they were collected.
    pub(crate) keys: Option<Keys>,
    /// The tool, where reading it took the whole document.
    pub(crate) tool: Option<Box<Tool>>,
}

impl ContainedDefinition {
    const fn plain(pointer: Pointer, definition: Value, implied: Option<Format>) -> Self {
        Self {
            pointer,
            definition,
            name: None,
            implied,
            keys: None,
            tool: None,
        }
    }
}

impl Container {
    /// The container in words.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Single => "a single definition",
            Self::Array => "an array",
            Self::Tools => "an object with `tools`",
            Self::ToolsList => "a tools/list response",
            Self::Functions => "an object with `functions`",
            Self::FunctionDeclarations => "Gemini function declarations",
            Self::Namespace => "a namespace",
            Self::NameMap => "a map from names to definitions",
            Self::Openapi => "an OpenAPI document",
            Self::AgentCard => "an agent card",
        }
    }
}

/// Finds the definitions in a value.
pub(crate) fn find_definitions(document: Value) -> (Container, Vec<ContainedDefinition>) {
    let mut found = Vec::with_capacity(1);
    let container = collect(document, Pointer::root(), None, &mut found);
    (container, found)
}

/// Splits one value into definitions; `implied` is the format that its container implies.
fn collect(
    value: Value,
    at: Pointer,
    implied: Option<Format>,
    found: &mut Vec<ContainedDefinition>,
) -> Container {
    let mut members = match value {
        Value::Array(items) => {
            collect_items(items, &at, implied, found);
            return Container::Array;
        }
        Value::Object(members) => members,
        definition @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            found.push(ContainedDefinition::plain(at, definition, implied));
            return Container::Single;
        }
    };
    let keys = Keys::of(&members);
    if let Some(inner) = take_report_entry(&mut members, keys) {
        return collect(inner, at.child("tool"), implied, found);
    }
    let container = container_of(&members, keys);
    if container != Container::Single && is_definition(keys) {
        // One reader takes it for a tool, another for a list of tools.
        let definition = Value::Object(members.clone());
        found.push(ContainedDefinition {
            keys: Some(keys),
            ..ContainedDefinition::plain(at.clone(), definition, implied)
        });
        collect_members(members, &at, container, implied, found);
        return container;
    }
    match container {
        Container::Single | Container::Array => {
            let plain = ContainedDefinition::plain(at, Value::Object(members), implied);
            found.push(ContainedDefinition {
                keys: Some(keys),
                ..plain
            });
            Container::Single
        }
        Container::FunctionDeclarations => {
            collect_gemini_tool(members, &at, found);
            Container::FunctionDeclarations
        }
        Container::NameMap => {
            for (name, definition) in members {
                let pointer = at.child(&name);
                found.push(ContainedDefinition {
                    name: Some(name),
                    ..ContainedDefinition::plain(pointer, definition, implied)
                });
            }
            Container::NameMap
        }
        Container::Openapi => {
            collect_operations(&members, &at, found);
            Container::Openapi
        }
        container => {
            collect_members(members, &at, container, implied, found);
            container
        }
    }
}

fn has_openapi(members: &Object) -> bool {
    Keys::of(members).has(Key::Openapi)
}

/// Collects the operations of an OpenAPI document.
fn collect_operations(document: &Object, at: &Pointer, found: &mut Vec<ContainedDefinition>) {
    found.extend(openapi::operations(document).into_iter().map(|operation| {
        let pointer = at.join(&operation.pointer);
        let plain =
            ContainedDefinition::plain(pointer, operation.definition, Some(Format::Openapi));
        ContainedDefinition {
            tool: Some(Box::new(operation.tool)),
            ..plain
        }
    }));
}

/// The definition inside an entry of a report, such as `canonicalize --format json` writes.
fn take_report_entry(members: &mut Object, keys: Keys) -> Option<Value> {
    let definition = keys.has(Key::Name) || keys.has(Key::Type);
    let tool = members
        .get_mut("tool")
        .filter(|_| keys.has(Key::Tool) && !definition)?;
    tool.is_object().then(|| tool.take())
}

/// What an object is, by its keys.
fn container_of(members: &Object, keys: Keys) -> Container {
    let is_array = |key: &str| members.get(key).is_some_and(Value::is_array);
    let is_object = |key: &str| members.get(key).is_some_and(Value::is_object);
    let lists = members
        .get("result")
        .is_some_and(|result| result.get("tools").is_some_and(Value::is_array));
    if keys.has(Key::Result) && (lists || (keys.has(Key::JsonRpc) && is_object("result"))) {
        return Container::ToolsList;
    }
    if keys.has(Key::Tools) && is_array("tools") {
        let namespace = members.get("type").and_then(Value::as_str) == Some("namespace");
        let toolset = members.get("type").and_then(Value::as_str) == Some("mcp_toolset");
        return match (namespace, toolset) {
            (true, _) => Container::Namespace,
            // The pinned listing of a toolset belongs to the toolset.
            (_, true) => Container::Single,
            _ => Container::Tools,
        };
    }
    if keys.has(Key::ToolConfig)
        && members
            .get("toolConfig")
            .is_some_and(|config| config.get("tools").is_some())
    {
        return Container::Tools;
    }
    if keys.has(Key::Messages) && is_array("messages") && !keys.has(Key::Name) {
        return Container::Tools;
    }
    if keys.has(Key::Functions) && is_array("functions") {
        return Container::Functions;
    }
    if keys.has(Key::FunctionDeclarations)
        || GEMINI_HOSTED_KEYS
            .iter()
            .any(|key| members.len() == 1 && is_object(key))
    {
        return Container::FunctionDeclarations;
    }
    if keys.has(Key::Openapi) && is_object("paths") {
        return Container::Openapi;
    }
    if keys.has(Key::Skills) && is_array("skills") {
        return Container::AgentCard;
    }
    if is_name_map(members, keys) {
        return Container::NameMap;
    }
    Container::Single
}

/// Whether an object is a definition by itself, whatever lists it has beside its name and schema.
fn is_definition(keys: Keys) -> bool {
    let schemas = [
        Key::InputSchemaCamel,
        Key::InputSchemaSnake,
        Key::Parameters,
        Key::ArgsSchema,
    ];
    keys.has(Key::Name) && schemas.into_iter().any(|key| keys.has(key))
}

/// Whether every member looks like a definition without its name.
fn is_name_map(members: &Object, keys: Keys) -> bool {
    const SCHEMA_KEYS: &[&str] = &[
        "inputSchema",
        "input_schema",
        "parameters",
        "args_schema",
        "function",
        "toolSpec",
        "parameter_definitions",
    ];
    // A part of a definition may hold a schema too, so keys that indicate a format rule out a map.
    let telling = keys.has(Key::Function) || keys.has(Key::ToolSpec) || keys.has(Key::Type);
    !members.is_empty()
        && !telling
        && members.values().all(|value| {
            SCHEMA_KEYS
                .iter()
                .any(|key| value.get(key).is_some_and(Value::is_object))
        })
}

fn collect_items(
    items: Vec<Value>,
    at: &Pointer,
    implied: Option<Format>,
    found: &mut Vec<ContainedDefinition>,
) {
    for (index, item) in items.into_iter().enumerate() {
        collect(item, at.index(index), implied, found);
    }
}

/// Collects every list an object holds: those of a response, its own, and those inside its messages.
/// A reader may take any of them, so none is left out because there is another.
fn collect_members(
    mut members: Object,
    at: &Pointer,
    container: Container,
    implied: Option<Format>,
    found: &mut Vec<ContainedDefinition>,
) {
    if let (Some(Value::Object(_)), true) = (members.get("paths"), has_openapi(&members)) {
        collect_operations(&members, at, found);
    }
    let mut take = |key: &str| members.get_mut(key).map(Value::take);
    if let Some(Value::Object(result)) = take("result") {
        let place = at.child("result");
        collect_members(result, &place, Container::Tools, Some(Format::Mcp), found);
    }
    // A response has the definitions in its result, and another `tools` beside it is not expected there.
    let implied = match container {
        Container::ToolsList => Some(Format::Mcp),
        _ => implied,
    };
    for (key, implied) in [
        ("tools", implied),
        ("functions", Some(Format::OpenaiLegacy)),
        ("skills", Some(Format::A2aSkill)),
        ("functionDeclarations", Some(Format::Gemini)),
        ("function_declarations", Some(Format::Gemini)),
    ] {
        if let Some(Value::Array(items)) = take(key) {
            collect_items(items, &at.child(key), implied, found);
        }
    }
    if let Some(mut config) = take("toolConfig")
        && let Some(Value::Array(items)) = config.get_mut("tools").map(Value::take)
    {
        collect_items(
            items,
            &at.child("toolConfig").child("tools"),
            implied,
            found,
        );
    }
    // Kimi takes tools inside a system message, too.
    if let Some(Value::Array(messages)) = take("messages") {
        for (index, mut message) in messages.into_iter().enumerate() {
            if let Some(Value::Array(items)) = message.get_mut("tools").map(Value::take) {
                collect_items(
                    items,
                    &at.child("messages").index(index).child("tools"),
                    implied,
                    found,
                );
            }
        }
    }
}

/// Splits a Gemini tool into its declarations and the tools that Gemini runs itself.
fn collect_gemini_tool(members: Object, at: &Pointer, found: &mut Vec<ContainedDefinition>) {
    for (key, value) in members {
        match (key.as_str(), value) {
            ("functionDeclarations" | "function_declarations", Value::Array(items)) => {
                for (index, item) in items.into_iter().enumerate() {
                    let pointer = at.child(&key).index(index);
                    found.push(ContainedDefinition::plain(
                        pointer,
                        item,
                        Some(Format::Gemini),
                    ));
                }
            }
            (_, value) => {
                let pointer = at.child(&key);
                let mut definition = Object::new();
                definition.insert(key.clone(), value);
                let definition = Value::Object(definition);
                let plain =
                    ContainedDefinition::plain(pointer, definition, Some(Format::GeminiHosted));
                found.push(ContainedDefinition {
                    name: Some(key),
                    ..plain
                });
            }
        }
    }
}
