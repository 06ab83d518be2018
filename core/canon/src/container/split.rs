use serde_json::value::RawValue;
use toolwarden_model::json::{JsonError, Pointer, Position, RawObject};

/// A span of text that holds one definition, or one document that must be split further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextItem<'t> {
    /// The place of the item in its document.
    pub pointer: Pointer,
    /// The item's own text.
    pub text: &'t str,
}

/// Splits a text into items without building values, so that a long list is never in memory as a
/// whole. Takes one JSON document or several in a row, as in JSON Lines.
///
/// # Errors
/// Says where and why the text is not JSON.
pub fn split(text: &str) -> Result<Vec<TextItem<'_>>, JsonError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut items = Vec::new();
    let documents = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    for document in documents {
        let document = document.map_err(|error| JsonError::from_serde(&error))?;
        split_document(document.get(), &Pointer::root(), &mut items);
    }
    if items.is_empty() && text.trim().is_empty() {
        let kind = toolwarden_model::json::JsonErrorKind::Truncated;
        return Err(JsonError {
            position: Position::after(text),
            kind,
        });
    }
    Ok(items)
}

fn split_document<'t>(text: &'t str, at: &Pointer, items: &mut Vec<TextItem<'t>>) {
    if text.starts_with('[')
        && let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(text)
    {
        items.extend(
            elements
                .into_iter()
                .enumerate()
                .map(|(index, element)| TextItem {
                    pointer: at.index(index),
                    text: element.get(),
                }),
        );
        return;
    }
    if let Some((key, list)) = tool_list(text) {
        split_document(list, &at.child(key), items);
        return;
    }
    items.push(TextItem {
        pointer: at.clone(),
        text,
    });
}

/// The list of an object that is nothing but a list of tools and facts about it.
///
/// Anything more complex (request bodies, namespaces, several lists) is split as a value later.
fn tool_list(text: &str) -> Option<(&'static str, &str)> {
    if !text.starts_with('{') {
        return None;
    }
    let members: RawObject<'_> = serde_json::from_str(text).ok()?;
    // Duplicate keys are reported when the object is split as a value.
    if members.duplicate_key().is_some() {
        return None;
    }
    let get = |key: &str| members.received(key);
    let unclear = [
        "messages",
        "toolConfig",
        "functions",
        "type",
        "skills",
        "jsonrpc",
        // A second list, which must not be overlooked.
        "result",
        "paths",
        "functionDeclarations",
        "function_declarations",
    ];
    // A definition may have a list beside its schema, and is read together with it.
    let schemas = ["inputSchema", "input_schema", "parameters", "args_schema"];
    let is_definition = get("name").is_some() && schemas.iter().any(|key| get(key).is_some());
    if is_definition || unclear.iter().any(|key| get(key).is_some()) {
        return None;
    }
    get("tools")
        .filter(|tools| tools.starts_with('['))
        .map(|tools| ("tools", tools))
}
