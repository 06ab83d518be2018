//! Assembles calls from streamed pieces.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer, type_name};
use toolwarden_model::reply::NotMeasured;

use super::MESSAGE;
use crate::reply::builder::{ReplyBuilder, check_calls};
use crate::reply::note_rules;

/// Arguments of so many bytes are more than one token, so a stream has them in several pieces.
const MIN_STREAMED_BYTES: usize = 20;

/// Assembles streamed tool calls from their deltas, in the order they began.
///
/// A piece belongs to the call of its index if it has one, else to that of its id; without either,
/// a name starts a call, and anything else continues the last one.
#[derive(Debug, Default)]
pub(super) struct CallAssembler {
    calls: Vec<PartialCall>,
    by_index: BTreeMap<u64, usize>,
    by_id: BTreeMap<String, usize>,
}

#[derive(Debug, Default)]
struct PartialCall {
    id: Option<Value>,
    kind: Option<Value>,
    name: Option<Value>,
    arguments: Option<Value>,
    custom: bool,
    /// How many pieces there were.
    pieces: usize,
    /// The notes already made about the call, so that later pieces do not repeat them.
    noted_id: bool,
    noted_name: bool,
}

/// One streamed delta of a call.
#[derive(Debug, Default)]
pub(super) struct CallDelta {
    index: Option<u64>,
    id: Option<Value>,
    kind: Option<Value>,
    name: Option<Value>,
    arguments: Option<Value>,
    custom: bool,
}

impl CallDelta {
    /// The piece that a value of `delta.tool_calls` is.
    pub(super) fn read(value: Value) -> Result<Self, String> {
        let Value::Object(mut members) = value else {
            let found = type_name(&value);
            return Err(format!("a piece of a call is {found}, expected an object"));
        };
        let mut piece = Self {
            index: members.get("index").and_then(Value::as_u64),
            id: members.swap_remove("id").filter(|it| !it.is_null()),
            kind: members.swap_remove("type").filter(|it| !it.is_null()),
            ..Self::default()
        };
        piece.custom = members.contains_key("custom");
        let (body, arguments) = if piece.custom {
            ("custom", "input")
        } else {
            ("function", "arguments")
        };
        match members.swap_remove(body) {
            None | Some(Value::Null) => {}
            Some(Value::Object(mut function)) => {
                let name = function.swap_remove("name");
                piece.name = name.filter(|it| !it.is_null() && it != "");
                piece.arguments = function.swap_remove(arguments);
            }
            Some(other) => {
                let found = type_name(&other);
                return Err(format!("`{body}` is {found}, expected an object"));
            }
        }
        Ok(piece)
    }

    /// The id, unless it is absent or empty.
    fn id_text(&self) -> Option<String> {
        id_text(self.id.as_ref())
    }
}

impl CallAssembler {
    /// Adds a piece to the call it belongs to.
    pub(super) fn add(
        &mut self,
        piece: CallDelta,
        draft: &mut ReplyBuilder<'_>,
    ) -> Result<(), NotMeasured> {
        let at = match self.find_call(&piece, draft) {
            Some(at) => at,
            None => self.begin(&piece, draft)?,
        };
        if let Some(index) = piece.index {
            self.by_index.insert(index, at);
        }
        if let Some(id) = piece.id_text() {
            self.by_id.insert(id, at);
        }
        let pointer = pointer(at);
        if let Some(call) = self.calls.get_mut(at) {
            call.extend(piece, &pointer, draft);
        }
        Ok(())
    }

    /// The calls in the form of a complete message.
    pub(super) fn finish(self, draft: &mut ReplyBuilder<'_>) -> Option<Value> {
        if !self.calls.is_empty() && self.calls.iter().all(PartialCall::is_unstreamed) {
            let message = "each call came in one piece; some providers stream only if asked to";
            draft.note(note_rules::UNSTREAMED_ARGUMENTS, pointer(0), message);
        }
        let calls: Vec<Value> = self.calls.into_iter().map(PartialCall::finish).collect();
        (!calls.is_empty()).then_some(Value::Array(calls))
    }

    /// The call that a piece continues; `None` if it starts a new one.
    fn find_call(&self, piece: &CallDelta, draft: &mut ReplyBuilder<'_>) -> Option<usize> {
        let last = self.calls.len().checked_sub(1);
        let Some(index) = piece.index else {
            if let Some(id) = piece.id_text() {
                let known = self.by_id.get(&id).copied();
                // An id may come later than the name it belongs to.
                let late = || last.filter(|at| piece.name.is_none() && !self.has_id(*at));
                return known.or_else(late).filter(|at| self.fits(*at, piece));
            }
            return last.filter(|_| piece.name.is_none());
        };
        let at = self.by_index.get(&index).copied()?;
        let same_id = match (piece.id_text(), self.calls.get(at)) {
            (Some(id), Some(call)) => id_text(call.id.as_ref()).is_none_or(|own| own == id),
            _ => true,
        };
        if same_id && self.fits(at, piece) {
            return Some(at);
        }
        let message = format!("index {index} stands for several calls");
        draft.note(note_rules::REUSED_INDEX, pointer(at), message);
        let known = piece.id_text().and_then(|id| self.by_id.get(&id).copied());
        known.filter(|at| self.fits(*at, piece))
    }

    /// Whether the name of a piece, if any, does not contradict the name of the call.
    fn fits(&self, at: usize, piece: &CallDelta) -> bool {
        let own = self.calls.get(at).and_then(|call| call.name.as_ref());
        own.is_none() || piece.name.is_none() || own == piece.name.as_ref()
    }

    fn has_id(&self, at: usize) -> bool {
        let call = self.calls.get(at);
        call.is_some_and(|call| id_text(call.id.as_ref()).is_some())
    }

    fn begin(
        &mut self,
        piece: &CallDelta,
        draft: &mut ReplyBuilder<'_>,
    ) -> Result<usize, NotMeasured> {
        let at = self.calls.len();
        check_calls(at + 1, draft.limits)?;
        if piece.index.is_none() {
            let message = "a piece of the call has no index";
            draft.note(note_rules::MISSING_INDEX, pointer(at), message);
        }
        let has_arguments = match &piece.arguments {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(_) => true,
        };
        if piece.name.is_none() && has_arguments {
            let message = "arguments came before the name";
            draft.note(note_rules::ARGUMENTS_BEFORE_NAME, pointer(at), message);
        }
        self.calls.push(PartialCall::default());
        Ok(at)
    }
}

impl PartialCall {
    /// Whether it came at once, though there was enough to take apart.
    fn is_unstreamed(&self) -> bool {
        let arguments = self.arguments.as_ref().and_then(Value::as_str);
        self.pieces == 1 && arguments.is_some_and(|it| it.len() >= MIN_STREAMED_BYTES)
    }

    fn extend(&mut self, piece: CallDelta, at: &Pointer, draft: &mut ReplyBuilder<'_>) {
        self.pieces += 1;
        let empty = piece.id.as_ref().is_some_and(|id| id == "");
        if empty && !std::mem::replace(&mut self.noted_id, true) {
            let message = "a piece of the call has an empty id";
            draft.note(note_rules::EMPTY_ID, at.clone(), message);
        }
        if self.id.is_none() || id_text(self.id.as_ref()).is_none() && !empty {
            self.id = piece.id.or_else(|| self.id.take());
        }
        self.custom |= piece.custom;
        self.kind = self.kind.take().or(piece.kind);
        match (&self.name, piece.name) {
            (None, name) => self.name = name,
            (Some(own), Some(_)) if !std::mem::replace(&mut self.noted_name, true) => {
                let message = format!("the name {own} is repeated");
                draft.note(note_rules::REPEATED_NAME, at.clone(), message);
            }
            _ => {}
        }
        if let Some(more) = piece.arguments {
            self.arguments = Some(match self.arguments.take() {
                None | Some(Value::Null) => more,
                Some(own) => append_arguments(own, more, at, draft),
            });
        }
    }

    fn finish(self) -> Value {
        let mut whole = Object::new();
        let mut body = Object::new();
        let put = |members: &mut Object, key: &str, value: Option<Value>| {
            members.extend(value.map(|value| (key.to_owned(), value)));
        };
        put(&mut whole, "id", self.id);
        put(&mut whole, "type", self.kind);
        put(&mut body, "name", self.name);
        let (key, arguments) = if self.custom {
            ("custom", "input")
        } else {
            ("function", "arguments")
        };
        put(&mut body, arguments, self.arguments);
        whole.insert(key.to_owned(), Value::Object(body));
        Value::Object(whole)
    }
}

/// Appends to the arguments: texts are concatenated, objects merged.
fn append_arguments(own: Value, more: Value, at: &Pointer, draft: &mut ReplyBuilder<'_>) -> Value {
    match (own, more) {
        (own, Value::Null) => own,
        (Value::String(mut own), Value::String(more)) => {
            own.push_str(&more);
            Value::String(own)
        }
        (own, Value::String(more)) if more.is_empty() => own,
        (Value::String(own), more) if own.is_empty() => more,
        (Value::Object(mut own), Value::Object(more)) => {
            let message = "the arguments came as several objects";
            draft.note(note_rules::MERGED_OBJECTS, at.clone(), message);
            own.extend(more);
            Value::Object(own)
        }
        (own, more) => {
            let message = format!(
                "the arguments are {} and go on with {}",
                type_name(&own),
                type_name(&more)
            );
            draft.note_malformed(at.clone(), message);
            own
        }
    }
}

/// The text that identifies an id; numbers are taken as written.
fn id_text(id: Option<&Value>) -> Option<String> {
    match id? {
        Value::Null => None,
        Value::String(text) => (!text.is_empty()).then(|| text.clone()),
        other => Some(json!(other).to_string()),
    }
}

fn pointer(at: usize) -> Pointer {
    Pointer::from(MESSAGE).child("tool_calls").index(at)
}
