//! OpenAI's library for Python, `client.chat.completions.stream(…)`.

use serde_json::{Map, Number, Value, json};

use super::events::{IdMemory, openai_chunks};
use super::openai_python::hand_message;
use super::python_object::{attribute, is_truthy, items, object};
use super::{ClientResult, HandedReply, HttpReply, raise, set_member};

/// `stream.get_final_completion()`.
pub(super) fn stream(reply: HttpReply<'_>) -> ClientResult<HandedReply> {
    let mut snapshot: Option<Vec<ChoiceSnapshot>> = None;
    for chunk in openai_chunks(reply, IdMemory::Kept, "JSONDecodeError")? {
        if attribute(&chunk, "object")? != "chat.completion.chunk" {
            continue;
        }
        let choices = match snapshot.take() {
            None => begin(&chunk)?,
            Some(choices) => accumulate(choices, &chunk)?,
        };
        check_events(&choices, &chunk)?;
        snapshot = Some(choices);
    }
    let Some(choices) = snapshot else {
        return raise("AssertionError", "the stream has no chunk of a completion");
    };
    for choice in &choices {
        match choice.finish.as_deref() {
            Some("length") => {
                return raise("LengthFinishReasonError", "the reply ran out of tokens");
            }
            Some("content_filter") => {
                return raise("ContentFilterFinishReasonError", "the reply was filtered");
            }
            _ => {}
        }
    }
    let Some(choice) = choices.first() else {
        return raise("IndexError", "`choices` is empty");
    };
    hand_message(&choice.message)
}

/// What was assembled of one choice.
struct ChoiceSnapshot {
    message: Value,
    finish: Option<String>,
}

/// The first chunk becomes the snapshot.
fn begin(chunk: &Value) -> ClientResult<Vec<ChoiceSnapshot>> {
    let Some(choices) = chunk.get("choices") else {
        return raise("KeyError", "the first chunk has no `choices`");
    };
    let choices = items(choices, "choices")?;
    let mut snapshots = Vec::new();
    for choice in &choices {
        let delta = object(attribute(choice, "delta")?, "delta")?;
        let message = accumulate_delta(Map::new(), &with_indexes(delta))?;
        match position(attribute(choice, "index")?, choices.len())? {
            Some(_) => snapshots.push(ChoiceSnapshot {
                message: Value::Object(message),
                finish: finish(choice),
            }),
            None => return raise("IndexError", "a choice has an index outside of its chunk"),
        }
    }
    Ok(snapshots)
}

fn accumulate(
    mut snapshots: Vec<ChoiceSnapshot>,
    chunk: &Value,
) -> ClientResult<Vec<ChoiceSnapshot>> {
    for choice in items(attribute(chunk, "choices")?, "choices")? {
        let at = position(attribute(&choice, "index")?, snapshots.len())?;
        let delta = with_indexes(object(attribute(&choice, "delta")?, "delta")?);
        let at = match at.and_then(|at| Some((at, snapshots.get_mut(at)?))) {
            Some((at, snapshot)) => {
                let before: Vec<bool> = calls(&snapshot.message).iter().map(is_function).collect();
                let message = std::mem::take(&mut snapshot.message);
                let members = match message {
                    Value::Object(members) => members,
                    _ => Map::new(),
                };
                let message = Value::Object(accumulate_delta(members, &delta)?);
                check_types(&before, calls(&message))?;
                snapshot.message = message;
                at
            }
            None => {
                let message = Value::Object(accumulate_delta(Map::new(), &delta)?);
                snapshots.push(ChoiceSnapshot {
                    message,
                    finish: None,
                });
                snapshots.len() - 1
            }
        };
        let Some(snapshot) = snapshots.get_mut(at) else {
            continue;
        };
        if let Some(word) = finish(&choice) {
            snapshot.finish = Some(word);
        }
        check_pieces(&snapshot.message, &delta)?;
    }
    Ok(snapshots)
}

fn finish(choice: &Value) -> Option<String> {
    let word = choice.get("finish_reason").and_then(Value::as_str);
    word.filter(|it| !it.is_empty()).map(str::to_owned)
}

fn calls(message: &Value) -> &[Value] {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    calls.map(Vec::as_slice).unwrap_or_default()
}

fn is_function(call: &Value) -> bool {
    call.get("type").and_then(Value::as_str) == Some("function")
}

/// A call that was a function must remain one.
fn check_types(before: &[bool], now: &[Value]) -> ClientResult<()> {
    for (was_function, now) in before.iter().zip(now) {
        if *was_function && !is_function(now) {
            return raise("AssertionError", "a later piece changes the type of a call");
        }
    }
    Ok(())
}

/// The client looks up the call of every piece by its index.
fn check_pieces(message: &Value, delta: &Map<String, Value>) -> ClientResult<()> {
    let Some(pieces) = delta.get("tool_calls").filter(|it| is_truthy(it)) else {
        return Ok(());
    };
    let all = message.get("tool_calls").unwrap_or(&Value::Null);
    for piece in items(pieces, "tool_calls")? {
        if piece.is_string() {
            // `index` is a method of texts, which is neither an index nor a key.
            return match all {
                Value::Object(_) => raise("KeyError", "`tool_calls` is an object"),
                _ => raise("TypeError", "a piece of a call is a text"),
            };
        }
        let index = attribute(&piece, "index")?;
        let all = all.as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(at) = position(index, all.len())? else {
            return raise("IndexError", "the index of a call skips a number");
        };
        let call = all.get(at).unwrap_or(&Value::Null);
        if is_function(call) {
            attribute(attribute(call, "function")?, "name")?;
        }
    }
    Ok(())
}

/// The events that the client emits for a chunk access the same members again.
fn check_events(snapshots: &[ChoiceSnapshot], chunk: &Value) -> ClientResult<()> {
    for choice in items(attribute(chunk, "choices")?, "choices")? {
        let Some(at) = position(attribute(&choice, "index")?, snapshots.len())? else {
            return raise("IndexError", "a choice has an index that skips a number");
        };
        let Some(snapshot) = snapshots.get(at) else {
            continue;
        };
        let delta = with_indexes(object(attribute(&choice, "delta")?, "delta")?);
        check_pieces(&snapshot.message, &delta)?;
        let all = calls(&snapshot.message);
        let pieces = delta.get("tool_calls").and_then(Value::as_array);
        for piece in pieces.into_iter().flatten() {
            let index = piece.get("index").unwrap_or(&Value::Null);
            let call = position(index, all.len())?.and_then(|at| all.get(at));
            let without = piece.get("function").is_none_or(Value::is_null);
            if call.is_some_and(is_function) && without {
                return raise("AssertionError", "a piece of a call has no `function`");
            }
        }
    }
    Ok(())
}

/// `list[index]`: where it points to in a list of this length, `None` if it is outside.
fn position(index: &Value, length: usize) -> ClientResult<Option<usize>> {
    let Some(index) = index.as_i64() else {
        return raise("TypeError", "an index is missing or is not an integer");
    };
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let at = if index < 0 { index + length } else { index };
    Ok(usize::try_from(at).ok().filter(|_| at < length))
}

/// The delta as the client's types read it: indexes that are texts become numbers, if all else is valid.
fn with_indexes(delta: &Map<String, Value>) -> Map<String, Value> {
    let mut delta = delta.clone();
    let Some(Value::Array(pieces)) = delta.get_mut("tool_calls") else {
        return delta;
    };
    if pieces.iter().all(is_valid_piece) {
        for piece in pieces {
            let index = piece.get("index").and_then(Value::as_str);
            if let Some(number) = index.and_then(|it| it.trim().parse::<i64>().ok()) {
                set_member(piece, "index", json!(number));
            }
        }
    }
    delta
}

fn is_valid_piece(piece: &Value) -> bool {
    let optional = |value: Option<&Value>| value.is_none_or(|it| it.is_null() || it.is_string());
    let index = piece.get("index").is_some_and(|it| {
        it.is_i64()
            || it
                .as_str()
                .is_some_and(|it| it.trim().parse::<i64>().is_ok())
    });
    let kind = piece
        .get("type")
        .is_none_or(|it| it.is_null() || it == "function");
    let function = piece.get("function").is_none_or(|it| {
        it.is_null() || it.is_object() && optional(it.get("name")) && optional(it.get("arguments"))
    });
    index && kind && function && optional(piece.get("id"))
}

/// `accumulate_delta`: joins texts, adds numbers, merges objects, and merges lists by `index`.
fn accumulate_delta(
    mut all: Map<String, Value>,
    delta: &Map<String, Value>,
) -> ClientResult<Map<String, Value>> {
    for (key, new) in delta {
        let known = all.get(key).filter(|it| !it.is_null());
        if known.is_none() {
            if has_indexed_entries(new) {
                all.insert(key.clone(), json!([]));
            } else {
                all.insert(key.clone(), new.clone());
                continue;
            }
        }
        if key == "index" || key == "type" {
            all.insert(key.clone(), new.clone());
            continue;
        }
        let old = all.get_mut(key).map(Value::take).unwrap_or_default();
        let joined = match (old, new) {
            (Value::String(old), Value::String(new)) => Value::String(old + new),
            (Value::Number(old), Value::Number(new)) => add(&old, new),
            (Value::Object(old), Value::Object(new)) => Value::Object(accumulate_delta(old, new)?),
            (Value::Array(old), Value::Array(new)) => Value::Array(accumulate_list(old, new)?),
            (old, _) => old,
        };
        all.insert(key.clone(), joined);
    }
    Ok(all)
}

fn accumulate_list(mut all: Vec<Value>, delta: &[Value]) -> ClientResult<Vec<Value>> {
    let plain = all
        .iter()
        .all(|it| it.is_string() || it.is_number() || it.is_boolean());
    if plain && (!all.is_empty() || !delta.iter().any(is_indexed)) {
        all.extend(delta.iter().cloned());
        return Ok(all);
    }
    for entry in delta {
        let Value::Object(members) = entry else {
            return raise("TypeError", "an entry of a list is not an object");
        };
        let Some(index) = members.get("index") else {
            return raise("RuntimeError", "an entry of a list has no `index`");
        };
        match position(index, all.len())? {
            None => all.push(entry.clone()),
            Some(at) => match all.get_mut(at).map(Value::take) {
                Some(Value::Object(old)) => {
                    let joined = Value::Object(accumulate_delta(old, members)?);
                    if let Some(slot) = all.get_mut(at) {
                        *slot = joined;
                    }
                }
                _ => return raise("TypeError", "an entry of a list is not an object"),
            },
        }
    }
    Ok(all)
}

fn has_indexed_entries(value: &Value) -> bool {
    value.as_array().is_some_and(|it| it.iter().any(is_indexed))
}

fn is_indexed(entry: &Value) -> bool {
    entry.get("index").is_some()
}

fn add(old: &Number, new: &Number) -> Value {
    match (old.as_i64(), new.as_i64()) {
        (Some(old), Some(new)) => json!(old.saturating_add(new)),
        _ => json!(old.as_f64().unwrap_or_default() + new.as_f64().unwrap_or_default()),
    }
}
