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
        warn(&read);
        let place = read.place.kept(&read.found);
        seen.push(see(read.found.tool, place));
        Ok(())
    })?;
    if seen.is_empty() {
        return Err(input.nothing_found());
    }
    Ok(seen)
}

/// Makes two lists comparable: as received where they are in one format, else in the words both
/// share.
pub(super) fn bring_together(old: &mut [Seen], new: &mut [Seen]) -> bool {
    let formats = |list: &[Seen]| -> Vec<Format> {
        let mut formats: Vec<Format> = list.iter().map(|seen| seen.tool.format).collect();
        formats.sort_unstable();
        formats.dedup();
        formats
    };
    let same = formats(old) == formats(new) && formats(old).len() == 1;
    if !same {
        for seen in old.iter_mut().chain(new) {
            seen.definition = shared_form(&seen.tool);
            seen.layout = Layout::mcp();
        }
    }
    same
}

/// A tool as it is compared.
pub(super) fn see(tool: Tool, place: KeptPlace) -> Seen {
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
        Some(_) => false,
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
        definition,
        layout,
    }
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
