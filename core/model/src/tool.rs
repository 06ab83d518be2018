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
    /// The tool's purpose, in the words a model reads.
    pub description: String,
    /// The display name.
    pub title: Option<String>,
    /// What the tool does, as far as known.
    pub hints: Hints,
    /// Where the hints come from.
    pub evidence: HintsEvidence,
    /// The JSON Schema of the arguments.
    pub inputs: Object,
    /// The JSON Schema of the result; empty if not stated.
    pub outputs: Object,
    /// What using the tool requires.
    pub security: Option<Security>,
    /// MCP annotations, as published.
    pub annotations: Option<Object>,
    /// Whether the provider must force the model to follow the schema.
    pub strict: Option<bool>,
    /// Example arguments.
    pub examples: Vec<Value>,
    /// Which of name, description and inputs the definition omits.
    pub absent: AbsentParts,
    /// Keys of a format without a canonical field, in their original places.
    pub extensions: Extensions,
    /// The key order of the definition if it is not the usual one.
    pub layout: KeyOrder,
    /// The wire shape of the definition.
    pub format: Format,
    /// The definition as received.
    pub definition: Option<Definition>,
}

/// The parts that every tool has in canonical form even if the definition omits them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbsentParts {
    /// The definition has no name.
    pub name: bool,
    /// The definition has no description.
    pub description: bool,
    /// The definition has no input schema.
    pub inputs: bool,
}

/// Keys without a canonical field, by format.
pub type Extensions = SmallMap<Format, Object>;

/// The keys of a definition's objects in written order, by JSON pointer.
pub type KeyOrder = SmallMap<String, Vec<String>>;

impl Tool {
    /// The version of a tool whose definition states none.
    pub const DEFAULT_VERSION: &'static str = "1.0.0";

    /// An empty tool of the given format.
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
            absent: AbsentParts::default(),
            extensions: Extensions::new(),
            layout: KeyOrder::new(),
            format,
            definition: None,
        }
    }

    /// The JSON Schema dialect that the input schema names in `$schema`.
    #[must_use]
    pub fn dialect(&self) -> Option<&str> {
        self.inputs.get("$schema").and_then(Value::as_str)
    }
}
