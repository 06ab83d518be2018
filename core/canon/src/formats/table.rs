use serde_json::Value;
use toolwarden_model::json::Pointer;

/// The keys of one object of a definition, in the order they are usually written.
pub(crate) type FieldTable = &'static [FieldMapping];

/// One key of a definition and the tool field it maps to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldMapping {
    pub(crate) key: &'static str,
    /// Other spellings that are read.
    pub(crate) aliases: &'static [&'static str],
    pub(crate) field: ToolField,
    /// How to convert the value to the canonical form and back, where the two differ.
    pub(crate) conversion: Option<&'static Conversion>,
    /// Whether `null` means the same as leaving the key out.
    pub(crate) nullable: bool,
    /// Whether every definition of this format must have the key.
    pub(crate) required: bool,
}

/// The field of a tool that a key maps to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ToolField {
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
    Nested(FieldTable),
}

/// A pair of functions between a format's own value and the canonical one.
///
/// Where `encode` does not restore the input of `decode`, the reader keeps the original beside the
/// canonical value, so neither has to be complete.
#[derive(Debug)]
pub(crate) struct Conversion {
    pub(crate) decode: fn(&Value) -> Option<Value>,
    pub(crate) encode: fn(&Value) -> Option<Value>,
    /// A quick way to see that `encode` will undo `decode`, where there is one.
    pub(crate) is_reversible: fn(&Value) -> bool,
    /// What `decode` does not carry over, if anything.
    pub(crate) remainder: fn(&Value) -> Option<Value>,
    /// The types in it that no schema expresses exactly, and where they are.
    pub(crate) unknown_types: fn(&Value) -> Vec<(Pointer, String)>,
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
            remainder: |_| None,
            unknown_types: |_| Vec::new(),
        }
    }

    /// The conversion of a value of which not everything is carried over.
    pub(crate) const fn with_remainder(self, remainder: fn(&Value) -> Option<Value>) -> Self {
        Self { remainder, ..self }
    }

    /// The conversion of a value that may name types of its own.
    pub(crate) const fn with_unknown_types(
        self,
        unknown_types: fn(&Value) -> Vec<(Pointer, String)>,
    ) -> Self {
        Self {
            unknown_types,
            ..self
        }
    }
}

pub(crate) const fn field(key: &'static str, slot: ToolField) -> FieldMapping {
    FieldMapping {
        key,
        aliases: &[],
        field: slot,
        conversion: None,
        nullable: false,
        required: false,
    }
}

impl FieldMapping {
    pub(crate) const fn aliased(self, aliases: &'static [&'static str]) -> Self {
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

    pub(crate) fn matches_key(&self, key: &str) -> bool {
        self.key == key || self.aliases.contains(&key)
    }
}
