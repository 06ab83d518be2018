//! Calls put together from pieces.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer, type_name};
use toolwarden_model::reply::NotMeasured;

use super::MESSAGE;
use crate::reply::draft::{Draft, check_calls};
use crate::reply::rules;

/// Arguments of so many bytes are more than one token, so a stream has them in several pieces.
const MUCH: usize = 20;

/// The calls of a stream so far, in the order they were begun.
///
/// A piece belongs to the call of its index if it has one, else to that of its id; without either,
/// a name begins a call, and anything else goes on with the last.
#[derive(Debug, Default)]
pub(super) struct Calls {
    begun: Vec<Call>,
    by_index: BTreeMap<u64, usize>,
    by_id: BTreeMap<String, usize>,
}

#[derive(Debug, Default)]
struct Call {
    id: Option<Value>,
    kind: Option<Value>,
    name: Option<Value>,
    arguments: Option<Value>,
    custom: bool,
    /// How many pieces there were.
    pieces: usize,
    /// What was already noted about it, so that each piece does not tell it again.
    noted_id: bool,
    noted_name: bool,
}

/// One piece of a call.
#[derive(Debug, Default)]
pub(super) struct Piece {
    index: Option<u64>,
    id: Option<Value>,
    kind: Option<Value>,
    name: Option<Value>,
    arguments: Option<Value>,
    custom: bool,
}

impl Piece {
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

    /// The id, unless it is none or empty.
    fn id_text(&self) -> Option<String> {
        id_text(self.id.as_ref())
    }
}

impl Calls {
    /// Adds a piece to the call it belongs to.
    pub(super) fn add(&mut self, piece: Piece, draft: &mut Draft<'_>) -> Result<(), NotMeasured> {
        let at = match self.place(&piece, draft) {
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
        if let Some(call) = self.begun.get_mut(at) {
            call.extend(piece, &pointer, draft);
        }
        Ok(())
    }

    /// The calls as a whole message has them.
    pub(super) fn finish(self, draft: &mut Draft<'_>) -> Option<Value> {
        if !self.begun.is_empty() && self.begun.iter().all(Call::is_unstreamed) {
            let message = "each call came in one piece; some providers stream only if asked to";
            draft.note(rules::UNSTREAMED_ARGUMENTS, pointer(0), message);
        }
        let calls: Vec<Value> = self.begun.into_iter().map(Call::finish).collect();
        (!calls.is_empty()).then_some(Value::Array(calls))
    }

    /// The call a piece goes on with; none if it begins one.
    fn place(&self, piece: &Piece, draft: &mut Draft<'_>) -> Option<usize> {
        let last = self.begun.len().checked_sub(1);
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
        let same_id = match (piece.id_text(), self.begun.get(at)) {
            (Some(id), Some(call)) => id_text(call.id.as_ref()).is_none_or(|own| own == id),
            _ => true,
        };
        if same_id && self.fits(at, piece) {
            return Some(at);
        }
        let message = format!("index {index} stands for several calls");
        draft.note(rules::REUSED_INDEX, pointer(at), message);
        let known = piece.id_text().and_then(|id| self.by_id.get(&id).copied());
        known.filter(|at| self.fits(*at, piece))
    }

    /// Whether a piece says no other name than the call has.
    fn fits(&self, at: usize, piece: &Piece) -> bool {
        let own = self.begun.get(at).and_then(|call| call.name.as_ref());
        own.is_none() || piece.name.is_none() || own == piece.name.as_ref()
    }

    fn has_id(&self, at: usize) -> bool {
        let call = self.begun.get(at);
        call.is_some_and(|call| id_text(call.id.as_ref()).is_some())
    }

    fn begin(&mut self, piece: &Piece, draft: &mut Draft<'_>) -> Result<usize, NotMeasured> {
        let at = self.begun.len();
        check_calls(at + 1, draft.limits)?;
        if piece.index.is_none() {
            let message = "a piece of the call has no index";
            draft.note(rules::MISSING_INDEX, pointer(at), message);
        }
        let has_arguments = match &piece.arguments {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(_) => true,
        };
        if piece.name.is_none() && has_arguments {
            let message = "arguments came before the name";
            draft.note(rules::ARGUMENTS_BEFORE_NAME, pointer(at), message);
        }
        self.begun.push(Call::default());
        Ok(at)
    }
}

impl Call {
    /// Whether it came at once, though there was enough to take apart.
    fn is_unstreamed(&self) -> bool {
        let arguments = self.arguments.as_ref().and_then(Value::as_str);
        self.pieces == 1 && arguments.is_some_and(|it| it.len() >= MUCH)
    }

    fn extend(&mut self, piece: Piece, at: &Pointer, draft: &mut Draft<'_>) {
        self.pieces += 1;
        let empty = piece.id.as_ref().is_some_and(|id| id == "");
        if empty && !std::mem::replace(&mut self.noted_id, true) {
            let message = "a piece of the call has an empty id";
            draft.note(rules::EMPTY_ID, at.clone(), message);
        }
        if self.id.is_none() || id_text(self.id.as_ref()).is_none() && !empty {
            self.id = piece.id.or_else(|| self.id.take());
        }
        self.custom |= piece.custom;
        self.kind = self.kind.take().or(piece.kind);
        match (&self.name, piece.name) {
            (None, name) => self.name = name,
            (Some(own), Some(_)) if !std::mem::replace(&mut self.noted_name, true) => {
                let message = format!("the name {own} is said again");
                draft.note(rules::REPEATED_NAME, at.clone(), message);
            }
            _ => {}
        }
        if let Some(more) = piece.arguments {
            self.arguments = Some(match self.arguments.take() {
                None | Some(Value::Null) => more,
                Some(own) => joined(own, more, at, draft),
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

/// Goes on with arguments: texts are appended, objects merged.
fn joined(own: Value, more: Value, at: &Pointer, draft: &mut Draft<'_>) -> Value {
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
            draft.note(rules::MERGED_OBJECTS, at.clone(), message);
            own.extend(more);
            Value::Object(own)
        }
        (own, more) => {
            let message = format!(
                "the arguments are {} and go on with {}",
                type_name(&own),
                type_name(&more)
            );
            draft.malformed(at.clone(), message);
            own
        }
    }
}

/// The text that an id is told by; numbers are taken as written.
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
