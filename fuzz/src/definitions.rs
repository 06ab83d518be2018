//! Tool definitions, canonical tools, calls and results.

use toolwarden_canon::{
    CanonicalizedTool, EmitTarget, FormatChoice, canonicalize_item, emit, emit_native, split,
};
use toolwarden_drift::RecordedCall;
use toolwarden_drift::shape::{Shape, ValueKey};
use toolwarden_drift::text::{find_invisible, is_unprintable, printable, scan};
use toolwarden_model::json::{Value, parse};
use toolwarden_model::{Format, Tool};

use crate::{assert_inside, parsed, text};

/// A tool that is written in its own format is the definition it was read from. In any other format, the edits
/// account for every difference.
pub fn tool_definitions(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    let items = match split(text) {
        Ok(items) => items,
        Err(error) => return assert_inside(text, error.position, &error),
    };
    for item in items.iter().take(20) {
        let Ok(document) = canonicalize_item(item, FormatChoice::Detect) else {
            continue;
        };
        for found in document.tools.iter().take(20) {
            check_tool(found, item.text.contains("original_definition"));
        }
    }
}

fn check_tool(found: &CanonicalizedTool, is_canonical: bool) {
    let CanonicalizedTool { tool, .. } = found;
    if found.warnings.iter().any(|warning| warning.is_error()) {
        return;
    }
    let written = emit_native(tool.clone()).value.to_string();
    // A canonical tool names the definition it was made from, which may be any.
    // An operation is a part of its document, and is not written back as one.
    if let Some(definition) = &tool.definition
        && !is_canonical
        && tool.format != Format::Openapi
    {
        assert_eq!(written, definition.value().to_string());
    }
    if !is_canonical && let Some(again) = check_document(tool) {
        let again = Tool {
            definition: None,
            ..again
        };
        assert_eq!(emit_native(again).value.to_string(), written);
    }
    for (target, _) in EmitTarget::ALL {
        let Ok(emission) = emit(tool.clone(), *target) else {
            continue;
        };
        let mut contract = tool.contract();
        for edit in &emission.edits {
            assert!(
                edit.apply(&mut contract),
                "{target}: {edit:?} does not fit {contract}"
            );
        }
    }
}

/// A canonical tool that is written and read is the same.
pub fn tool_document(data: &[u8]) {
    let Some(parsed) = parsed(data) else {
        return;
    };
    match Tool::from_document(parsed.value) {
        Ok(tool) => drop(check_document(&tool)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Asserts that a tool is the same after it is written and read, and returns it.
fn check_document(tool: &Tool) -> Option<Tool> {
    let written = serde_json::to_string(tool).unwrap_or_default();
    let document = parse(&written).map(|parsed| parsed.value);
    // A definition at the limit of nesting is below it inside of a document.
    let again = Tool::from_document(document.ok()?);
    assert!(again.is_ok(), "{again:?}: {written}");
    let again = again.ok()?;
    assert_eq!(serde_json::to_string(&again).unwrap_or_default(), written);
    assert_eq!(again.fingerprint(), tool.fingerprint());
    Some(again)
}

/// Messages about text print on a terminal, and every character is judged.
pub fn text_scan(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    let definition = match parse(text) {
        Ok(parsed) => parsed.value,
        // Any text can be a description.
        Err(_not_json) => serde_json::json!({"name": "t", "description": text}),
    };
    for finding in scan(&definition) {
        let shown = finding.decoded.as_deref().unwrap_or_default();
        for text in [finding.message.as_str(), shown] {
            let hidden = text.chars().find(|c| is_unprintable(*c));
            assert_eq!(hidden, None, "{text:?}");
        }
    }
    let shown = printable(text);
    let hidden = shown.chars().find(|c| is_unprintable(*c));
    assert_eq!(hidden, None, "{shown:?}");
    let chars: Vec<char> = text.chars().collect();
    assert_eq!(find_invisible(&chars).len(), chars.len());
}

/// The arguments of a call in a log are a value that validators take.
pub fn recorded_call(data: &[u8]) {
    let Some(parsed) = parsed(data) else {
        return;
    };
    if let Ok(call) = RecordedCall::read(&parsed.value) {
        let mut record = serde_json::json!({"arguments": call.arguments});
        if let (Some(tool), Some(members)) = (&call.tool, record.as_object_mut()) {
            members.insert("tool".to_owned(), Value::from(tool.as_str()));
        }
        // Text in place of arguments may hold any JSON; Toolwarden itself writes objects.
        if call.arguments.is_object() {
            assert_eq!(RecordedCall::read(&record), Ok(call));
        }
    }
}

/// A stored shape that is read and written is the same, and observing a result keeps it storable.
pub fn result_shape(data: &[u8]) {
    let Some(parsed) = parsed(data) else {
        return;
    };
    if let Ok(shape) = Shape::from_json(&parsed.value) {
        assert_shape_returns(&shape);
    }
    let key = ValueKey::new([7; 16]);
    let mut shape = Shape::new(key.id());
    shape.observe(&parsed.value, &key);
    assert_shape_returns(&shape);
    shape.observe(&Value::Null, &key);
    assert_shape_returns(&shape);
}

fn assert_shape_returns(shape: &Shape) {
    let written = shape.to_json();
    let again = Shape::from_json(&written);
    assert!(again.is_ok(), "{again:?}: {written}");
    if let Ok(again) = again {
        assert_eq!(again.to_json().to_string(), written.to_string());
    }
}
