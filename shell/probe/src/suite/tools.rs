//! Reads the tools of a suite, in any format.

use std::path::Path;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;
use toolwarden_canon::{
    CanonicalizedTool, FormatChoice, Warning, canonicalize, definition_pointer,
};
use toolwarden_files::parse_document;
use toolwarden_model::document::{DiagnosticKind, DocumentReader, LocatedValue};
use toolwarden_model::json::Pointer;
use toolwarden_model::{Tool, did_you_mean};

use crate::backtracking_patterns::without_backtracking_patterns;
use crate::probe_file::{self, ProbeFileProblem};

/// The memory limit of one pattern of a schema.
const PATTERN_BYTES: usize = 16 << 20;

/// The tools of a suite, with the validators of their arguments.
#[derive(Default)]
pub(super) struct SuiteTools {
    tools: Vec<Tool>,
    validators: Vec<Option<Validator>>,
    /// Whether the tools could be read, so that an unknown name is a mistake.
    is_readable: bool,
}

impl SuiteTools {
    /// Reads a list of definitions, or the name of a file that contains them.
    pub(super) fn read(
        reader: &mut DocumentReader<ProbeFileProblem>,
        at: &LocatedValue<'_>,
        folder: &Path,
    ) -> Self {
        let mut tools = Self::default();
        let (value, file) = match at.value {
            Value::String(name) => match read_definitions_file(&folder.join(name.trim())) {
                Ok(value) => (value, Some(name.as_str())),
                Err(message) => {
                    reader.report(&at.pointer, ProbeFileProblem::OtherFile { message });
                    return tools;
                }
            },
            Value::Array(_) | Value::Object(_) => (at.value.clone(), None),
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                let expected = "a list of tools, or the name of a file of them";
                let found = toolwarden_model::json::type_name(at.value).to_owned();
                reader.report(&at.pointer, DiagnosticKind::WrongType { expected, found });
                return tools;
            }
        };
        let read = match canonicalize(value, FormatChoice::Detect) {
            Ok(read) => read.tools,
            Err(error) => {
                let message = error.to_string();
                reader.report(&at.pointer, ProbeFileProblem::Definition { message });
                return tools;
            }
        };
        tools.is_readable = true;
        if read.is_empty() {
            let expected = "at least one tool";
            let found = "none".to_owned();
            reader.report(&at.pointer, DiagnosticKind::WrongType { expected, found });
        }
        for found in read {
            // A location in another file has no pointer in this one.
            let base = match file {
                Some(_) => at.pointer.clone(),
                None => at.pointer.join(&found.pointer),
            };
            tools.add(reader, found, &base, file);
        }
        tools
    }

    /// Checks that a tool with this name exists.
    pub(super) fn check(
        &self,
        reader: &mut DocumentReader<ProbeFileProblem>,
        name: &str,
        pointer: &Pointer,
    ) -> Option<usize> {
        let found = self.tools.iter().position(|it| it.name == name);
        if found.is_none() && self.is_readable {
            let names = self.tools.iter().map(|it| it.name.as_str());
            let mistake = DiagnosticKind::UnknownReference {
                what: "tool",
                name: name.to_owned(),
                suggestion: did_you_mean(name, names),
            };
            reader.report(pointer, mistake);
        }
        found
    }

    /// Checks arguments against the schema of a tool.
    pub(super) fn check_arguments(
        &self,
        reader: &mut DocumentReader<ProbeFileProblem>,
        tool: usize,
        at: &LocatedValue<'_>,
    ) {
        let (Some(tool), Some(Some(validator))) = (self.tools.get(tool), self.validators.get(tool))
        else {
            return;
        };
        for error in validator.iter_errors(at.value) {
            let within = Pointer::from(error.instance_path().as_str());
            let problem = ProbeFileProblem::Arguments {
                tool: tool.name.clone(),
                message: error.to_string(),
            };
            reader.report(&at.pointer.join(&within), problem);
        }
    }

    pub(super) fn into_tools(self) -> Vec<Tool> {
        self.tools
    }

    fn add(
        &mut self,
        reader: &mut DocumentReader<ProbeFileProblem>,
        found: CanonicalizedTool,
        base: &Pointer,
        file: Option<&str>,
    ) {
        let place = |canonical: &Pointer| match file {
            Some(_) => base.clone(),
            None => base.join(&definition_pointer(&found.tool, canonical)),
        };
        if let Some(reason) = rejection_reason(&found) {
            let message = match file {
                Some(file) => format!("{file}{}: {reason}", found.pointer),
                None => reason,
            };
            reader.report(base, ProbeFileProblem::Definition { message });
            return;
        }
        let name = &found.tool.name;
        if self.tools.iter().any(|it| it.name == *name) {
            let twice = ProbeFileProblem::Twice {
                what: "tools",
                name: name.clone(),
            };
            reader.report(&place(&Pointer::of(["name"])), twice);
            return;
        }
        let validator = match validator(&Value::Object(found.tool.inputs.clone())) {
            Ok(validator) => Some(validator),
            Err((within, message)) => {
                let problem = ProbeFileProblem::Schema {
                    tool: name.clone(),
                    message,
                };
                let canonical = Pointer::of(["inputs"]).join(&within);
                reader.report(&place(&canonical), problem);
                None
            }
        };
        self.tools.push(found.tool);
        self.validators.push(validator);
    }
}

/// Why a definition cannot be offered to a model.
fn rejection_reason(found: &CanonicalizedTool) -> Option<String> {
    if found.tool.format.is_hosted() {
        return Some("a tool that the provider runs cannot be offered to others".to_owned());
    }
    let wrong = found.warnings.iter().find_map(|warning| match warning {
        Warning::NotAnObject { .. }
        | Warning::ParserError { .. }
        | Warning::InvalidCanonical { .. }
        | Warning::UnreadSchema(_) => Some(warning.to_string()),
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

/// Reads a file of definitions.
fn read_definitions_file(path: &Path) -> Result<Value, String> {
    let text = probe_file::read(path).map_err(|error| error.full_message())?;
    let document = parse_document(&text, path).map_err(|error| error.full_message())?;
    Ok(document.value)
}

/// Compiles a schema. Nothing is fetched, and patterns match in linear time; patterns that cannot are not
/// checked.
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
    let (schema, _unchecked) = &without_backtracking_patterns(schema);
    let built = jsonschema::options()
        .with_draft(draft)
        .offline()
        .should_validate_formats(false)
        .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES))
        .build(schema);
    built.map_err(told)
}
