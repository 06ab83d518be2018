//! How the table of keys is written.

use serde_json::Value;
use toolwarden_model::document::Key;

/// A mapping of the settings.
#[derive(Debug)]
pub(super) struct Table {
    /// What it is called in the schema.
    pub(super) name: &'static str,
    /// What it is.
    pub(super) about: &'static str,
    /// What a text in its place says, where there may be one.
    pub(super) short: Option<&'static str>,
    /// Its keys.
    pub(super) fields: &'static [Field],
    /// Keys that are taken for those of a client, and left to it.
    pub(super) ignored: &'static [Field],
    /// Keys of which exactly one has to be there.
    pub(super) exactly_one: &'static [&'static str],
}

/// A key of a mapping.
#[derive(Debug)]
pub(super) struct Field {
    /// Its name.
    pub(super) name: &'static str,
    /// Other spellings.
    pub(super) others: &'static [&'static str],
    /// What it holds.
    pub(super) kind: Kind,
    /// What it is for.
    pub(super) about: &'static str,
    /// What holds where it is not written, as JSON.
    pub(super) default: Option<&'static str>,
    /// Whether it has to be there.
    pub(super) required: bool,
    /// Whether what is not said in it is said by a mapping further out.
    pub(super) inherits: bool,
}

/// What a key holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Always 1.
    Version,
    /// A text.
    Text,
    /// A text, a number or a truth value, taken as text.
    Scalar,
    /// A text that nobody else may see.
    Secret,
    /// As a scalar that nobody else may see.
    SecretScalar,
    /// An address whose user and query nobody else may see.
    Address,
    /// An address of which others may see the host.
    SecretAddress,
    /// True or false.
    Truth,
    /// A whole number from one upwards.
    Count,
    /// A number from zero to one.
    Share,
    /// A time.
    Duration,
    /// A size in bytes.
    Size,
    /// One of several words.
    Word(fn() -> Vec<&'static str>),
    /// A list of texts; one alone is a list of one.
    Texts,
    /// A list.
    List(&'static Self),
    /// A mapping from names that are up to the writer, and the pattern they fit.
    Names(&'static Self, Option<&'static str>),
    /// A mapping with keys of its own.
    Section(&'static Table),
    /// One or the other, told apart by the type of the value.
    Either(&'static [Self]),
    /// A mapping in the language of policies.
    Policy,
    /// Whatever a client means by it.
    Anything,
}

impl Table {
    pub(super) const fn new(
        name: &'static str,
        about: &'static str,
        fields: &'static [Field],
    ) -> Self {
        Self {
            name,
            about,
            short: None,
            fields,
            ignored: &[],
            exactly_one: &[],
        }
    }

    /// A text may stand in its place.
    pub(super) const fn or_text(self, about: &'static str) -> Self {
        Self {
            short: Some(about),
            ..self
        }
    }

    pub(super) const fn with_one_of(self, keys: &'static [&'static str]) -> Self {
        Self {
            exactly_one: keys,
            ..self
        }
    }

    pub(super) const fn ignoring(self, ignored: &'static [Field]) -> Self {
        Self { ignored, ..self }
    }

    /// The keys as the reader knows them.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.all_fields().map(Field::key).collect()
    }

    pub(super) fn all_fields(&self) -> impl Iterator<Item = &'static Field> {
        self.fields.iter().chain(self.ignored)
    }
}

impl Field {
    pub(super) const fn or(self, others: &'static [&'static str]) -> Self {
        Self { others, ..self }
    }

    pub(super) const fn default(self, json: &'static str) -> Self {
        Self {
            default: Some(json),
            ..self
        }
    }

    pub(super) const fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    pub(super) const fn inherits(self) -> Self {
        Self {
            inherits: true,
            ..self
        }
    }

    /// The default as a value; the test of the table reads every one.
    pub(super) fn default_value(&self) -> Option<Value> {
        serde_json::from_str(self.default?).ok()
    }

    fn key(&self) -> Key {
        let key = Key::new(self.name).or(self.others);
        if matches!(self.kind, Kind::Texts) {
            return key.texts();
        }
        key
    }
}

/// A key that need not be there.
pub(super) const fn field(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field {
        name,
        others: &[],
        kind,
        about,
        default: None,
        required: false,
        inherits: false,
    }
}

impl Kind {
    /// The one of several that a value is meant as.
    pub(super) fn of(self, value: &Value) -> Self {
        let Self::Either(kinds) = self else {
            return self;
        };
        let fits = kinds.iter().find(|kind| kind.is_for(value));
        fits.or(kinds.first()).copied().unwrap_or(Self::Text)
    }

    fn is_for(self, value: &Value) -> bool {
        match self {
            Self::Section(_) | Self::Names(..) | Self::Policy => value.is_object(),
            Self::List(_) => value.is_array(),
            Self::Version | Self::Count | Self::Share => value.is_number(),
            Self::Truth => value.is_boolean(),
            Self::Duration | Self::Size => value.is_number() || value.is_string(),
            Self::Texts => value.is_array() || value.is_string(),
            Self::Text
            | Self::Scalar
            | Self::Secret
            | Self::SecretScalar
            | Self::Address
            | Self::SecretAddress
            | Self::Word(_) => value.is_string(),
            Self::Anything => true,
            Self::Either(kinds) => kinds.iter().any(|kind| kind.is_for(value)),
        }
    }
}
