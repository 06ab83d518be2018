//! Changes a tool until a target can express all of it, and records every step.

use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::{Evidence, Format, HintsEvidence, Tool};

use super::name_allocator::NameAllocator;
use super::target::EmitTarget;
use crate::container::lists_unread_parts;
use crate::dialect::{RewriteMode, conform};
use crate::edit::{Edit, EditKind, LossKind};
use crate::formats::{self, FieldTable, ToolField, describes_arguments};
use crate::schema::convert;
use crate::unread::{UnreadSchema, names_arguments, unread_schemas};

/// Changes the tool until the target's format can express all of it.
pub(super) fn fit(tool: &mut Tool, target: EmitTarget, names: &mut NameAllocator) -> Vec<Edit> {
    let mut edits = Vec::new();
    // Also for a tool that stays in its format: a caller may have added to the canonical form.
    drop_extensions(tool, target, &mut edits);
    drop_fields(tool, target, &mut edits);
    if tool.format != target.format() {
        add_required_fields(tool, target, &mut edits);
    }
    complete_inputs(tool, target, &mut edits);
    fit_draft(tool, target, &mut edits);
    fit_strictness(tool, target, &mut edits);
    fit_revision(tool, target, &mut edits);
    fit_dialect(tool, target, &mut edits);
    fit_name(tool, target, names, &mut edits);
    edits
}

/// Adds the fields that the format requires.
fn add_required_fields(tool: &mut Tool, target: EmitTarget, edits: &mut Vec<Edit>) {
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
            matches!(slot, ToolField::Inputs)
        })
    {
        let schema = json!({"type": "object", "properties": {}});
        set_inputs(tool, schema, "the format requires an input schema", edits);
    }
    if target == EmitTarget::Bedrock && !tool.absent.description && tool.description.is_empty() {
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
fn drop_extensions(tool: &mut Tool, target: EmitTarget, edits: &mut Vec<Edit>) {
    let unread = unread_schemas(tool);
    if target == EmitTarget::OpenaiStrict {
        drop_unread(tool, target.format(), edits);
    }
    let kept = tool.extensions.remove(&target.format());
    for (format, keys) in std::mem::take(&mut tool.extensions) {
        let at = Pointer::of(["extensions", format.id()]);
        for (key, value) in keys {
            let first = |pointer: &Pointer| pointer.segments().next();
            let schema = unread.iter().find(|it| {
                format == tool.format && first(&it.pointer).as_deref() == Some(key.as_str())
            });
            if schema.is_none() && formats::is_converted(tool, format, &key, &value) {
                let reason = format!(
                    "the {format} spelling is for {format} only; what it says is carried over"
                );
                edits.push(Edit::change(at.child(&key), Some(value), None, reason));
                continue;
            }
            let free_text = takes_free_text(format) && matches!(key.as_str(), "format" | "custom");
            if lists_unread_parts(format, &key) {
                edits.push(unread_parts_loss(at.child(&key), value, &unread));
                continue;
            }
            let is_named = format == Format::Raw && names_arguments(&key) && !value.is_null();
            let arguments = tool.absent.inputs && (describes_arguments(&value) || is_named);
            let severity = if free_text || arguments || schema.is_some() {
                LossKind::Semantic
            } else {
                LossKind::Metadata
            };
            let reason = if let Some(schema) = schema {
                schema.problem.describe()
            } else if arguments {
                "this describes the arguments in a form that is not read".to_owned()
            } else {
                format!("{} has no place for this {format} key", target.format())
            };
            edits.push(Edit::loss(at.child(&key), value, severity, reason));
        }
    }
    tool.extensions
        .extend(kept.map(|keys| (target.format(), keys)));
}

/// What is lost with the parts of an operation that could not be read: where arguments are missing,
/// other calls are valid.
fn unread_parts_loss(path: Pointer, value: Value, unread: &[UnreadSchema]) -> Edit {
    let of_results = |it: &UnreadSchema| it.pointer.as_str().starts_with("/responses/");
    let severity = if unread.iter().all(of_results) {
        LossKind::Metadata
    } else {
        LossKind::Semantic
    };
    let reasons = unread.iter().map(|it| {
        let (place, problem) = (&it.pointer, it.problem.describe());
        format!("`{place}`: {problem}")
    });
    let reason = reasons.collect::<Vec<_>>().join("; ");
    Edit::loss(path, value, severity, reason)
}

/// Drops schemas under keys that the provider does not read, for a target that rewrites a definition
/// even in its own format.
fn drop_unread(tool: &mut Tool, format: Format, edits: &mut Vec<Edit>) {
    if tool.format != format {
        return;
    }
    for unread in unread_schemas(tool) {
        let mut segments: Vec<String> = unread.pointer.segments().collect();
        let last = segments.pop().unwrap_or_default();
        let mut holder = tool.extensions.get_mut(&format);
        for segment in &segments {
            let inner = holder.and_then(|holder| holder.get_mut(segment));
            holder = inner.and_then(Value::as_object_mut);
        }
        if let Some(value) = holder.and_then(|holder| holder.shift_remove(&last)) {
            let path = Pointer::of(["extensions", format.id()]).join(&unread.pointer);
            let reason = unread.problem.describe();
            edits.push(Edit::loss(path, value, LossKind::Semantic, reason));
        }
    }
}

/// Drops the canonical fields the format has no key for.
fn drop_fields(tool: &mut Tool, target: EmitTarget, edits: &mut Vec<Edit>) {
    let format = target.format();
    let table = formats::table(format);
    let json_schema = format == Format::JsonSchema;
    let has = |test: fn(ToolField) -> bool| has_slot(table, test);
    let mut lose = |key: &str, value: Value| {
        let reason = format!("{format} has no place for it");
        edits.push(Edit::loss(
            Pointer::of([key]),
            value,
            LossKind::Metadata,
            reason,
        ));
    };
    if tool.version != Tool::DEFAULT_VERSION {
        let version = std::mem::replace(&mut tool.version, Tool::DEFAULT_VERSION.into());
        lose("version", Value::String(version.into_owned()));
    }
    if !has(|slot| matches!(slot, ToolField::Title))
        && let Some(title) = tool.title.take()
    {
        lose("title", Value::String(title));
    }
    if tool.evidence.states_any() && !json_schema {
        lose("capabilities", json!(tool.hints));
        tool.evidence = HintsEvidence::all(Evidence::Default);
    }
    if !tool.outputs.is_empty() && !json_schema && !has(|slot| matches!(slot, ToolField::Outputs)) {
        lose("outputs", Value::Object(std::mem::take(&mut tool.outputs)));
    }
    if !json_schema && let Some(security) = tool.security.take() {
        lose("security", json!(security));
    }
    if let Some(annotations) = tool.annotations.take() {
        match formats::supports_annotations(table, &annotations) {
            true => tool.annotations = Some(annotations),
            false => lose("annotations", Value::Object(annotations)),
        }
    }
    if !has(|slot| matches!(slot, ToolField::Strict))
        && let Some(strict) = tool.strict.take()
    {
        lose("strict", Value::Bool(strict));
    }
    if !tool.examples.is_empty() && !has(|slot| matches!(slot, ToolField::Examples)) {
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

/// Adds `"type": "object"` to the input schema if it is missing. Providers and MCP refuse a schema
/// without it.
fn complete_inputs(tool: &mut Tool, target: EmitTarget, edits: &mut Vec<Edit>) {
    // A Gemini schema that stays one is written as it was spelled.
    let is_spelled = target == EmitTarget::Gemini && tool.format == Format::Gemini;
    if tool.absent.inputs
        || is_spelled
        || !target.requires_name()
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

/// Converts the schema to the draft of the target and names that draft in it.
fn fit_draft(tool: &mut Tool, target: EmitTarget, edits: &mut Vec<Edit>) {
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

/// The Responses API treats a function without `strict` as strict; no other format does.
fn fit_strictness(tool: &mut Tool, target: EmitTarget, edits: &mut Vec<Edit>) {
    if target != EmitTarget::OpenaiResponses
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

/// Drops features that the target's revision of MCP does not have.
fn fit_revision(tool: &mut Tool, target: EmitTarget, edits: &mut Vec<Edit>) {
    let object_results_only = match target {
        EmitTarget::Mcp20251125 => true,
        EmitTarget::Mcp => tool.format != Format::Mcp,
        _ => false,
    };
    let is_object = tool.outputs.get("type").and_then(Value::as_str) == Some("object");
    if object_results_only && !tool.outputs.is_empty() && !is_object {
        let outputs = Value::Object(std::mem::take(&mut tool.outputs));
        let reason = "revision 2025-11-25 allows only schemas of objects";
        edits.push(Edit::loss(
            Pointer::of(["outputs"]),
            outputs,
            LossKind::Metadata,
            reason,
        ));
    }
    if target == EmitTarget::Mcp20260728
        && let Some(keys) = tool.extensions.get_mut(&Format::Mcp)
        && let Some(execution) = keys.shift_remove("execution")
    {
        let path = Pointer::of(["extensions", "mcp", "execution"]);
        let reason = "revision 2026-07-28 moved tasks into an extension";
        edits.push(Edit::loss(path, execution, LossKind::Metadata, reason));
    }
}

/// Rewrites the schemas until they are within what the target accepts.
fn fit_dialect(tool: &mut Tool, target: EmitTarget, edits: &mut Vec<Edit>) {
    let native_gemini = target == EmitTarget::Gemini && tool.format == Format::Gemini;
    let Some(dialect) = target.dialect().filter(|_| !native_gemini) else {
        return;
    };
    if target == EmitTarget::OpenaiStrict && tool.strict != Some(true) {
        enable_strict_mode(tool, edits);
    }
    if !tool.absent.inputs {
        edits.extend(conform(
            &mut tool.inputs,
            &Pointer::of(["inputs"]),
            dialect,
            RewriteMode::AllowLoss,
        ));
    }
    if target == EmitTarget::Gemini && !tool.outputs.is_empty() {
        let place = Pointer::of(["outputs"]);
        let mut made = conform(&mut tool.outputs, &place, dialect, RewriteMode::AllowLoss);
        // Arguments are an object in any case. Results are not: a type takes something away.
        let given_type = made
            .iter_mut()
            .find(|edit| edit.path == place.child("type") && edit.before.is_none());
        if let Some(edit) = given_type {
            edit.kind = EditKind::Loss(LossKind::Semantic);
        }
        edits.extend(made);
    }
}

fn enable_strict_mode(tool: &mut Tool, edits: &mut Vec<Edit>) {
    const REASON: &str = "strict mode is requested";
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
/// name: an unchanged definition takes priority, and lint reports what is wrong with the name.
fn fit_name(tool: &mut Tool, target: EmitTarget, names: &mut NameAllocator, edits: &mut Vec<Edit>) {
    if tool.format == target.format() && target != EmitTarget::OpenaiStrict {
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

fn has_slot(table: FieldTable, test: fn(ToolField) -> bool) -> bool {
    table.iter().any(|field| match field.field {
        ToolField::Nested(inner) => has_slot(inner, test),
        slot => test(slot),
    })
}

fn requires(table: FieldTable, test: fn(ToolField) -> bool) -> bool {
    table.iter().any(|field| match field.field {
        ToolField::Nested(inner) => requires(inner, test),
        slot => field.required && test(slot),
    })
}
