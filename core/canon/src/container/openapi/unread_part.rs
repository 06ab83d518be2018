use serde_json::{Value, json};
use toolwarden_model::json::{Object, Pointer, type_name};
use toolwarden_model::{Format, Tool};

/// The key of the extension that lists what is not read of an operation.
const KEY: &str = "unread";

/// Why a part of an operation is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnreadPart {
    /// It is a reference that leads to nothing in the document.
    Unresolved {
        /// The reference.
        reference: String,
    },
    /// It is not an object.
    NotAnObject {
        /// What it is.
        found: String,
    },
    /// It is a second media type of the body, with another schema than the one that is read.
    OtherMediaType {
        /// The media type.
        media_type: String,
    },
}

impl UnreadPart {
    /// Why a part that should be an object, or a reference to one, could not be read.
    pub(super) fn of(part: &Value) -> Self {
        match part.get("$ref").and_then(Value::as_str) {
            Some(reference) => Self::Unresolved {
                reference: reference.to_owned(),
            },
            None => Self::NotAnObject {
                found: type_name(part).to_owned(),
            },
        }
    }

    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::Unresolved { .. } => "dangling-reference",
            Self::NotAnObject { .. } => "not-an-object",
            Self::OtherMediaType { .. } => "other-media-type",
        }
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Unresolved { reference } => format!(
                "`{reference}` leads to nothing in this document, so what it declares is not read"
            ),
            Self::NotAnObject { found } => {
                format!("this is {found}, not an object, so it is not read")
            }
            Self::OtherMediaType { media_type } => format!(
                "`{media_type}` has another schema than the media type that is read, so it is not read"
            ),
        }
    }

    pub(crate) const fn fix(&self) -> &'static str {
        match self {
            Self::Unresolved { .. } => {
                "bundle the document, so that it contains everything it refers to"
            }
            Self::NotAnObject { .. } => "write an object",
            Self::OtherMediaType { .. } => {
                "call the operation with the media type that is read, or describe this one as an \
                 operation of its own"
            }
        }
    }

    /// Whether it is a mistake in the document. Several media types are valid.
    pub(crate) const fn is_error(&self) -> bool {
        !matches!(self, Self::OtherMediaType { .. })
    }

    /// The part as an entry of the extension.
    fn to_entry(&self, place: &Pointer) -> Value {
        let at = place.as_str();
        match self {
            Self::Unresolved { reference } => json!({ "at": at, "reference": reference }),
            Self::NotAnObject { found } => json!({ "at": at, "found": found }),
            Self::OtherMediaType { media_type } => json!({ "at": at, "media_type": media_type }),
        }
    }

    fn from_entry(entry: &Value) -> Option<Self> {
        let text = |key: &str| entry.get(key)?.as_str().map(str::to_owned);
        let unresolved = text("reference").map(|reference| Self::Unresolved { reference });
        unresolved
            .or_else(|| text("found").map(|found| Self::NotAnObject { found }))
            .or_else(|| text("media_type").map(|media_type| Self::OtherMediaType { media_type }))
    }
}

/// The parts of one operation that are not read, in the order they were met.
#[derive(Debug, Default)]
pub(super) struct UnreadParts(Vec<(Pointer, UnreadPart)>);

impl UnreadParts {
    pub(super) fn push(&mut self, place: Pointer, part: UnreadPart) {
        self.0.push((place, part));
    }

    /// Adds the parts to the extension of a tool, where emission and lint find them.
    pub(super) fn write_to(self, extension: &mut Object) {
        if self.0.is_empty() {
            return;
        }
        let entries = self.0.iter().map(|(place, part)| part.to_entry(place));
        extension.insert(KEY.to_owned(), Value::Array(entries.collect()));
    }
}

/// Whether the extension lists unread parts under this key.
pub(crate) fn lists_unread_parts(format: Format, key: &str) -> bool {
    format == Format::Openapi && key == KEY
}

/// The parts of an operation that its reader noted as unread, with their places in it.
pub(crate) fn unread_parts(tool: &Tool) -> impl Iterator<Item = (Pointer, UnreadPart)> {
    let keys = tool.extensions.get(&Format::Openapi);
    let parts = keys.and_then(|keys| keys.get(KEY)?.as_array());
    parts.into_iter().flatten().filter_map(|entry| {
        let place = Pointer::from(entry.get("at")?.as_str()?);
        Some((place, UnreadPart::from_entry(entry)?))
    })
}
