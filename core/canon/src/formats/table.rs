use serde_json::Value;

/// The keys of one object of a definition, in the order they are usually written.
pub(crate) type Table = &'static [Field];

/// One key of a definition and what it feeds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) key: &'static str,
    /// Other spellings that are read.
    pub(crate) aliases: &'static [&'static str],
    pub(crate) slot: Slot,
    /// How the value becomes canonical and back, where it is not the same.
    pub(crate) conversion: Option<&'static Conversion>,
    /// Whether `null` means the same as leaving the key out.
    pub(crate) nullable: bool,
    /// Whether a definition without the key is no definition of this format.
    pub(crate) required: bool,
}

/// The part of a tool a key feeds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    Name,
    Title,
    Description,
    Inputs,
    Outputs,
    Annotations,
    Strict,
    Examples,
    /// A fixed text.
    Constant(&'static str),
    /// An object that holds further keys.
    Nested(Table),
}

/// A pair of functions between a format's own value and the canonical one.
///
/// Where `encode` does not give back what `decode` took, the reader keeps the original beside the
/// canonical value, so neither has to be complete.
#[derive(Debug)]
pub(crate) struct Conversion {
    pub(crate) decode: fn(&Value) -> Option<Value>,
    pub(crate) encode: fn(&Value) -> Option<Value>,
    /// A quick way to see that `encode` will undo `decode`, where there is one.
    pub(crate) is_reversible: fn(&Value) -> bool,
}

impl Conversion {
    /// A conversion that has to be tried out to see whether it can be undone.
    pub(crate) const fn new(
        decode: fn(&Value) -> Option<Value>,
        encode: fn(&Value) -> Option<Value>,
    ) -> Self {
        Self {
            decode,
            encode,
            is_reversible: |_| false,
        }
    }
}

pub(crate) const fn field(key: &'static str, slot: Slot) -> Field {
    Field {
        key,
        aliases: &[],
        slot,
        conversion: None,
        nullable: false,
        required: false,
    }
}

impl Field {
    pub(crate) const fn or_spelled(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    pub(crate) const fn converted(self, conversion: &'static Conversion) -> Self {
        Self {
            conversion: Some(conversion),
            ..self
        }
    }

    pub(crate) const fn nullable(self) -> Self {
        Self {
            nullable: true,
            ..self
        }
    }

    pub(crate) const fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    pub(crate) fn is_spelled(&self, key: &str) -> bool {
        self.key == key || self.aliases.contains(&key)
    }
}
