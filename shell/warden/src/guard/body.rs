//! The body of a record, written straight as canonical JSON: two are made of every call.

use serde_json::Value;
use toolwarden_guard::{Fault, Redaction};
use toolwarden_model::json::write_canonical;

use super::record_size::{RecordSize, digest};

/// An object whose members are added in the order of their names.
#[derive(Debug)]
pub(super) struct Body {
    text: String,
    last: &'static str,
    size: RecordSize,
}

impl Body {
    pub(super) fn new(size: RecordSize) -> Self {
        Self {
            text: String::from("{"),
            last: "",
            size,
        }
    }

    /// A part of the record; a digest where it is long.
    pub(super) fn value(&mut self, name: &'static str, value: &Value) {
        self.bounded(name, value, self.size.part());
    }

    /// The arguments, for which there is more room.
    pub(super) fn arguments(&mut self, value: &Value) {
        self.bounded("arguments", value, self.size.arguments());
    }

    fn bounded(&mut self, name: &'static str, value: &Value, most: usize) {
        self.name(name);
        let start = self.text.len();
        write_canonical(&mut self.text, value);
        let written = self.text.get(start..).unwrap_or_default();
        if written.len() > most {
            let digest = digest(written);
            self.text.truncate(start);
            self.text.shrink_to(start + most);
            write_canonical(&mut self.text, &digest);
        }
    }

    /// A text that needs no escapes.
    pub(super) fn plain(&mut self, name: &'static str, text: &str) {
        debug_assert!(
            text.bytes()
                .all(|it| it >= b' ' && it != b'"' && it != b'\\')
        );
        self.name(name);
        self.text.push('"');
        self.text.push_str(text);
        self.text.push('"');
    }

    /// Which places of a value are not as they should be.
    pub(super) fn faults(&mut self, faults: &[Fault], redaction: &Redaction) {
        if faults.is_empty() {
            return;
        }
        let places = faults.iter().map(|fault| {
            let (place, _) = redaction.kept_place(&fault.pointer);
            Value::from(place.as_str())
        });
        self.value("pointers", &places.collect());
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push('}');
        self.text
    }

    fn name(&mut self, name: &'static str) {
        debug_assert!(self.last < name, "{name} comes before {}", self.last);
        self.text.push_str(match self.last {
            "" => "\"",
            _ => ",\"",
        });
        self.text.push_str(name);
        self.text.push_str("\":");
        self.last = name;
    }
}
