//! Tools as they are compared and kept, from whatever format they were read.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use thiserror::Error;
use toolwarden_canon::{Item, Source, canonicalize_item, definition_pointer};
use toolwarden_drift::{Facet, Layout, Observed};
use toolwarden_model::json::{JsonError, Object, Pointer};
use toolwarden_model::{Definition, Fingerprint, Format, Tool};
use toolwarden_store::Kept;

/// The name under which the instructions of a server are watched.
pub const INSTRUCTIONS: &str = "(instructions)";

/// What was seen of one tool.
#[derive(Clone, Debug)]
pub struct Observation {
    /// What the tool is called; a file may be told what its only tool is called.
    pub name: String,
    /// Whether nobody knows what the entry means: it is no tool that canon reads.
    pub opaque: bool,
    /// The definition as it is kept, and its format.
    text: Definition,
    format: Format,
    /// What was read of it; of a definition among many it is read when it is asked for.
    reading: OnceLock<Box<Reading>>,
    /// Whether the text alone says all that was read.
    readable_again: bool,
}

/// A definition as it is compared.
#[derive(Clone, Debug)]
struct Reading {
    tool: Tool,
    /// Whether the definition can be said in other words: not if its schema is none.
    portable: bool,
    definition: Value,
    layout: Layout,
    /// The format the definition is compared in.
    view: Format,
}

/// Why a kept definition cannot be read again.
#[derive(Debug, Error)]
pub enum UnreadableDefinition {
    /// It is no JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// There is no tool in it, or more than one.
    #[error("not the definition of one tool")]
    NotOne,
}

impl Observation {
    /// A tool as it is compared: as received where that says what canon reads.
    #[must_use]
    pub fn of(tool: Tool) -> Self {
        if let Some(seen) = with_broken_schema(&tool) {
            return seen;
        }
        let definition = tool.definition.as_ref().map(Definition::value);
        let inputs = definition_pointer(&tool, &Pointer::of(["inputs"]));
        let held = definition
            .as_ref()
            .and_then(|definition| inputs.find(definition));
        // Where a format spells its schema differently, the schema canon reads is compared.
        let as_received = match held {
            Some(Value::Object(held)) => *held == tool.inputs,
            // What is no schema is told as such.
            Some(_) => true,
            None => tool.inputs.is_empty() || tool.absent.inputs,
        };
        let (definition, layout, view) = match definition {
            // A file with nothing but the schema of the arguments, as toolwatch takes it.
            Some(definition) if is_bare_schema(&tool, &definition) => {
                let layout = Layout::new([(Facet::Input, Pointer::root())]);
                (definition, layout, Format::JsonSchema)
            }
            Some(definition) if as_received && tool.format != Format::Canonical => {
                let layout = layout(&tool);
                (definition, layout, tool.format)
            }
            _ => (whole_form(&tool), Layout::mcp(), Format::Mcp),
        };
        // A part of an OpenAPI document cannot be read again by itself, and a canonical tool is ours.
        let by_itself = !matches!(tool.format, Format::Openapi | Format::Canonical);
        let (text, format) = match &tool.definition {
            Some(text) if by_itself => (text.clone(), tool.format),
            _ => (Definition::from(&whole_form(&tool)), Format::Mcp),
        };
        let readable_again = by_itself && tool.definition.is_some() && view == tool.format;
        // What a provider runs says little of what it does, and what has neither name nor schema nothing.
        let opaque =
            tool.format.is_hosted() || !(is_definition(&tool) || view == Format::JsonSchema);
        Self {
            name: tool.name.clone(),
            opaque,
            text,
            format,
            readable_again,
            reading: OnceLock::from(Box::new(Reading {
                tool,
                portable: true,
                definition,
                layout,
                view,
            })),
        }
    }

    /// Forgets what was read of the text, where it can be read again: a value takes many times the room
    /// of its text.
    pub fn compact(&mut self) {
        if self.readable_again {
            self.reading = OnceLock::new();
        }
    }

    fn reading(&self) -> &Reading {
        self.reading.get_or_init(|| {
            let again = Self::read(&self.name, self.format, self.text());
            let reading = again.ok().and_then(|it| it.reading.into_inner());
            // INVARIANT: what is forgotten was read from this text.
            reading.unwrap_or_else(|| {
                Box::new(Reading {
                    tool: Tool::new(self.format),
                    portable: false,
                    definition: self.text.value(),
                    layout: Layout::new([]),
                    view: self.format,
                })
            })
        })
    }

    /// A kept definition, as it was when it was kept.
    ///
    /// # Errors
    /// The text is not the definition of one tool.
    pub fn read(name: &str, format: Format, text: &str) -> Result<Self, UnreadableDefinition> {
        let item = Item {
            pointer: Pointer::root(),
            text,
        };
        let mut read = canonicalize_item(&item, Source::Format(format))?.tools;
        let (Some(found), true) = (read.pop(), read.is_empty()) else {
            return Err(UnreadableDefinition::NotOne);
        };
        let mut seen = Self::of(found.tool);
        seen.name = name.to_owned();
        Ok(seen)
    }

    /// What a server tells models about itself: they read it like the description of a tool.
    #[must_use]
    pub fn of_instructions(text: &str) -> Self {
        let mut tool = Tool::new(Format::Mcp);
        INSTRUCTIONS.clone_into(&mut tool.name);
        text.clone_into(&mut tool.description);
        tool.absent.inputs = true;
        Self::of(tool)
    }

    /// The format the definition is compared in.
    #[must_use]
    pub fn view(&self) -> Format {
        self.reading().view
    }

    /// Goes over to what every format can say.
    fn share(&mut self) {
        let Reading { tool, portable, .. } = self.reading();
        let (tool, portable) = (tool.clone(), *portable);
        self.readable_again = false;
        self.reading = OnceLock::from(Box::new(Reading {
            definition: common_form(&tool),
            layout: Layout::mcp(),
            view: Format::Mcp,
            tool,
            portable,
        }));
    }

    /// Where the calls of a document go and what they need: nobody can tell what a change of that means.
    #[must_use]
    pub fn of_calls(name: &str, document: &str) -> Option<Self> {
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
        let mut seen = Self::of_document(name, &Value::Object(calls).to_string()).ok()?;
        seen.opaque = true;
        Some(seen)
    }

    /// A document whose tools do not say all of it: what is left is watched under a name of its own.
    ///
    /// # Errors
    /// The document is no JSON.
    pub fn of_document(name: &str, document: &str) -> Result<Self, UnreadableDefinition> {
        let name_text = Value::from(name);
        let text = format!(r#"{{"name":{name_text},"document":{document}}}"#);
        Self::read(name, Format::Mcp, &text)
    }

    /// Whether the tool is one of a document that says more than its tools do.
    #[must_use]
    pub fn is_of_document(&self) -> bool {
        matches!(
            self.reading().tool.format,
            Format::Openapi | Format::A2aSkill
        )
    }

    /// The view that is compared.
    #[must_use]
    pub fn observed(&self) -> Observed<'_> {
        let reading = self.reading();
        Observed {
            name: &self.name,
            definition: &reading.definition,
            layout: &reading.layout,
        }
    }

    /// The definition as it is compared.
    #[must_use]
    pub fn definition(&self) -> &Value {
        &self.reading().definition
    }

    /// The definition as it is kept.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.text()
    }

    /// The definition as it is kept, shared with the observation.
    #[must_use]
    pub fn shared_text(&self) -> Arc<str> {
        self.text.shared()
    }

    /// What names the definition among those kept, and how it is read again.
    #[must_use]
    pub fn kept(&self) -> Kept {
        Kept {
            fingerprint: Fingerprint::of_wire(self.text()),
            format: self.format,
        }
    }

    /// What names the definition whatever the order of its keys.
    #[must_use]
    pub fn meaning(&self) -> Fingerprint {
        Fingerprint::of(&self.text.value())
    }

    /// The schema the tool promises for its results.
    #[must_use]
    pub fn output_schema(&self) -> Option<&Value> {
        self.observed().facet(Facet::Output)
    }
}

/// Whether something was read that could be called: JSON without a name and a schema is no tool.
#[must_use]
pub fn is_definition(tool: &Tool) -> bool {
    !(tool.absent.name && tool.absent.inputs)
}

/// Makes two definitions comparable: as received where they are in one format, else in the words both
/// share. Tells whether they were in one format.
pub fn share_words(old: &mut Observation, new: &mut Observation) -> bool {
    let same = old.view() == new.view() || !old.reading().portable || !new.reading().portable;
    if !same {
        old.share();
        new.share();
    }
    same
}

/// A definition whose schema is no schema, as it is: to take it for one that accepts everything would
/// hide it.
fn with_broken_schema(tool: &Tool) -> Option<Observation> {
    // Some formats list parameters instead of a schema, which canon reads.
    if !tool.inputs.is_empty() {
        return None;
    }
    let text = tool.definition.as_ref()?;
    let definition = text.value();
    let keys = ["inputSchema", "input_schema", "parameters"];
    let key = keys.iter().find(|key| {
        let schema = definition.get(**key);
        schema.is_some_and(|schema| !schema.is_object() && !schema.is_boolean())
    })?;
    let layout = Layout::new([
        (Facet::Name, Pointer::of(["name"])),
        (Facet::Description, Pointer::of(["description"])),
        (Facet::Input, Pointer::of([*key])),
    ]);
    Some(Observation {
        name: tool.name.clone(),
        opaque: false,
        text: text.clone(),
        format: tool.format,
        readable_again: false,
        reading: OnceLock::from(Box::new(Reading {
            portable: false,
            definition,
            layout,
            view: tool.format,
            tool: tool.clone(),
        })),
    })
}

fn layout(tool: &Tool) -> Layout {
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
    Layout::new(places)
}

/// Whether a definition is a schema and nothing else.
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

/// What a tool says, with what only its format can say: nothing that changes goes unseen.
fn whole_form(tool: &Tool) -> Value {
    let mut form = shared_form(tool);
    if let Value::Object(members) = &mut form {
        for (format, extensions) in tool.extensions.iter().filter(|(_, it)| !it.is_empty()) {
            let key = format!("extensions/{format}");
            members.insert(key, Value::Object(extensions.clone()));
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

/// What every format can say of a tool.
fn common_form(tool: &Tool) -> Value {
    let mut form = shared_form(tool);
    if let Value::Object(members) = &mut form {
        for member in ["title", "outputSchema", "annotations"] {
            members.shift_remove(member);
        }
    }
    form
}

/// What a tool says, in the members of MCP.
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
