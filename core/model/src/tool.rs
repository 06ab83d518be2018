use std::borrow::Cow;

use crate::definition::Definition;
use crate::format::Format;
use crate::hints::{Evidence, Hints, HintsEvidence};
use crate::json::{Object, Value};
use crate::security::Security;
use crate::small_map::SmallMap;

/// A tool in canonical form; in files it is called `CanonicalTool`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name calls use; empty when the definition has none.
    pub name: String,
    /// The version, `1.0.0` when the definition has none.
    pub version: Cow<'static, str>,
    /// What the tool is for, in the words a model reads.
    pub description: String,
    /// The name people read.
    pub title: Option<String>,
    /// What the tool does, as far as known.
    pub hints: Hints,
    /// Where the hints come from.
    pub evidence: HintsEvidence,
    /// The JSON Schema of the arguments.
    pub inputs: Object,
    /// The JSON Schema of the result; empty when nobody says.
    pub outputs: Object,
    /// What using the tool demands.
    pub security: Option<Security>,
    /// MCP annotations, as published.
    pub annotations: Option<Object>,
    /// Whether the provider shall hold the model to the schema.
    pub strict: Option<bool>,
    /// Example arguments.
    pub examples: Vec<Value>,
    /// Which of name, description and inputs the definition leaves out.
    pub absent: Absent,
    /// Keys of a format that have no canonical home, in the places they had.
    pub extensions: Extensions,
    /// The key order of the definition where it is not the usual one.
    pub layout: Layout,
    /// The wire shape of the definition.
    pub format: Format,
    /// The definition as received.
    pub definition: Option<Definition>,
}

/// The parts every tool has in canonical form although the definition left them out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Absent {
    /// The definition has no name.
    pub name: bool,
    /// The definition has no description.
    pub description: bool,
    /// The definition has no input schema.
    pub inputs: bool,
}

/// Keys without a canonical home, by format.
pub type Extensions = SmallMap<Format, Object>;

/// The keys of a definition's objects in written order, by JSON pointer.
pub type Layout = SmallMap<String, Vec<String>>;

impl Tool {
    /// The version of a tool whose definition states none.
    pub const DEFAULT_VERSION: &'static str = "1.0.0";

    /// A tool of the given format of which nothing is known yet.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self {
            name: String::new(),
            version: Cow::Borrowed(Self::DEFAULT_VERSION),
            description: String::new(),
            title: None,
            hints: Hints::default(),
            evidence: HintsEvidence::all(Evidence::Default),
            inputs: Object::new(),
            outputs: Object::new(),
            security: None,
            annotations: None,
            strict: None,
            examples: Vec::new(),
            absent: Absent::default(),
            extensions: Extensions::new(),
            layout: Layout::new(),
            format,
            definition: None,
        }
    }

    /// The JSON Schema dialect the input schema claims by `$schema`.
    #[must_use]
    pub fn dialect(&self) -> Option<&str> {
        self.inputs.get("$schema").and_then(Value::as_str)
    }
}
