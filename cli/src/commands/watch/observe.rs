//! Definitions as they are compared, from whatever format they were read.

use std::path::Path;

use serde_json::Value;
use toolwarden_canon::{Source, definition_pointer};
use toolwarden_drift::{Facet, Layout, Observed};
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::{Format, Tool};

use crate::args::InputArgs;
use crate::commands::talk::warn;
use crate::error::CliError;
use crate::input::{KeptPlace, each_tool};

/// One definition of a file.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) name: String,
    pub(super) place: KeptPlace,
    tool: Tool,
    /// Whether the definition can be said in other words: not if its schema is none.
    portable: bool,
    definition: Value,
    layout: Layout,
}

impl Seen {
    pub(super) fn observed(&self) -> Observed<'_> {
        Observed {
            name: &self.name,
            definition: &self.definition,
            layout: &self.layout,
        }
    }

    pub(super) fn definition(&self) -> &Value {
        &self.definition
    }
}

/// Every definition of a file.
pub(super) fn read(file: &Path, source_format: Source) -> Result<Vec<Seen>, CliError> {
    let input = InputArgs {
        files: vec![file.to_owned()],
        input: Vec::new(),
        source_format,
        tools: Vec::new(),
    };
    let mut seen = Vec::new();
    each_tool(&input, |read| {
        if is_definition(&read.found.tool) {
            warn(&read);
            let place = read.place.kept(&read.found);
            seen.push(see(read.found.tool, place));
        }
        Ok(())
    })?;
    Ok(seen)
}

/// Whether something was read that could be called: JSON without a name and a schema is no tool.
pub(super) fn is_definition(tool: &Tool) -> bool {
    !(tool.absent.name && tool.absent.inputs)
}

/// Makes two lists comparable: as received where they are in one format, else in the words both
/// share.
pub(super) fn bring_together(old: &mut [Seen], new: &mut [Seen]) -> bool {
    let formats = |list: &[Seen]| -> Vec<Format> {
        let portable = list.iter().filter(|seen| seen.portable);
        let mut formats: Vec<Format> = portable.map(|seen| seen.tool.format).collect();
        formats.sort_unstable();
        formats.dedup();
        formats
    };
    let (before, after) = (formats(old), formats(new));
    let same = before.is_empty() || after.is_empty() || (before == after && before.len() == 1);
    if !same {
        for seen in old.iter_mut().chain(new).filter(|seen| seen.portable) {
            seen.definition = common_form(&seen.tool);
            seen.layout = Layout::mcp();
        }
    }
    same
}

/// A tool as it is compared.
pub(super) fn see(tool: Tool, place: KeptPlace) -> Seen {
    if let Some(seen) = with_broken_schema(&tool, &place) {
        return seen;
    }
    let definition = tool
        .definition
        .as_ref()
        .map(toolwarden_model::Definition::value);
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
    let (definition, layout) = match definition {
        Some(definition) if as_received && tool.format != Format::Canonical => {
            let layout = layout(&tool);
            (definition, layout)
        }
        _ => (shared_form(&tool), Layout::mcp()),
    };
    Seen {
        name: tool.name.clone(),
        place,
        tool,
        portable: true,
        definition,
        layout,
    }
}

/// A definition whose schema is no schema, as it is: to take it for one that accepts everything would
/// hide it.
fn with_broken_schema(tool: &Tool, place: &KeptPlace) -> Option<Seen> {
    let definition = tool.definition.as_ref()?.value();
    let keys = ["inputSchema", "input_schema", "parameters"];
    let key = keys.iter().find(|key| {
        let schema = definition.get(**key);
        schema.is_some_and(|schema| !schema.is_object() && !schema.is_boolean())
    })?;
    // Some formats list parameters instead of a schema, which canon reads.
    if !tool.inputs.is_empty() {
        return None;
    }
    let layout = Layout::new([
        (Facet::Name, Pointer::of(["name"])),
        (Facet::Description, Pointer::of(["description"])),
        (Facet::Input, Pointer::of([*key])),
    ]);
    Some(Seen {
        name: tool.name.clone(),
        place: place.clone(),
        tool: tool.clone(),
        portable: false,
        definition,
        layout,
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
