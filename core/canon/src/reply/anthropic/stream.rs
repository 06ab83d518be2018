use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::json::{self, Object, Pointer};
use toolwarden_model::reply::{NotMeasured, TrialFailure};

use crate::reply::body::{ReplyEvents, not_measured};
use crate::reply::builder::{ReplyBuilder, check_calls};
use crate::reply::note_rules;

/// Assembles the events of a stream into one message.
pub(crate) fn assemble(
    mut events: ReplyEvents<'_>,
    draft: &mut ReplyBuilder<'_>,
) -> Result<Value, NotMeasured> {
    let mut stream = Stream::default();
    while let Some((name, event)) = events.next_named()? {
        if stream.stopped {
            let message = "events follow `message_stop`";
            draft.note(note_rules::EVENTS_AFTER_DONE, Pointer::root(), message);
            break;
        }
        stream.add(&name, event, draft)?;
    }
    events.note_end(draft);
    stream.finish(draft)
}

#[derive(Debug, Default)]
struct Stream {
    message: Option<Object>,
    blocks: Vec<Block>,
    by_index: BTreeMap<u64, usize>,
    usage: Object,
    finish: Option<Value>,
    stopped: bool,
}

#[derive(Debug)]
struct Block {
    members: Object,
    /// The pieces of the arguments.
    json: String,
    closed: bool,
}

impl Stream {
    fn add(
        &mut self,
        name: &str,
        mut event: Object,
        draft: &mut ReplyBuilder<'_>,
    ) -> Result<(), NotMeasured> {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or(name);
        match kind.to_owned().as_str() {
            "message_start" => {
                if let Some(Value::Object(mut message)) = event.swap_remove("message") {
                    self.take_usage(message.swap_remove("usage"));
                    self.message = Some(message);
                }
            }
            "content_block_start" => {
                check_calls(self.blocks.len() + 1, draft.limits)?;
                let members = match event.swap_remove("content_block") {
                    Some(Value::Object(members)) => members,
                    _ => Object::new(),
                };
                let index = event.get("index").and_then(Value::as_u64);
                match index {
                    Some(index) => {
                        self.by_index.insert(index, self.blocks.len());
                    }
                    None => {
                        let at = Pointer::from("/content").index(self.blocks.len());
                        draft.note(note_rules::MISSING_INDEX, at, "a block has no index");
                    }
                }
                self.blocks.push(Block {
                    members,
                    json: String::new(),
                    closed: false,
                });
            }
            "content_block_delta" => {
                let delta = event.swap_remove("delta");
                match (self.block(&event), delta) {
                    (Some(block), Some(Value::Object(delta))) => block.extend(&delta),
                    _ => {
                        let message = "a delta belongs to no block that was started";
                        draft.note(note_rules::ORPHAN_DELTA, Pointer::from("/content"), message);
                    }
                }
            }
            "content_block_stop" => {
                if let Some(block) = self.block(&event) {
                    block.closed = true;
                }
            }
            "message_delta" => {
                let reason = event.get("delta").and_then(|it| it.get("stop_reason"));
                if let Some(reason) = reason.filter(|it| !it.is_null()) {
                    self.finish = Some(reason.clone());
                }
                self.take_usage(event.swap_remove("usage"));
            }
            "message_stop" => self.stopped = true,
            // Pings, and event types of future versions.
            _ => {}
        }
        Ok(())
    }

    /// The block an event is about: by its index, or the last.
    fn block(&mut self, event: &Object) -> Option<&mut Block> {
        match event.get("index").and_then(Value::as_u64) {
            Some(index) => self.blocks.get_mut(*self.by_index.get(&index)?),
            None => self.blocks.last_mut(),
        }
    }

    /// Later events repeat the usage, or report only what changed.
    fn take_usage(&mut self, usage: Option<Value>) {
        if let Some(Value::Object(usage)) = usage {
            self.usage
                .extend(usage.into_iter().filter(|(_, value)| !value.is_null()));
        }
    }

    fn finish(self, draft: &mut ReplyBuilder<'_>) -> Result<Value, NotMeasured> {
        let own = |key: &str| {
            let value = self.message.as_ref()?.get(key)?;
            (!value.is_null()).then(|| value.clone())
        };
        let finish = self.finish.clone().or_else(|| own("stop_reason"));
        if !self.stopped && finish.is_none() {
            let detail = "the stream ends without a stop reason or `message_stop`";
            return Err(not_measured(TrialFailure::Truncated, detail));
        }
        if self.message.is_none() && self.blocks.is_empty() {
            let detail = "the stream has no message";
            return Err(not_measured(TrialFailure::Empty, detail));
        }
        if !self.stopped {
            let message = "the stream ends without `message_stop`";
            draft.note(note_rules::MISSING_DONE, Pointer::root(), message);
        }
        let mut whole = self.message.unwrap_or_default();
        let blocks = self.blocks.into_iter().enumerate();
        let blocks =
            blocks.map(|(at, block)| block.finish(&Pointer::from("/content").index(at), draft));
        whole.insert("content".to_owned(), blocks.collect());
        whole.insert("stop_reason".to_owned(), finish.unwrap_or_default());
        whole.insert("usage".to_owned(), Value::Object(self.usage));
        Ok(Value::Object(whole))
    }
}

impl Block {
    fn extend(&mut self, delta: &Object) {
        let text = |key: &str| delta.get(key).and_then(Value::as_str);
        if let Some(piece) = text("partial_json") {
            self.json.push_str(piece);
        }
        for key in ["text", "thinking"] {
            let Some(piece) = text(key) else { continue };
            match self.members.get_mut(key) {
                Some(Value::String(own)) => own.push_str(piece),
                _ => {
                    self.members.insert(key.to_owned(), Value::from(piece));
                }
            }
        }
    }

    fn finish(mut self, at: &Pointer, draft: &mut ReplyBuilder<'_>) -> Value {
        if !self.closed {
            draft.note(
                note_rules::UNCLOSED_BLOCK,
                at.clone(),
                "the block was never closed",
            );
        }
        if !self.json.trim().is_empty() {
            let input = match json::parse(&self.json) {
                Ok(parsed) => parsed.value,
                Err(error) => {
                    let message = format!("the pieces of the arguments are not JSON: {error}");
                    draft.note(note_rules::INVALID_PARTIAL_JSON, at.child("input"), message);
                    Value::String(self.json)
                }
            };
            self.members.insert("input".to_owned(), input);
        }
        Value::Object(self.members)
    }
}
