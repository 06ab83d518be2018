use serde_json::Value;
use toolwarden_model::reply::WireApi;
use toolwarden_model::{Format, Tool};

use crate::emit::{EmitTarget, Emitter, RenamedTool};

/// The tools of a request in the format of its wire.
#[derive(Debug, Default)]
pub(super) struct EmittedTools {
    pub(super) definitions: Vec<Value>,
    pub(super) renamed: Vec<RenamedTool>,
}

impl EmittedTools {
    pub(super) fn emit(wire: WireApi, tools: &[Tool], notes: &mut Vec<String>) -> Self {
        let native_gemini = tools.iter().all(|tool| tool.format == Format::Gemini);
        let target = match wire {
            WireApi::OpenaiChat => EmitTarget::OpenaiChat,
            WireApi::OpenaiResponses => EmitTarget::OpenaiResponses,
            WireApi::Anthropic => EmitTarget::Anthropic,
            WireApi::Gemini if native_gemini => EmitTarget::Gemini,
            // The other spelling takes a schema as it is.
            WireApi::Gemini => EmitTarget::GeminiJsonSchema,
        };
        let mut emitter = Emitter::new(target);
        let mut emitted = Self::default();
        for tool in tools {
            match emitter.emit(tool.clone()) {
                Ok(emission) => {
                    let losses = emission.losses().map(|edit| {
                        let name = &emission.name.original;
                        format!("tool `{name}` loses {}: {}", edit.path, edit.reason)
                    });
                    notes.extend(losses);
                    if emission.name.emitted != emission.name.original {
                        notes.push(format!(
                            "tool `{}` goes by `{}`",
                            emission.name.original, emission.name.emitted
                        ));
                        emitted.renamed.push(emission.name);
                    }
                    emitted.definitions.push(emission.value);
                }
                Err(error) => notes.push(format!("a tool was left out: {error}")),
            }
        }
        emitted
    }

    /// The name of a tool on this wire API.
    pub(super) fn name<'n>(&'n self, original: &'n str) -> &'n str {
        let renamed = self.renamed.iter().find(|it| it.original == original);
        renamed.map_or(original, |it| &it.emitted)
    }

    pub(super) fn list(&self) -> Option<Value> {
        (!self.definitions.is_empty()).then(|| Value::Array(self.definitions.clone()))
    }
}

/// Whether the model must call a tool, and which one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ToolChoice {
    Auto,
    NoTool,
    AnyTool,
    Tool(String),
}

impl ToolChoice {
    /// Reads the `tool_choice` of chat completions; a note reports a value that has no equivalent.
    pub(super) fn read(choice: Option<&Value>, notes: &mut Vec<String>) -> Option<Self> {
        let choice = choice.filter(|it| !it.is_null())?;
        let named = choice.pointer("/function/name").and_then(Value::as_str);
        let found = match (choice.as_str(), named) {
            (Some("auto"), _) => Some(Self::Auto),
            (Some("none"), _) => Some(Self::NoTool),
            (Some("required"), _) => Some(Self::AnyTool),
            (_, Some(name)) => Some(Self::Tool(name.to_owned())),
            _ => None,
        };
        if found.is_none() {
            notes.push(format!("tool_choice {choice} has no other form; left out"));
        }
        found
    }
}
