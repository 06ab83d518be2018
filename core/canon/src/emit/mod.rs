//! Converts the canonical form to a provider's format and records every difference.

mod equivalence_claim;
mod fit;
mod name_allocator;
mod target;

use serde_json::Value;
use thiserror::Error;
use toolwarden_model::{Format, Tool};

pub use equivalence_claim::{EditMismatch, EquivalenceClaim, OriginalSchemas, SchemaSlot};
pub use name_allocator::NameAllocator;
pub use target::{EmitTarget, UnknownTarget};

use crate::dialect::{DialectFinding, lint};
use crate::edit::{Edit, EditKind};
use crate::formats;

/// A tool in a provider's format.
#[derive(Clone, Debug, PartialEq)]
pub struct Emission {
    /// The definition.
    pub value: Value,
    /// The emitted name and the original name.
    pub name: RenamedTool,
    /// Every difference from the tool, in the order it was made.
    pub edits: Vec<Edit>,
    /// What the target's dialect still does not accept, for targets that have a dialect.
    pub findings: Vec<DialectFinding>,
}

/// How a tool is called on both sides of an emission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenamedTool {
    /// The name in the emitted definition.
    pub emitted: String,
    /// The tool's own name, to which a call has to be routed back.
    pub original: String,
}

/// A tool that cannot be expressed in a format.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotPortable {
    /// Its provider runs it.
    #[error(
        "`{name}` is run by its provider ({format}) and has no definition another provider could use"
    )]
    Hosted {
        /// The tool.
        name: String,
        /// Its format.
        format: Format,
    },
    /// It has no name to be called by.
    #[error("the tool has no name, and {target} calls tools by name; add `name`")]
    Nameless {
        /// What it was to be emitted as.
        target: EmitTarget,
    },
}

/// Emits tools for one target, keeping their names apart.
#[derive(Debug)]
pub struct Emitter {
    target: EmitTarget,
    names: NameAllocator,
}

impl Emission {
    /// The edits that lose something the target cannot express.
    pub fn losses(&self) -> impl Iterator<Item = &Edit> {
        self.edits
            .iter()
            .filter(|edit| matches!(edit.kind, EditKind::Loss(_)))
    }

    /// The edits that keep the meaning in another form.
    pub fn changes(&self) -> impl Iterator<Item = &Edit> {
        self.edits
            .iter()
            .filter(|edit| edit.kind == EditKind::Change)
    }
}

impl Emitter {
    /// An emitter that has given out no names yet.
    #[must_use]
    pub fn new(target: EmitTarget) -> Self {
        Self {
            target,
            names: NameAllocator::new(target.name_rule()),
        }
    }

    /// Writes the tool in the target's format.
    ///
    /// # Errors
    /// Refuses a tool that its provider runs itself, unless the target is that provider's format, and
    /// a tool without a name.
    pub fn emit(&mut self, mut tool: Tool) -> Result<Emission, NotPortable> {
        if tool.format.is_hosted() && tool.format != self.target.format() {
            return match self.target.hosts(tool.format) {
                true => Ok(emit_native(tool)),
                false => Err(NotPortable::Hosted {
                    name: tool.name,
                    format: tool.format,
                }),
            };
        }
        if tool.name.is_empty() && !tool.format.is_hosted() && self.target.requires_name() {
            return Err(NotPortable::Nameless {
                target: self.target,
            });
        }
        let original = tool.name.clone();
        let edits = fit::fit(&mut tool, self.target, &mut self.names);
        let name = RenamedTool {
            emitted: tool.name.clone(),
            original,
        };
        let unaccepted = self
            .target
            .dialect()
            .map_or_else(Vec::new, |dialect| lint(&tool, dialect));
        let value = formats::write(self.target.format(), tool);
        Ok(Emission {
            value,
            name,
            edits,
            findings: unaccepted,
        })
    }
}

/// Writes one tool in the target's format.
///
/// # Errors
/// As [`Emitter::emit`].
pub fn emit(tool: Tool, target: EmitTarget) -> Result<Emission, NotPortable> {
    Emitter::new(target).emit(tool)
}

/// Rebuilds the definition a tool was read from, from its canonical parts.
#[must_use]
pub fn emit_native(tool: Tool) -> Emission {
    let name = RenamedTool {
        emitted: tool.name.clone(),
        original: tool.name.clone(),
    };
    let value = formats::write(tool.format, tool);
    Emission {
        value,
        name,
        edits: Vec::new(),
        findings: Vec::new(),
    }
}
