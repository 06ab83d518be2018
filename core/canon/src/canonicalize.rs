use std::fmt;

use serde_json::Value;
use thiserror::Error;
use toolwarden_model::json::{
    DuplicateKey, JsonError, MAX_DEPTH, Object, Pointer, depth_within, drop_iteratively, type_name,
};
use toolwarden_model::{
    AbsentParts, Definition, Format, FormatFamily, InvalidTool, SharedText, Tool, did_you_mean,
};

use crate::container::{
    ContainedDefinition, Container, TextItem, find_definitions, standalone_operation,
};
use crate::detect::{Detection, detect, detect_object};
use crate::format_keys::{Key, Keys};
use crate::formats::{self, ParseError};
use crate::hints;
use crate::unread::{SchemaProblem, UnreadSchema, unread_schemas};

/// The tools of a document in canonical form.
#[derive(Clone, Debug)]
pub struct CanonicalizedDocument {
    /// The kind of the document.
    pub container: Container,
    /// Its tools, in document order.
    pub tools: Vec<CanonicalizedTool>,
    /// Keys that the text writes twice; the first tool has a warning for each.
    pub duplicates: Vec<DuplicateKey>,
}

impl CanonicalizedTool {
    /// A key that the text of the definition writes twice.
    #[must_use]
    pub fn doubled_key(&self) -> Option<&Pointer> {
        self.warnings.iter().find_map(|warning| match warning {
            Warning::DuplicateKey(duplicate) => Some(&duplicate.pointer),
            _ => None,
        })
    }
}

/// One definition in canonical form.
#[derive(Clone, Debug)]
pub struct CanonicalizedTool {
    /// The place of the definition in its document.
    pub pointer: Pointer,
    /// The tool.
    pub tool: Tool,
    /// The format its structure suggests.
    pub detection: Detection,
    /// The warnings about the definition.
    pub warnings: Vec<Warning>,
    /// The whole definition as a value, where [`canonicalize_with_values`] was asked for it.
    pub value: Option<Value>,
}

/// How the format of a definition is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormatChoice {
    /// By structure.
    #[default]
    Detect,
    /// It is given; detection is skipped.
    Format(Format),
    /// One of a provider's formats, detected by structure.
    Family(FormatFamily),
}

/// A problem of a definition that does not stop processing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// No rule of detection holds.
    Undetected,
    /// The fields were picked by heuristic.
    Heuristic,
    /// The definition is not of the format it was taken for.
    ParserError {
        /// The format.
        format: Format,
        /// What does not fit.
        error: ParseError,
    },
    /// A document in our own canonical form is invalid.
    InvalidCanonical {
        /// What is invalid.
        error: InvalidTool,
    },
    /// A canonical tool leaves its capabilities out.
    NoCapabilities,
    /// The canonical form has no such field.
    ExtraField {
        /// The field.
        name: String,
        /// The nearest field, as a phrase.
        suggestion: String,
    },
    /// The definition is not an object.
    NotAnObject {
        /// What it is.
        found: &'static str,
    },
    /// The structure fits several providers.
    Ambiguous {
        /// The format taken.
        taken: Format,
        /// The others.
        others: Vec<Format>,
    },
    /// A key is written twice; the last value counts.
    DuplicateKey(DuplicateKey),
    /// A value that looks like the schema of the arguments is under a key that is not read.
    UnreadSchema(UnreadSchema),
    /// The definition has no name.
    NoName,
    /// The definition has no description.
    NoDescription,
}

/// A value is nested too deeply to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("nesting deeper than {MAX_DEPTH} levels")]
pub struct TooDeep;

/// Converts every definition of a document to canonical form.
///
/// A definition that fits no format becomes a raw tool with warnings; none is an error.
///
/// # Errors
/// Refuses a value nested deeper than text may be.
pub fn canonicalize(
    document: Value,
    source: FormatChoice,
) -> Result<CanonicalizedDocument, TooDeep> {
    if !depth_within(&document) {
        drop_iteratively(document);
        return Err(TooDeep);
    }
    let (container, found) = find_definitions(document);
    let tools = found
        .into_iter()
        .map(|found| {
            let definition = Definition::from(&found.definition);
            canonicalize_definition(found, source, definition, false)
        })
        .collect();
    Ok(CanonicalizedDocument {
        container,
        tools,
        duplicates: Vec::new(),
    })
}

/// Converts one item of a split text to canonical form and keeps its text byte for byte.
///
/// # Errors
/// Says where in the item and why it is not JSON.
pub fn canonicalize_item(
    item: &TextItem<'_>,
    source: FormatChoice,
) -> Result<CanonicalizedDocument, JsonError> {
    canonicalize_text(item, item.text.into(), source, false)
}

/// As [`canonicalize_item`], with definitions that share the text the item was split from.
///
/// # Errors
/// Says where in the item and why it is not JSON.
pub fn canonicalize_shared(
    item: &TextItem<'_>,
    whole: &SharedText,
    source: FormatChoice,
) -> Result<CanonicalizedDocument, JsonError> {
    canonicalize_text(item, whole.part(item.text), source, false)
}

/// As [`canonicalize_shared`], and keeps each definition as a value too, for callers that would parse its
/// text again.
///
/// # Errors
/// Says where in the item and why it is not JSON.
pub fn canonicalize_with_values(
    item: &TextItem<'_>,
    whole: &SharedText,
    source: FormatChoice,
) -> Result<CanonicalizedDocument, JsonError> {
    canonicalize_text(item, whole.part(item.text), source, true)
}

fn canonicalize_text(
    item: &TextItem<'_>,
    text: SharedText,
    source: FormatChoice,
    keep_values: bool,
) -> Result<CanonicalizedDocument, JsonError> {
    let (definition, parsed) = Definition::parse_shared(text)?;
    let (container, found) = find_definitions(parsed.value);
    let mut tools: Vec<CanonicalizedTool> = Vec::with_capacity(found.len());
    for mut found in found {
        let definition = match container {
            Container::Single => definition.clone(),
            _ => Definition::from(&found.definition),
        };
        found.pointer = item.pointer.join(&found.pointer);
        tools.push(canonicalize_definition(
            found,
            source,
            definition,
            keep_values,
        ));
    }
    if let Some(first) = tools.first_mut() {
        let duplicates = parsed.duplicates.iter().cloned();
        first.warnings.extend(duplicates.map(Warning::DuplicateKey));
    }
    Ok(CanonicalizedDocument {
        container,
        tools,
        duplicates: parsed.duplicates,
    })
}

fn canonicalize_definition(
    found: ContainedDefinition,
    source: FormatChoice,
    definition: Definition,
    keep_value: bool,
) -> CanonicalizedTool {
    let ContainedDefinition {
        pointer,
        definition: value,
        name,
        implied,
        keys,
        tool,
    } = found;
    let mut warnings = Vec::new();
    let detection = detect_in_container(&value, keys, name.is_some(), implied);
    let kept = keep_value.then(|| value.clone());
    let mut tool = match tool {
        Some(tool) => *tool,
        None => read(
            value,
            &definition,
            format_of(&detection, source),
            &mut warnings,
        ),
    };
    if warnings.contains(&Warning::Heuristic) && source == FormatChoice::Detect {
        warnings.insert(0, Warning::Undetected);
    }
    if let Some(name) = name.filter(|_| tool.absent.name) {
        tool.name = name;
    }
    if source == FormatChoice::Detect && !detection.ambiguous_with.is_empty() {
        let others = detection.ambiguous_with.clone();
        warnings.push(Warning::Ambiguous {
            taken: detection.format,
            others,
        });
    }
    let is_definition = !warnings
        .iter()
        .any(|warning| matches!(warning, Warning::NotAnObject { .. }));
    if !tool.format.is_hosted() && is_definition {
        if tool.name.is_empty() {
            warnings.push(Warning::NoName);
        }
        if tool.description.is_empty() {
            warnings.push(Warning::NoDescription);
        }
    }
    // What is not a schema at all is a parser error already.
    let unread = |it: &UnreadSchema| {
        matches!(
            it.problem,
            SchemaProblem::Misplaced { .. }
                | SchemaProblem::Part(_)
                | SchemaProblem::UnknownType { .. }
        )
    };
    let unread = unread_schemas(&tool).into_iter().filter(unread);
    warnings.extend(unread.map(Warning::UnreadSchema));
    hints::infer(&mut tool);
    tool.definition.get_or_insert(definition);
    CanonicalizedTool {
        pointer,
        tool,
        detection,
        warnings,
        value: kept,
    }
}

/// Detects with what the container knows: a name outside the definition, a format it implies.
fn detect_in_container(
    value: &Value,
    keys: Option<Keys>,
    named: bool,
    implied: Option<Format>,
) -> Detection {
    let Value::Object(members) = value else {
        return detect(value);
    };
    let keys = keys.unwrap_or_else(|| Keys::of(members));
    let keys = if named { keys.with(Key::Name) } else { keys };
    let mut detection = detect_object(members, keys);
    let Some(implied) = implied else {
        return detection;
    };
    let same_family = detection.format.family() == implied.family();
    // A declaration without capital types is still Gemini's if it is in a list of declarations.
    if detection.format == Format::Raw
        || implied.is_hosted()
        || (implied == Format::Gemini && !same_family)
    {
        detection.format = implied;
    }
    if !same_family || detection.format == implied {
        detection.ambiguous_with.clear();
    }
    detection
}

fn format_of(detection: &Detection, source: FormatChoice) -> Format {
    match source {
        FormatChoice::Detect => detection.format,
        FormatChoice::Format(format) => format,
        FormatChoice::Family(family) => {
            let mut candidates = detection.scores.iter().map(|(format, _)| *format);
            candidates
                .find(|format| format.family() == family)
                .unwrap_or_else(|| family.default_format())
        }
    }
}

/// Reads a definition; what does not fit its format is read by heuristic from the kept text.
fn read(
    value: Value,
    definition: &Definition,
    format: Format,
    warnings: &mut Vec<Warning>,
) -> Tool {
    let Value::Object(members) = value else {
        warnings.push(Warning::NotAnObject {
            found: type_name(&value),
        });
        return Tool {
            absent: AbsentParts {
                name: true,
                description: true,
                inputs: true,
            },
            ..Tool::new(Format::Raw)
        };
    };
    let read = match format {
        Format::Canonical => read_canonical(members, warnings),
        Format::Openapi => Ok(standalone_operation(&members)),
        format => {
            formats::read(format, members).map_err(|error| Warning::ParserError { format, error })
        }
    };
    match read {
        Ok(mut tool) => {
            if format == Format::Raw {
                warnings.push(Warning::Heuristic);
            }
            if format.is_hosted() && tool.absent.name {
                tool.name = hosted_name(&tool);
            }
            tool
        }
        Err(warning) => {
            warnings.push(warning);
            let members = definition.value().as_object().cloned().unwrap_or_default();
            formats::read(Format::Raw, members).unwrap_or_else(|_| Tool::new(Format::Raw))
        }
    }
}

/// Reads a canonical tool. Other programs write that form too: omitted or added fields are warnings,
/// and added fields are kept.
fn read_canonical(mut members: Object, warnings: &mut Vec<Warning>) -> Result<Tool, Warning> {
    let mut extra = Object::new();
    let names: Vec<String> = members.keys().cloned().collect();
    for name in names {
        if Tool::DOCUMENT_FIELDS.contains(&name.as_str()) {
            continue;
        }
        if let Some(value) = members.shift_remove(&name) {
            let suggestion = did_you_mean(&name, Tool::DOCUMENT_FIELDS.iter().copied());
            extra.insert(name.clone(), value);
            warnings.push(Warning::ExtraField { name, suggestion });
        }
    }
    if !members.contains_key("capabilities") {
        warnings.push(Warning::NoCapabilities);
    }
    let inputs = members.contains_key("inputs");
    let mut tool = Tool::from_document(Value::Object(members))
        .map_err(|error| Warning::InvalidCanonical { error })?;
    tool.absent.inputs |= !inputs;
    if !extra.is_empty() {
        let mut kept = tool
            .extensions
            .remove(&Format::Canonical)
            .unwrap_or_default();
        kept.extend(extra);
        tool.extensions.insert(Format::Canonical, kept);
    }
    Ok(tool)
}

/// The name of a provider's own tool without a name: its type, or the key that holds it.
fn hosted_name(tool: &Tool) -> String {
    let keys = tool.extensions.get(&tool.format);
    let type_word = keys.and_then(|keys| keys.get("type")?.as_str().map(str::to_owned));
    let system_name = || {
        keys?
            .get("systemTool")?
            .get("name")?
            .as_str()
            .map(str::to_owned)
    };
    let first_key = || keys?.keys().next().cloned();
    type_word
        .or_else(system_name)
        .or_else(first_key)
        .unwrap_or_default()
}

impl Warning {
    /// Whether the warning is an error: the definition claims the canonical form and violates it.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        matches!(self, Self::InvalidCanonical { .. })
    }

    /// The stable code of the kind of warning.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Undetected => "undetected",
            Self::Heuristic => "heuristic",
            Self::ParserError { .. } => "parser-error",
            Self::InvalidCanonical { .. } => "invalid-canonical",
            Self::NoCapabilities => "no-capabilities",
            Self::ExtraField { .. } => "extra-field",
            Self::NotAnObject { .. } => "not-an-object",
            Self::Ambiguous { .. } => "ambiguous",
            Self::DuplicateKey(_) => "duplicate-key",
            Self::UnreadSchema(_) => "unread-schema",
            Self::NoName => "no-name",
            Self::NoDescription => "no-description",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undetected => {
                f.write_str("Could not detect source format; using raw passthrough.")
            }
            Self::Heuristic => {
                f.write_str("No parser for 'raw' format; extracted fields by heuristic.")
            }
            Self::ParserError { format, error } => {
                write!(f, "Parser error for {}: {error}", format.family())
            }
            Self::InvalidCanonical { error } => write!(f, "Invalid canonical tool: {error}"),
            Self::NoCapabilities => f.write_str(
                "Canonical tool has no `capabilities`; they are inferred from its words.",
            ),
            Self::ExtraField { name, suggestion } => write!(
                f,
                "Canonical tools have no field `{name}`{suggestion}; it is kept as an extension."
            ),
            Self::NotAnObject { found } => write!(f, "Definition is {found}, expected an object."),
            Self::Ambiguous { taken, others } => {
                let others: Vec<&str> = others.iter().map(|format| format.id()).collect();
                write!(
                    f,
                    "Format is ambiguous: taken as {taken}, could be {}.",
                    others.join(", ")
                )
            }
            Self::DuplicateKey(duplicate) => {
                write!(
                    f,
                    "Key `{}` is written twice; the last value counts.",
                    duplicate.pointer
                )
            }
            Self::UnreadSchema(UnreadSchema { pointer, problem }) => {
                write!(f, "`{pointer}`: {}; {}.", problem.describe(), problem.fix())
            }
            Self::NoName => f.write_str("Tool has no name — consider adding one."),
            Self::NoDescription => f.write_str("Tool has no description — consider adding one."),
        }
    }
}
