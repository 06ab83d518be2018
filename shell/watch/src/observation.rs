//! Tools in the form in which they are compared and stored, from any format.

use std::sync::OnceLock;

use serde_json::Value;
use thiserror::Error;
use toolwarden_canon::{
    CanonicalizedTool, FormatChoice, TextItem, canonicalize_with_values, definition_pointer,
    uncarried_members,
};
use toolwarden_drift::{Facet, FacetLayout, ObservedDefinition};
use toolwarden_model::json::{JsonError, Object, Pointer};
use toolwarden_model::{Definition, Fingerprint, Format, SharedText, Tool};
use toolwarden_store::StoredDefinition;

/// The name under which the instructions of a server are watched.
pub const INSTRUCTIONS: &str = "(instructions)";

/// The observation of one tool.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The name of the tool; for a file with a single tool the user may set it.
    pub name: String,
    /// Whether the entry cannot be interpreted: canon does not read it as a tool.
    pub opaque: bool,
    /// The definition as it is stored, and its format.
    text: Definition,
    format: Format,
    /// The parsed definition; in a long list it is parsed on demand.
    parsed: OnceLock<Box<ParsedDefinition>>,
    /// Whether parsing the text again gives the same definition.
    can_be_reparsed: bool,
}

/// A definition in the form in which it is compared.
#[derive(Clone, Debug)]
struct ParsedDefinition {
    tool: Tool,
    /// Whether the definition can be expressed in other formats; not if its schema is invalid.
    portable: bool,
    definition: Value,
    layout: FacetLayout,
    /// The format the definition is compared in.
    view: Format,
}

/// Why a stored definition cannot be parsed again.
#[derive(Debug, Error)]
pub enum UnreadableDefinition {
    /// The text is not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The text contains no tool, or more than one.
    #[error("not the definition of one tool")]
    NotOneTool,
}

impl Observation {
    /// An observation of a tool: as received if that is the text canon reads.
    #[must_use]
    pub fn from_tool(tool: Tool) -> Self {
        Self::new(tool, None)
    }

    /// An observation of a tool whose definition is parsed already.
    #[must_use]
    pub fn from_canonicalized(found: CanonicalizedTool) -> Self {
        Self::new(found.tool, found.value)
    }

    fn new(tool: Tool, value: Option<Value>) -> Self {
        let mut definition = None;
        if let Some(text) = tool.definition.clone() {
            let value = value.unwrap_or_else(|| text.value());
            if let Some(key) = broken_schema(&tool, &value) {
                return with_broken_schema(tool, text, value, key);
            }
            definition = Some(value);
        }
        let inputs = definition_pointer(&tool, &Pointer::of(["inputs"]));
        let held = definition
            .as_ref()
            .and_then(|definition| inputs.find(definition));
        // If a format spells its schema differently, the schema that canon reads is compared.
        let as_received = match held {
            Some(Value::Object(held)) => *held == tool.inputs,
            // A list of parameters that canon reads as a schema.
            Some(_) if !tool.absent.inputs => false,
            // An invalid schema is reported as such.
            Some(_) => true,
            None => tool.inputs.is_empty() || tool.absent.inputs,
        };
        let (definition, layout, view) = match definition {
            // A file with only the schema of the arguments, as toolwatch accepts it.
            Some(definition) if is_bare_schema(&tool, &definition) => {
                let layout = FacetLayout::new([(Facet::Input, Pointer::root())]);
                (definition, layout, Format::JsonSchema)
            }
            Some(definition) if as_received && tool.format != Format::Canonical => {
                let layout = layout(&tool);
                (definition, layout, tool.format)
            }
            _ => (full_form(&tool), FacetLayout::mcp(), Format::Mcp),
        };
        let layout = match (implied_strictness(tool.format), view == tool.format) {
            (None, _) => layout,
            (Some(strict), true) => {
                let place = definition_pointer(&tool, &Pointer::of(["strict"]));
                layout.with_implied(place, Value::Bool(strict))
            }
            (Some(strict), false) => {
                layout.with_implied(Pointer::of(["strict"]), Value::Bool(strict))
            }
        };
        // A part of an OpenAPI document cannot be parsed again on its own, and a canonical tool is our own
        // format.
        let by_itself = !matches!(tool.format, Format::Openapi | Format::Canonical);
        let (text, format) = match &tool.definition {
            Some(text) if by_itself => (text.clone(), tool.format),
            _ => (Definition::from(&full_form(&tool)), Format::Mcp),
        };
        let readable_again = by_itself && tool.definition.is_some() && view == tool.format;
        // A provider-run tool says little about what it does, and an entry with neither name nor schema
        // says nothing.
        let opaque =
            tool.format.is_hosted() || !(is_definition(&tool) || view == Format::JsonSchema);
        Self {
            name: tool.name.clone(),
            opaque,
            text,
            format,
            can_be_reparsed: readable_again,
            parsed: OnceLock::from(Box::new(ParsedDefinition {
                tool,
                portable: true,
                definition,
                layout,
                view,
            })),
        }
    }

    /// Drops the parsed definition if it can be parsed again: a value takes many times the memory of its
    /// text.
    pub fn compact(&mut self) {
        if self.can_be_reparsed {
            self.parsed = OnceLock::new();
        }
    }

    fn parsed(&self) -> &ParsedDefinition {
        self.parsed.get_or_init(|| {
            let again = Self::parse(&self.name, self.format, self.text());
            let reading = again.ok().and_then(|it| it.parsed.into_inner());
            // INVARIANT: a dropped definition was parsed from this text.
            reading.unwrap_or_else(|| {
                Box::new(ParsedDefinition {
                    tool: Tool::new(self.format),
                    portable: false,
                    definition: self.text.value(),
                    layout: FacetLayout::new([]),
                    view: self.format,
                })
            })
        })
    }

    /// A stored definition, as it was when it was stored.
    ///
    /// # Errors
    /// The text is not the definition of one tool.
    pub fn parse(name: &str, format: Format, text: &str) -> Result<Self, UnreadableDefinition> {
        let shared = SharedText::from(text);
        let item = TextItem {
            pointer: Pointer::root(),
            text: &shared,
        };
        let mut read =
            canonicalize_with_values(&item, &shared, FormatChoice::Format(format))?.tools;
        let (Some(found), true) = (read.pop(), read.is_empty()) else {
            return Err(UnreadableDefinition::NotOneTool);
        };
        let mut seen = Self::from_canonicalized(found);
        seen.name = name.to_owned();
        Ok(seen)
    }

    /// The instructions of a server, which models read like the description of a tool.
    #[must_use]
    pub fn from_instructions(text: &str) -> Self {
        let mut tool = Tool::new(Format::Mcp);
        INSTRUCTIONS.clone_into(&mut tool.name);
        text.clone_into(&mut tool.description);
        tool.absent.inputs = true;
        Self::from_tool(tool)
    }

    /// The format in which the definition is compared.
    #[must_use]
    pub fn view(&self) -> Format {
        self.parsed().view
    }

    /// Converts to the form that every format can express.
    fn use_common_form(&mut self) {
        let ParsedDefinition { tool, portable, .. } = self.parsed();
        let (tool, portable) = (tool.clone(), *portable);
        self.can_be_reparsed = false;
        self.parsed = OnceLock::from(Box::new(ParsedDefinition {
            definition: common_form(&tool),
            layout: FacetLayout::mcp(),
            view: Format::Mcp,
            tool,
            portable,
        }));
    }

    /// Where the calls of a document go and what they require. The meaning of a change there is unknown.
    #[must_use]
    pub fn from_calls(name: &str, document: &str) -> Option<Self> {
        let keys = [
            "servers",
            "security",
            "host",
            "basePath",
            "schemes",
            "securityDefinitions",
            "url",
            "securitySchemes",
            "additionalInterfaces",
            "preferredTransport",
        ];
        let value: Value = serde_json::from_str(document).ok()?;
        let mut calls: Object = Object::new();
        let schemes = value.pointer("/components/securitySchemes");
        let found = keys.iter().filter_map(|key| Some((*key, value.get(key)?)));
        for (key, value) in found.chain(schemes.map(|it| ("components", it))) {
            calls.insert(key.to_owned(), value.clone());
        }
        let mut seen = Self::from_document(name, &Value::Object(calls).to_string()).ok()?;
        seen.opaque = true;
        Some(seen)
    }

    /// A document that contains more than its tools: the rest is watched under its own name.
    ///
    /// # Errors
    /// The document is not JSON.
    pub fn from_document(name: &str, document: &str) -> Result<Self, UnreadableDefinition> {
        let name_text = Value::from(name);
        let text = format!(r#"{{"name":{name_text},"document":{document}}}"#);
        Self::parse(name, Format::Mcp, &text)
    }

    /// Whether the tool belongs to a document that contains more than its tools.
    #[must_use]
    pub fn is_of_document(&self) -> bool {
        matches!(
            self.parsed().tool.format,
            Format::Openapi | Format::A2aSkill
        )
    }

    /// The view for comparison.
    #[must_use]
    pub fn observed(&self) -> ObservedDefinition<'_> {
        let reading = self.parsed();
        ObservedDefinition {
            name: &self.name,
            definition: &reading.definition,
            layout: &reading.layout,
        }
    }

    /// The definition in the form in which it is compared.
    #[must_use]
    pub fn definition(&self) -> &Value {
        &self.parsed().definition
    }

    /// The definition as it is stored.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.text()
    }

    /// The definition as it is stored, shared with the observation.
    #[must_use]
    pub fn shared_text(&self) -> SharedText {
        self.text.shared()
    }

    /// The fingerprint of the stored definition, and its format.
    #[must_use]
    pub fn kept(&self) -> StoredDefinition {
        StoredDefinition {
            fingerprint: Fingerprint::of_wire(self.text()),
            format: self.format,
        }
    }

    /// The fingerprint of the definition, independent of the order of its keys.
    #[must_use]
    pub fn semantic_fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.text.value())
    }

    /// The output schema of the tool.
    #[must_use]
    pub fn output_schema(&self) -> Option<&Value> {
        self.observed().facet(Facet::Output)
    }
}

/// Whether the entry could be called: JSON without a name and a schema is not a tool.
#[must_use]
pub fn is_definition(tool: &Tool) -> bool {
    !(tool.absent.name && tool.absent.inputs)
}

/// Makes two definitions comparable: as received if they have the same format, else in the form that both
/// can express. Returns whether they have the same format.
pub fn align_formats(old: &mut Observation, new: &mut Observation) -> bool {
    let same = old.view() == new.view() || !old.parsed().portable || !new.parsed().portable;
    if !same {
        old.use_common_form();
        new.use_common_form();
    }
    same
}

/// Whether two definitions in different formats differ in more than what every format can express, so that
/// a comparison of that says little.
#[must_use]
pub fn differ_beyond_common_form(old: &Observation, new: &Observation) -> bool {
    let rest = |seen: &Observation| {
        let mut form = full_form(&seen.parsed().tool);
        if let Value::Object(members) = &mut form {
            for member in ["name", "description", "inputSchema"] {
                members.shift_remove(member);
            }
        }
        form
    };
    rest(old) != rest(new)
}

/// The member of a definition that holds something else than a schema where its schema belongs.
fn broken_schema(tool: &Tool, definition: &Value) -> Option<&'static str> {
    // Some formats list parameters instead of a schema, which canon reads.
    if !tool.inputs.is_empty() {
        return None;
    }
    let keys = ["inputSchema", "input_schema", "parameters"];
    // A schema may be a boolean, but canon reads objects only.
    if keys
        .iter()
        .any(|key| definition.get(*key).is_some_and(Value::is_object))
    {
        return None;
    }
    keys.into_iter().find(|key| definition.get(*key).is_some())
}

/// A definition whose schema is not a schema, as received: to take it for one that accepts everything
/// would hide it.
fn with_broken_schema(tool: Tool, text: Definition, definition: Value, key: &str) -> Observation {
    let layout = FacetLayout::new([
        (Facet::Name, Pointer::of(["name"])),
        (Facet::Description, Pointer::of(["description"])),
        (Facet::Input, Pointer::of([key])),
    ]);
    Observation {
        name: tool.name.clone(),
        opaque: false,
        text,
        format: tool.format,
        can_be_reparsed: false,
        parsed: OnceLock::from(Box::new(ParsedDefinition {
            portable: false,
            definition,
            layout,
            view: tool.format,
            tool,
        })),
    }
}

fn layout(tool: &Tool) -> FacetLayout {
    let place = |key: &str| definition_pointer(tool, &Pointer::of([key]));
    let mut places = vec![
        (Facet::Name, place("name")),
        (Facet::Description, place("description")),
        (Facet::Input, place("inputs")),
    ];
    for (facet, key) in [
        (Facet::Title, "title"),
        (Facet::Output, "outputs"),
        (Facet::Annotations, "annotations"),
    ] {
        let place = place(key);
        if place != Pointer::root() {
            places.push((facet, place));
        }
    }
    if tool.format == Format::Mcp {
        places.push((Facet::Meta, Pointer::of(["_meta"])));
        places.push((Facet::Icons, Pointer::of(["icons"])));
    }
    FacetLayout::new(places)
}

/// What a format means by leaving out whether calls follow the schema strictly.
const fn implied_strictness(format: Format) -> Option<bool> {
    match format {
        // The API tries to be strict.
        Format::OpenaiResponses | Format::OpenaiAgents => Some(true),
        Format::OpenaiChat
        | Format::OpenaiLegacy
        | Format::Anthropic
        | Format::Bedrock
        | Format::VercelAi => Some(false),
        _ => None,
    }
}

/// Whether a definition is only a schema.
fn is_bare_schema(tool: &Tool, definition: &Value) -> bool {
    let marks = [
        "$schema",
        "type",
        "properties",
        "$ref",
        "anyOf",
        "oneOf",
        "allOf",
    ];
    tool.format == Format::Raw
        && tool.absent.name
        && tool.absent.inputs
        && marks.iter().any(|mark| definition.get(mark).is_some())
}

/// The whole content of a tool, including format-specific parts, so that no change is missed.
fn full_form(tool: &Tool) -> Value {
    let mut form = shared_form(tool);
    if let Value::Object(members) = &mut form {
        for (format, extensions) in uncarried_members(tool) {
            let key = format!("extensions/{format}");
            members.insert(key, Value::Object(extensions));
        }
        if let Some(strict) = tool.strict {
            members.insert("strict".to_owned(), Value::Bool(strict));
        }
        if !tool.examples.is_empty() {
            members.insert("examples".to_owned(), Value::Array(tool.examples.clone()));
        }
    }
    form
}

/// The parts of a tool that every format can express.
fn common_form(tool: &Tool) -> Value {
    let mut form = shared_form(tool);
    if let Value::Object(members) = &mut form {
        for member in ["title", "outputSchema", "annotations"] {
            members.shift_remove(member);
        }
    }
    form
}

/// The content of a tool, with the members of MCP.
fn shared_form(tool: &Tool) -> Value {
    let mut form = Object::new();
    form.insert("name".to_owned(), Value::from(tool.name.as_str()));
    if let Some(title) = &tool.title {
        form.insert("title".to_owned(), Value::from(title.as_str()));
    }
    if !tool.absent.description {
        form.insert(
            "description".to_owned(),
            Value::from(tool.description.as_str()),
        );
    }
    if !tool.absent.inputs {
        form.insert("inputSchema".to_owned(), Value::Object(tool.inputs.clone()));
    }
    if !tool.outputs.is_empty() {
        form.insert(
            "outputSchema".to_owned(),
            Value::Object(tool.outputs.clone()),
        );
    }
    if let Some(annotations) = &tool.annotations {
        form.insert("annotations".to_owned(), Value::Object(annotations.clone()));
    }
    Value::Object(form)
}
