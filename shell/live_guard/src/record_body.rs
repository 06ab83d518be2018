//! The body of a record, written directly as canonical JSON, because every call makes two.

use serde_json::Value;
use toolwarden_guard::{Redaction, ValueFault};
use toolwarden_model::json::write_canonical;

use super::record_size::{RecordSize, digest};

/// An object whose members must be added in the order of their names.
#[derive(Debug)]
pub(super) struct RecordBody {
    text: String,
    last: &'static str,
    size: RecordSize,
}

impl RecordBody {
    pub(super) fn new(size: RecordSize) -> Self {
        Self {
            text: String::from("{"),
            last: "",
            size,
        }
    }

    /// A member of the record; its digest if it is long.
    pub(super) fn add_value(&mut self, name: &'static str, value: &Value) {
        self.add_bounded(name, value, self.size.part());
    }

    /// The arguments, which have a higher size limit.
    pub(super) fn add_arguments(&mut self, value: &Value) {
        self.add_bounded("arguments", value, self.size.arguments());
    }

    fn add_bounded(&mut self, name: &'static str, value: &Value, most: usize) {
        self.begin_member(name);
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
    pub(super) fn add_plain(&mut self, name: &'static str, text: &str) {
        debug_assert!(
            text.bytes()
                .all(|it| it >= b' ' && it != b'"' && it != b'\\')
        );
        self.begin_member(name);
        self.text.push('"');
        self.text.push_str(text);
        self.text.push('"');
    }

    /// The invalid places of a value.
    pub(super) fn add_faults(&mut self, faults: &[ValueFault], redaction: &Redaction) {
        if faults.is_empty() {
            return;
        }
        let places = faults.iter().map(|fault| {
            let (place, _) = redaction.redact_pointer(&fault.pointer);
            Value::from(place.as_str())
        });
        self.add_value("pointers", &places.collect());
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push('}');
        self.text
    }

    fn begin_member(&mut self, name: &'static str) {
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
