//! The types of the key table.

use serde_json::Value;
use toolwarden_model::document::KeySpec;

/// A mapping of the settings.
#[derive(Debug)]
pub(super) struct KeyTable {
    /// Its name in the schema.
    pub(super) name: &'static str,
    /// Its description.
    pub(super) about: &'static str,
    /// The meaning of a text in its place, if one is allowed.
    pub(super) shorthand: Option<&'static str>,
    /// Its keys.
    pub(super) fields: &'static [SettingsField],
    /// Keys that belong to a client and are ignored.
    pub(super) ignored: &'static [SettingsField],
    /// Keys of which exactly one is required.
    pub(super) exactly_one: &'static [&'static str],
}

/// A key of a mapping.
#[derive(Debug)]
pub(super) struct SettingsField {
    /// Its name.
    pub(super) name: &'static str,
    /// Other spellings.
    pub(super) aliases: &'static [&'static str],
    /// The kind of its value.
    pub(super) kind: ValueKind,
    /// Its description.
    pub(super) about: &'static str,
    /// Its default, as JSON.
    pub(super) default: Option<&'static str>,
    /// Whether it is required.
    pub(super) required: bool,
    /// Whether missing keys in it are inherited from an outer mapping.
    pub(super) inherits: bool,
}

/// The kind of a key's value.
#[derive(Clone, Copy, Debug)]
pub(super) enum ValueKind {
    /// Always 1.
    Version,
    /// A text.
    Text,
    /// A text, a number or a boolean, read as text.
    Scalar,
    /// A text that must be masked.
    Secret,
    /// A scalar that must be masked.
    SecretScalar,
    /// An address whose user and query must be masked.
    Address,
    /// An address of which only the host may be shown.
    SecretAddress,
    /// True or false.
    Boolean,
    /// A whole number from one upwards.
    Count,
    /// A number from zero to one.
    Fraction,
    /// A duration.
    Duration,
    /// A size in bytes.
    Size,
    /// One of several words.
    OneOf(fn() -> Vec<&'static str>),
    /// A list of texts; a single text is a list of one.
    TextList,
    /// A list.
    List(&'static Self),
    /// A mapping with free names, and the pattern that the names must match.
    Map(&'static Self, Option<&'static str>),
    /// A mapping with fixed keys.
    Section(&'static KeyTable),
    /// One of several kinds, distinguished by the type of the value.
    Either(&'static [Self]),
    /// A mapping in the policy language.
    Policy,
    /// A mapping with any content, kept as written.
    Object,
    /// Any value; only a client uses it.
    Any,
}

impl KeyTable {
    pub(super) const fn new(
        name: &'static str,
        about: &'static str,
        fields: &'static [SettingsField],
    ) -> Self {
        Self {
            name,
            about,
            shorthand: None,
            fields,
            ignored: &[],
            exactly_one: &[],
        }
    }

    /// A text may replace it.
    pub(super) const fn or_text(self, about: &'static str) -> Self {
        Self {
            shorthand: Some(about),
            ..self
        }
    }

    pub(super) const fn with_one_of(self, keys: &'static [&'static str]) -> Self {
        Self {
            exactly_one: keys,
            ..self
        }
    }

    pub(super) const fn ignoring(self, ignored: &'static [SettingsField]) -> Self {
        Self { ignored, ..self }
    }

    /// The keys in the form that the reader uses.
    pub(super) fn keys(&self) -> Vec<KeySpec> {
        self.all_fields().map(SettingsField::key).collect()
    }

    pub(super) fn all_fields(&self) -> impl Iterator<Item = &'static SettingsField> {
        self.fields.iter().chain(self.ignored)
    }
}

impl SettingsField {
    pub(super) const fn aliases(self, others: &'static [&'static str]) -> Self {
        Self {
            aliases: others,
            ..self
        }
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

    /// The default as a value; a test of the table parses every default.
    pub(super) fn default_value(&self) -> Option<Value> {
        serde_json::from_str(self.default?).ok()
    }

    fn key(&self) -> KeySpec {
        let key = KeySpec::new(self.name).alias(self.aliases);
        if matches!(self.kind, ValueKind::TextList) {
            return key.text_list();
        }
        key
    }
}

/// An optional key.
pub(super) const fn field(
    name: &'static str,
    kind: ValueKind,
    about: &'static str,
) -> SettingsField {
    SettingsField {
        name,
        aliases: &[],
        kind,
        about,
        default: None,
        required: false,
        inherits: false,
    }
}

impl ValueKind {
    /// The kind, of several, that a value has.
    pub(super) fn select(self, value: &Value) -> Self {
        let Self::Either(kinds) = self else {
            return self;
        };
        let fits = kinds.iter().find(|kind| kind.accepts(value));
        fits.or(kinds.first()).copied().unwrap_or(Self::Text)
    }

    fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Section(_) | Self::Map(..) | Self::Policy | Self::Object => value.is_object(),
            Self::List(_) => value.is_array(),
            Self::Version | Self::Count | Self::Fraction => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Duration | Self::Size => value.is_number() || value.is_string(),
            Self::TextList => value.is_array() || value.is_string(),
            Self::Text
            | Self::Scalar
            | Self::Secret
            | Self::SecretScalar
            | Self::Address
            | Self::SecretAddress
            | Self::OneOf(_) => value.is_string(),
            Self::Any => true,
            Self::Either(kinds) => kinds.iter().any(|kind| kind.accepts(value)),
        }
    }
}
