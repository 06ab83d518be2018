use toolwarden_model::json::{Pointer, Value};

/// The role of a string in its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StringRole {
    /// A string value.
    Text,
    /// The key of any object but a map of properties.
    Key,
    /// The name of a property in a schema.
    Property,
}

/// Visits every string and every key in document order, with its pointer.
///
/// Uses its own stack, so that deep nesting cannot exhaust the stack of the thread.
pub(super) fn for_each_string(definition: &Value, mut see: impl FnMut(&Pointer, &str, StringRole)) {
    let mut pointer = Pointer::root();
    let mut stack = vec![Step::Enter(Segment::Root, definition, KeyKind::Plain)];
    while let Some(step) = stack.pop() {
        let Step::Enter(segment, value, kind) = step else {
            pointer.pop();
            continue;
        };
        match segment {
            Segment::Root => {}
            Segment::Index(index) => pointer.push(&index.to_string()),
            Segment::Key(key, role) => {
                pointer.push(key);
                see(&pointer, key, role);
            }
        }
        if segment != Segment::Root {
            stack.push(Step::Leave);
        }
        match value {
            Value::String(text) => see(&pointer, text, StringRole::Text),
            Value::Array(items) => {
                let items = items.iter().enumerate().rev();
                stack.extend(
                    items.map(|(index, item)| {
                        Step::Enter(Segment::Index(index), item, kind.of_item())
                    }),
                );
            }
            Value::Object(members) => stack.extend(members.iter().rev().map(|(key, value)| {
                let role = match kind {
                    KeyKind::Properties => StringRole::Property,
                    KeyKind::Plain | KeyKind::Data => StringRole::Key,
                };
                Step::Enter(Segment::Key(key, role), value, kind.of_member(key))
            })),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

enum Step<'v> {
    Enter(Segment<'v>, &'v Value, KeyKind),
    Leave,
}

#[derive(PartialEq)]
enum Segment<'v> {
    Root,
    Index(usize),
    Key(&'v str, StringRole),
}

/// The kind of keys an object has.
#[derive(Clone, Copy)]
enum KeyKind {
    /// Keywords or anything else.
    Plain,
    /// Names of properties.
    Properties,
    /// Parts of a sample value, where `properties` is not a keyword.
    Data,
}

impl KeyKind {
    const fn of_item(self) -> Self {
        match self {
            Self::Data => Self::Data,
            Self::Plain | Self::Properties => Self::Plain,
        }
    }

    /// A property may itself be named `properties`: inside a map of properties, no key is a keyword.
    fn of_member(self, key: &str) -> Self {
        match (self, key) {
            (Self::Data, _)
            | (Self::Plain, "default" | "example" | "examples" | "enum" | "const") => Self::Data,
            (Self::Plain, "properties") => Self::Properties,
            (Self::Plain | Self::Properties, _) => Self::Plain,
        }
    }
}
