//! Makes a tool one that a target can say in full, and accounts for every step.

use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::{Evidence, Format, HintsEvidence, Tool};

use super::edit::{Edit, Kind, Severity};
use super::names::Names;
use super::target::Target;
use crate::dialect::{Demand, conform};
use crate::formats::{self, Slot, Table};
use crate::schema::convert;

/// Changes the tool until the target's format can say all of it.
pub(super) fn fit(tool: &mut Tool, target: Target, names: &mut Names) -> Vec<Edit> {
    let mut edits = Vec::new();
    // Also for a tool that stays in its format: somebody may have added to the canonical form.
    drop_extensions(tool, target, &mut edits);
    drop_fields(tool, target, &mut edits);
    if tool.format != target.format() {
        complete_shape(tool, target, &mut edits);
    }
    complete_inputs(tool, target, &mut edits);
    fit_draft(tool, target, &mut edits);
    fit_strictness(tool, target, &mut edits);
    fit_revision(tool, target, &mut edits);
    fit_dialect(tool, target, &mut edits);
    fit_name(tool, target, names, &mut edits);
    edits
}

/// Adds what the format cannot do without.
fn complete_shape(tool: &mut Tool, target: Target, edits: &mut Vec<Edit>) {
    if tool.absent.name && !tool.name.is_empty() {
        tool.absent.name = false;
        let name = Some(json!(tool.name));
        edits.push(Edit::change(
            Pointer::of(["name"]),
            None,
            name,
            "the name comes from outside the definition",
        ));
    }
    if takes_free_text(tool.format) {
        let schema = json!({"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]});
        set_inputs(
            tool,
            schema,
            "free text in becomes one string argument",
            edits,
        );
    }
    if tool.absent.inputs
        && requires(formats::table(target.format()), |slot| {
            matches!(slot, Slot::Inputs)
        })
    {
        let schema = json!({"type": "object", "properties": {}});
        set_inputs(tool, schema, "the format requires an input schema", edits);
    }
    if target == Target::Bedrock && !tool.absent.description && tool.description.is_empty() {
        tool.absent.description = true;
        let before = Some(json!(""));
        edits.push(Edit::change(
            Pointer::of(["description"]),
            before,
            None,
            "an empty description is rejected",
        ));
    }
}

/// Drops the keys of other formats.
fn drop_extensions(tool: &mut Tool, target: Target, edits: &mut Vec<Edit>) {
    let kept = tool.extensions.remove(&target.format());
    for (format, keys) in std::mem::take(&mut tool.extensions) {
        let at = Pointer::of(["extensions", format.id()]);
        for (key, value) in keys {
            if formats::is_converted(format, &key) {
                let reason = format!(
                    "the {format} spelling is for {format} only; what it says is carried over"
                );
                edits.push(Edit::change(at.child(&key), Some(value), None, reason));
                continue;
            }
            let free_text = takes_free_text(format) && matches!(key.as_str(), "format" | "custom");
            let arguments = tool.absent.inputs && describes_arguments(&value);
            let severity = if free_text || arguments {
                Severity::Semantic
            } else {
                Severity::Metadata
            };
            let reason = if arguments {
                "this looks like the schema of the arguments, under a key that is not read as one"
                    .to_owned()
            } else {
                format!("{} has no place for this {format} key", target.format())
            };
            edits.push(Edit::loss(at.child(&key), value, severity, reason));
        }
    }
    tool.extensions
        .extend(kept.map(|keys| (target.format(), keys)));
}

/// Drops the canonical fields the format has no key for.
fn drop_fields(tool: &mut Tool, target: Target, edits: &mut Vec<Edit>) {
    let format = target.format();
    let table = formats::table(format);
    let json_schema = format == Format::JsonSchema;
    let has = |test: fn(Slot) -> bool| has_slot(table, test);
    let mut lose = |key: &str, value: Value| {
        let reason = format!("{format} has no place for it");
        edits.push(Edit::loss(
            Pointer::of([key]),
            value,
            Severity::Metadata,
            reason,
        ));
    };
    if tool.version != Tool::DEFAULT_VERSION {
        let version = std::mem::replace(&mut tool.version, Tool::DEFAULT_VERSION.into());
        lose("version", Value::String(version.into_owned()));
    }
    if !has(|slot| matches!(slot, Slot::Title))
        && let Some(title) = tool.title.take()
    {
        lose("title", Value::String(title));
    }
    if tool.evidence.states_any() && !json_schema {
        lose("capabilities", json!(tool.hints));
        tool.evidence = HintsEvidence::all(Evidence::Default);
    }
    if !tool.outputs.is_empty() && !json_schema && !has(|slot| matches!(slot, Slot::Outputs)) {
        lose("outputs", Value::Object(std::mem::take(&mut tool.outputs)));
    }
    if !json_schema && let Some(security) = tool.security.take() {
        lose("security", json!(security));
    }
    if let Some(annotations) = tool.annotations.take() {
        match formats::can_say_annotations(table, &annotations) {
            true => tool.annotations = Some(annotations),
            false => lose("annotations", Value::Object(annotations)),
        }
    }
    if !has(|slot| matches!(slot, Slot::Strict))
        && let Some(strict) = tool.strict.take()
    {
        lose("strict", Value::Bool(strict));
    }
    if !tool.examples.is_empty() && !has(|slot| matches!(slot, Slot::Examples)) {
        lose("examples", Value::Array(std::mem::take(&mut tool.examples)));
    }
}

/// Formats whose tools take text instead of arguments.
const fn takes_free_text(format: Format) -> bool {
    matches!(
        format,
        Format::OpenaiChatCustom | Format::OpenaiResponsesCustom | Format::A2aSkill
    )
}

fn set_inputs(tool: &mut Tool, schema: Value, reason: &'static str, edits: &mut Vec<Edit>) {
    let before = (!tool.absent.inputs).then(|| Value::Object(std::mem::take(&mut tool.inputs)));
    edits.push(Edit::change(
        Pointer::of(["inputs"]),
        before,
        Some(schema.clone()),
        reason,
    ));
    if let Value::Object(schema) = schema {
        (tool.inputs, tool.absent.inputs) = (schema, false);
    }
}

/// Whether a value looks like an input schema, or like a map from arguments to their schemas.
fn describes_arguments(value: &Value) -> bool {
    let Value::Object(members) = value else {
        return false;
    };
    let is_schema = members.get("properties").is_some_and(Value::is_object)
        || members.get("type").and_then(Value::as_str) == Some("object");
    let is_typed = |value: &Value| value.get("type").is_some_and(|it| it.is_string());
    is_schema || (!members.is_empty() && members.values().all(is_typed))
}

/// Says that arguments are an object where the schema leaves it open. Providers and MCP refuse a
/// schema that does not.
fn complete_inputs(tool: &mut Tool, target: Target, edits: &mut Vec<Edit>) {
    // A Gemini schema that stays one is written as it was spelled.
    let is_spelled = target == Target::Gemini && tool.format == Format::Gemini;
    if tool.absent.inputs
        || is_spelled
        || !target.calls_by_name()
        || tool.inputs.contains_key("type")
    {
        return;
    }
    let mut add = |inputs: &mut Object, key: &str, value: Value| {
        let path = Pointer::of(["inputs", key]);
        edits.push(Edit::change(
            path,
            None,
            Some(value.clone()),
            "arguments are always an object",
        ));
        inputs.insert(key.to_owned(), value);
    };
    let mut inputs = Object::new();
    add(&mut inputs, "type", json!("object"));
    if tool.inputs.is_empty() {
        add(&mut inputs, "properties", json!({}));
    }
    inputs.append(&mut tool.inputs);
    tool.inputs = inputs;
}

/// Brings the schema into the draft of the target, and has it name that draft.
fn fit_draft(tool: &mut Tool, target: Target, edits: &mut Vec<Edit>) {
    let Some((draft, converts)) = target.draft() else {
        return;
    };
    let stays = tool.format == Format::JsonSchema || tool.inputs.contains_key("$schema");
    if stays && !converts {
        return;
    }
    if tool.absent.inputs || tool.inputs.is_empty() {
        let schema = json!({"type": "object", "properties": {}});
        set_inputs(tool, schema, "arguments are always an object", edits);
    }
    let place = Pointer::of(["inputs"]);
    edits.extend(convert(&mut tool.inputs, &place, draft));
    let before = tool.inputs.get("$schema").cloned();
    let after = json!(draft.uri());
    if before.as_ref() != Some(&after) {
        edits.push(Edit::change(
            place.child("$schema"),
            before,
            Some(after.clone()),
            "the document states its dialect",
        ));
        tool.inputs.insert("$schema".to_owned(), after);
    }
}

/// The Responses API reads a function that does not say so as strict, and no other format does.
fn fit_strictness(tool: &mut Tool, target: Target, edits: &mut Vec<Edit>) {
    if target != Target::OpenaiResponses
        || tool.format == Format::OpenaiResponses
        || tool.strict.is_some()
    {
        return;
    }
    tool.strict = Some(false);
    edits.push(Edit::change(
        Pointer::of(["strict"]),
        None,
        Some(json!(false)),
        "left out, it would mean strict",
    ));
}

/// Drops what one revision of MCP has and the other has not.
fn fit_revision(tool: &mut Tool, target: Target, edits: &mut Vec<Edit>) {
    let object_results_only = match target {
        Target::Mcp20251125 => true,
        Target::Mcp => tool.format != Format::Mcp,
        _ => false,
    };
    let is_object = tool.outputs.get("type").and_then(Value::as_str) == Some("object");
    if object_results_only && !tool.outputs.is_empty() && !is_object {
        let outputs = Value::Object(std::mem::take(&mut tool.outputs));
        let reason = "revision 2025-11-25 allows only schemas of objects";
        edits.push(Edit::loss(
            Pointer::of(["outputs"]),
            outputs,
            Severity::Metadata,
            reason,
        ));
    }
    if target == Target::Mcp20260728
        && let Some(keys) = tool.extensions.get_mut(&Format::Mcp)
        && let Some(execution) = keys.shift_remove("execution")
    {
        let path = Pointer::of(["extensions", "mcp", "execution"]);
        let reason = "revision 2026-07-28 moved tasks into an extension";
        edits.push(Edit::loss(path, execution, Severity::Metadata, reason));
    }
}

/// Rewrites the schemas until they are within what the target accepts.
fn fit_dialect(tool: &mut Tool, target: Target, edits: &mut Vec<Edit>) {
    let native_gemini = target == Target::Gemini && tool.format == Format::Gemini;
    let Some(dialect) = target.dialect().filter(|_| !native_gemini) else {
        return;
    };
    if target == Target::OpenaiStrict && tool.strict != Some(true) {
        ask_for_strict_mode(tool, edits);
    }
    if !tool.absent.inputs {
        edits.extend(conform(
            &mut tool.inputs,
            &Pointer::of(["inputs"]),
            dialect,
            Demand::WhateverItTakes,
        ));
    }
    if target == Target::Gemini && !tool.outputs.is_empty() {
        let place = Pointer::of(["outputs"]);
        let mut made = conform(&mut tool.outputs, &place, dialect, Demand::WhateverItTakes);
        // Arguments are an object in any case. Results are not: a type takes something away.
        let given_type = made
            .iter_mut()
            .find(|edit| edit.path == place.child("type") && edit.before.is_none());
        if let Some(edit) = given_type {
            edit.kind = Kind::Loss(Severity::Semantic);
        }
        edits.extend(made);
    }
}

fn ask_for_strict_mode(tool: &mut Tool, edits: &mut Vec<Edit>) {
    const REASON: &str = "strict mode is asked for";
    let before = tool.strict.map(Value::Bool);
    edits.push(Edit::change(
        Pointer::of(["strict"]),
        before,
        Some(json!(true)),
        REASON,
    ));
    tool.strict = Some(true);
    // A definition may say `"strict": null`, which is kept where it stood.
    let Some(keys) = tool.extensions.get_mut(&Format::OpenaiChat) else {
        return;
    };
    let Some(Value::Object(function)) = keys.get_mut("function") else {
        return;
    };
    let mut path = Pointer::of(["extensions", Format::OpenaiChat.id(), "function"]);
    let Some(null) = function.get("strict").cloned() else {
        return;
    };
    let before = if function.len() == 1 {
        keys.shift_remove("function")
    } else {
        function.shift_remove("strict");
        path.push("strict");
        Some(null)
    };
    edits.push(Edit::change(path, before, None, REASON));
}

/// Gives the tool a name the target accepts. A definition that stays in its own format keeps its
/// name: giving it back as it was comes first, and lint tells what is wrong with it.
fn fit_name(tool: &mut Tool, target: Target, names: &mut Names, edits: &mut Vec<Edit>) {
    if tool.format == target.format() && target != Target::OpenaiStrict {
        names.reserve(&tool.name);
        return;
    }
    let name = names.assign(&tool.name);
    if name != tool.name {
        let before = (!tool.absent.name).then(|| json!(tool.name));
        let reason = format!("{target} accepts no such name");
        edits.push(Edit::change(
            Pointer::of(["name"]),
            before,
            Some(json!(name)),
            reason,
        ));
        tool.name = name;
    }
}

fn has_slot(table: Table, test: fn(Slot) -> bool) -> bool {
    table.iter().any(|field| match field.slot {
        Slot::Nested(inner) => has_slot(inner, test),
        slot => test(slot),
    })
}

fn requires(table: Table, test: fn(Slot) -> bool) -> bool {
    table.iter().any(|field| match field.slot {
        Slot::Nested(inner) => requires(inner, test),
        slot => field.required && test(slot),
    })
}
