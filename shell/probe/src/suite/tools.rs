//! Reads the tools of a suite, in any format.

use std::path::Path;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;
use toolwarden_canon::{CanonicalizedTool, Source, Warning, canonicalize, definition_pointer};
use toolwarden_files::as_document;
use toolwarden_model::document::{Mistake, Placed, Reader};
use toolwarden_model::json::Pointer;
use toolwarden_model::{Tool, closest};

use crate::file::{self, Problem};

/// The most memory one pattern of a schema may take.
const PATTERN_BYTES: usize = 16 << 20;

/// The tools of a suite, with what their arguments have to satisfy.
#[derive(Default)]
pub(super) struct Tools {
    tools: Vec<Tool>,
    validators: Vec<Option<Validator>>,
    /// Whether they could be read, so that a name that is not among them is a mistake.
    known: bool,
}

impl Tools {
    /// Reads a list of definitions, or the name of a file of them.
    pub(super) fn read(reader: &mut Reader<Problem>, at: &Placed<'_>, folder: &Path) -> Self {
        let mut tools = Self::default();
        let (value, file) = match at.value {
            Value::String(name) => match other_file(&folder.join(name.trim())) {
                Ok(value) => (value, Some(name.as_str())),
                Err(message) => {
                    reader.error(&at.pointer, Problem::OtherFile { message });
                    return tools;
                }
            },
            Value::Array(_) | Value::Object(_) => (at.value.clone(), None),
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                let expected = "a list of tools, or the name of a file of them";
                let found = toolwarden_model::json::type_name(at.value).to_owned();
                reader.error(&at.pointer, Mistake::Type { expected, found });
                return tools;
            }
        };
        let read = match canonicalize(value, Source::Detect) {
            Ok(read) => read.tools,
            Err(error) => {
                let message = error.to_string();
                reader.error(&at.pointer, Problem::Definition { message });
                return tools;
            }
        };
        tools.known = true;
        if read.is_empty() {
            let expected = "at least one tool";
            let found = "none".to_owned();
            reader.error(&at.pointer, Mistake::Type { expected, found });
        }
        for found in read {
            // A place in another file has none here.
            let base = match file {
                Some(_) => at.pointer.clone(),
                None => at.pointer.join(&found.pointer),
            };
            tools.add(reader, found, &base, file);
        }
        tools
    }

    /// The tool of a name; one that is not there is a mistake.
    pub(super) fn check(
        &self,
        reader: &mut Reader<Problem>,
        name: &str,
        pointer: &Pointer,
    ) -> Option<usize> {
        let found = self.tools.iter().position(|it| it.name == name);
        if found.is_none() && self.known {
            let names = self.tools.iter().map(|it| it.name.as_str());
            let mistake = Mistake::Nothing {
                what: "tool",
                name: name.to_owned(),
                suggestion: closest(name, names),
            };
            reader.error(pointer, mistake);
        }
        found
    }

    /// Checks arguments against the schema of a tool.
    pub(super) fn check_arguments(
        &self,
        reader: &mut Reader<Problem>,
        tool: usize,
        at: &Placed<'_>,
    ) {
        let (Some(tool), Some(Some(validator))) = (self.tools.get(tool), self.validators.get(tool))
        else {
            return;
        };
        for error in validator.iter_errors(at.value) {
            let within = Pointer::from(error.instance_path().as_str());
            let problem = Problem::Arguments {
                tool: tool.name.clone(),
                message: error.to_string(),
            };
            reader.error(&at.pointer.join(&within), problem);
        }
    }

    pub(super) fn into_tools(self) -> Vec<Tool> {
        self.tools
    }

    fn add(
        &mut self,
        reader: &mut Reader<Problem>,
        found: CanonicalizedTool,
        base: &Pointer,
        file: Option<&str>,
    ) {
        let place = |canonical: &Pointer| match file {
            Some(_) => base.clone(),
            None => base.join(&definition_pointer(&found.tool, canonical)),
        };
        if let Some(reason) = unfit(&found) {
            let message = match file {
                Some(file) => format!("{file}{}: {reason}", found.pointer),
                None => reason,
            };
            reader.error(base, Problem::Definition { message });
            return;
        }
        let name = &found.tool.name;
        if self.tools.iter().any(|it| it.name == *name) {
            let twice = Problem::Twice {
                what: "tools",
                name: name.clone(),
            };
            reader.error(&place(&Pointer::of(["name"])), twice);
            return;
        }
        let validator = match validator(&Value::Object(found.tool.inputs.clone())) {
            Ok(validator) => Some(validator),
            Err((within, message)) => {
                let problem = Problem::Schema {
                    tool: name.clone(),
                    message,
                };
                let canonical = Pointer::of(["inputs"]).join(&within);
                reader.error(&place(&canonical), problem);
                None
            }
        };
        self.tools.push(found.tool);
        self.validators.push(validator);
    }
}

/// Why a definition cannot be offered to a model.
fn unfit(found: &CanonicalizedTool) -> Option<String> {
    if found.tool.format.is_hosted() {
        return Some("a tool the provider runs itself cannot be put to others".to_owned());
    }
    let wrong = found.warnings.iter().find_map(|warning| match warning {
        Warning::NotAnObject { .. }
        | Warning::ParserError { .. }
        | Warning::InvalidCanonical { .. } => Some(warning.to_string()),
        Warning::NoName => Some("the tool has no name".to_owned()),
        Warning::Undetected
        | Warning::Heuristic
        | Warning::Ambiguous { .. }
        | Warning::DuplicateKey(_)
        | Warning::NoCapabilities
        | Warning::ExtraField { .. }
        | Warning::NoDescription => None,
    });
    wrong.or_else(|| {
        let blank = found.tool.name.trim().is_empty();
        blank.then(|| "the tool has no name".to_owned())
    })
}

/// What a file of definitions says.
fn other_file(path: &Path) -> Result<Value, String> {
    let text = file::read(path).map_err(|error| error.whole())?;
    let document = as_document(&text, path).map_err(|error| error.whole())?;
    Ok(document.value)
}

/// A schema ready for use. Nothing is fetched, and patterns match in linear time.
fn validator(schema: &Value) -> Result<Validator, (Pointer, String)> {
    let told = |error: jsonschema::ValidationError<'_>| {
        let pointer = Pointer::from(error.instance_path().as_str());
        (pointer, error.to_string())
    };
    let draft = match Draft::default().detect(schema) {
        Draft::Unknown => Draft::default(),
        known => known,
    };
    jsonschema::meta::options().validate(schema).map_err(told)?;
    let built = jsonschema::options()
        .with_draft(draft)
        .offline()
        .should_validate_formats(false)
        .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES))
        .build(schema);
    built.map_err(told)
}
