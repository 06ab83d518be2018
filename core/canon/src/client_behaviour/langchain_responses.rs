//! LangChain's integration of OpenAI, the Responses API.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::events::{IdMemory, openai_chunks};
use super::langchain::{CallChunk, ChunkSum, checked_call};
use super::partial_json::loads;
use super::python_object::{attribute, document, is_truthy, items};
use super::{ClientResult, HandedReply, HttpReply, raise};

/// `ChatOpenAI(use_responses_api=True, …).invoke(…)`.
pub(super) fn whole(reply: HttpReply<'_>) -> ClientResult<HandedReply> {
    hand(&document(reply)?)
}

fn hand(response: &Value) -> ClientResult<HandedReply> {
    if is_truthy(attribute(response, "error")?) {
        return raise("ValueError", "the response is an error");
    }
    let mut calls = Vec::new();
    let mut text = String::new();
    let mut rejected = None;
    for item in items(attribute(response, "output")?, "output")? {
        match attribute(&item, "type")?.as_str() {
            Some("message") => {
                for part in items(attribute(&item, "content")?, "content")? {
                    if attribute(&part, "type")? == "output_text" {
                        text.push_str(attribute(&part, "text")?.as_str().unwrap_or_default());
                    }
                }
            }
            Some("function_call") => {
                let Some(sent) = attribute(&item, "arguments")?.as_str() else {
                    return raise("TypeError", "arguments are not a text");
                };
                // What does not parse becomes an invalid call, which is not among the calls.
                if let Some(arguments) = loads(sent) {
                    let id = attribute(&item, "call_id")?.clone();
                    let name = attribute(&item, "name")?.clone();
                    match checked_call(id, name, arguments) {
                        Ok(call) => calls.push(call),
                        // The message is validated after all items were read.
                        Err(error) => rejected = Some(error),
                    }
                }
            }
            _ => {}
        }
    }
    match rejected {
        Some(error) => Err(error),
        None => Ok(HandedReply {
            calls,
            text: Value::String(text),
        }),
    }
}

/// Counts the parts of the content, as the client does: by output item, and by part within one.
#[derive(Default)]
struct PartIndex {
    current: i64,
    output: Option<Value>,
    part: Option<Value>,
    /// The first index that was seen for each item.
    items: BTreeMap<String, Value>,
}

impl PartIndex {
    fn advance(&mut self, event: &Value, part: Option<&Value>) -> Value {
        let item = item_id(event);
        let index = event.get("output_index").cloned().unwrap_or_default();
        let index = item
            .and_then(|it| self.items.get(&it).cloned())
            .unwrap_or(index);
        let is_other_item = self.output.as_ref() != Some(&index);
        let is_other_part = part.is_some() && self.part.as_ref() != part;
        if is_other_item || is_other_part {
            self.current += 1;
        }
        if let Some(part) = part {
            self.part = Some(part.clone());
        }
        self.output = Some(index);
        json!(self.current)
    }
}

fn item_id(event: &Value) -> Option<String> {
    let of_item = event.get("item").and_then(|it| it.get("id"));
    let of_item = of_item.filter(|it| is_truthy(it));
    let id = of_item.or(event.get("item_id")).filter(|it| !it.is_null());
    id.map(Value::to_string)
}

/// The sum of `ChatOpenAI(use_responses_api=True, …).stream(…)`.
pub(super) fn stream(reply: HttpReply<'_>) -> ClientResult<HandedReply> {
    let mut sum = ChunkSum::default();
    let mut index = PartIndex::default();
    let null = Value::Null;
    for event in openai_chunks(reply, IdMemory::Kept, "JSONDecodeError")? {
        let kind = attribute(&event, "type")?.as_str().unwrap_or_default();
        if let Some(item) = item_id(&event)
            && let Some(at) = event.get("output_index").filter(|it| !it.is_null())
        {
            index.items.entry(item).or_insert_with(|| at.clone());
        }
        match kind {
            "response.created" => {
                attribute(attribute(&event, "response")?, "id")?;
                sum.add(Vec::new(), "")?;
            }
            "response.output_text.delta" => {
                let part = event.get("content_index").unwrap_or(&null);
                index.advance(&event, Some(part));
                let Some(text) = attribute(&event, "delta")?.as_str() else {
                    return raise("ValidationError", "a piece of text is not a text");
                };
                sum.add(Vec::new(), text)?;
            }
            "response.failed" | "error" => return raise("ValueError", "the response failed"),
            "response.completed" | "response.incomplete" => {
                hand(attribute(&event, "response")?)?;
                sum.add(Vec::new(), "")?;
            }
            "response.output_item.added" => {
                let item = attribute(&event, "item")?;
                if attribute(item, "type")? == "function_call" {
                    let at = index.advance(&event, None);
                    let member = |key: &str| item.get(key).cloned().unwrap_or_default();
                    let call = CallChunk {
                        name: member("name"),
                        args: member("arguments"),
                        id: member("call_id"),
                        index: at,
                    };
                    sum.add(vec![call], "")?;
                }
            }
            "response.function_call_arguments.delta" => {
                let at = index.advance(&event, None);
                let call = CallChunk {
                    args: attribute(&event, "delta")?.clone(),
                    index: at,
                    ..CallChunk::default()
                };
                sum.add(vec![call], "")?;
            }
            _ => {}
        }
    }
    sum.hand()
}
