use toolwarden_model::json::{Pointer, Value};

/// What a string is to the definition that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A string value.
    Text,
    /// The key of any object but a map of properties.
    Key,
    /// The name of a property in a schema.
    Property,
}

/// Hands over every string and every key, in the order they are written, with its pointer.
///
/// Goes by its own stack, so that no depth of nesting can exhaust the one of the thread.
pub(super) fn each_string(definition: &Value, mut see: impl FnMut(&Pointer, &str, Role)) {
    let mut pointer = Pointer::root();
    let mut stack = vec![Step::Enter(Segment::Root, definition, Kind::Plain)];
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
            Value::String(text) => see(&pointer, text, Role::Text),
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
                    Kind::Properties => Role::Property,
                    Kind::Plain | Kind::Data => Role::Key,
                };
                Step::Enter(Segment::Key(key, role), value, kind.of_member(key))
            })),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

enum Step<'v> {
    Enter(Segment<'v>, &'v Value, Kind),
    Leave,
}

#[derive(PartialEq)]
enum Segment<'v> {
    Root,
    Index(usize),
    Key(&'v str, Role),
}

/// What the keys of an object are.
#[derive(Clone, Copy)]
enum Kind {
    /// Keywords or anything else.
    Plain,
    /// Names of properties.
    Properties,
    /// Parts of a sample value, where `properties` is no keyword.
    Data,
}

impl Kind {
    const fn of_item(self) -> Self {
        match self {
            Self::Data => Self::Data,
            Self::Plain | Self::Properties => Self::Plain,
        }
    }

    /// A property may itself be called `properties`: below a map of properties no key is a
    /// keyword.
    fn of_member(self, key: &str) -> Self {
        match (self, key) {
            (Self::Data, _)
            | (Self::Plain, "default" | "example" | "examples" | "enum" | "const") => Self::Data,
            (Self::Plain, "properties") => Self::Properties,
            (Self::Plain | Self::Properties, _) => Self::Plain,
        }
    }
}
