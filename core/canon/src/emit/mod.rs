//! From the canonical form to a provider's, with an account of every difference.

mod claim;
mod edit;
mod fit;
mod names;
mod target;

use serde_json::Value;
use thiserror::Error;
use toolwarden_model::{Format, Tool};

pub use claim::{Claim, Originals, SchemaSlot, Unaccounted};
pub use edit::{Edit, Kind, Severity};
pub use names::{NameRule, Names};
pub use target::{Target, UnknownTarget};

use crate::dialect::{Finding, lint};
use crate::formats;

/// A tool in a provider's format.
#[derive(Clone, Debug, PartialEq)]
pub struct Emission {
    /// The definition.
    pub value: Value,
    /// The name it goes by, and the name it had.
    pub name: RenamedTool,
    /// Every difference from the tool, in the order it was made.
    pub edits: Vec<Edit>,
    /// What the target's dialect still does not take, for targets that have one.
    pub unaccepted: Vec<Finding>,
}

/// How a tool is called on both sides of an emission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenamedTool {
    /// The name in the emitted definition.
    pub emitted: String,
    /// The tool's own name, to which a call has to be routed back.
    pub original: String,
}

/// A tool that cannot be said in a format.
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
        target: Target,
    },
}

/// Emits tools for one target, keeping their names apart.
#[derive(Debug)]
pub struct Emitter {
    target: Target,
    names: Names,
}

impl Emission {
    /// What the target has no place for.
    pub fn losses(&self) -> impl Iterator<Item = &Edit> {
        self.edits
            .iter()
            .filter(|edit| matches!(edit.kind, Kind::Loss(_)))
    }

    /// What is said in another way, its meaning kept.
    pub fn changes(&self) -> impl Iterator<Item = &Edit> {
        self.edits.iter().filter(|edit| edit.kind == Kind::Change)
    }
}

impl Emitter {
    /// An emitter that has given out no names yet.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            names: Names::new(target.name_rule()),
        }
    }

    /// Says the tool in the target's format.
    ///
    /// # Errors
    /// Refuses a tool that its provider runs itself, unless the target is that provider's format, and
    /// a tool without a name.
    pub fn emit(&mut self, mut tool: Tool) -> Result<Emission, NotPortable> {
        if tool.format.is_hosted() && tool.format != self.target.format() {
            return match self.target.hosts(tool.format) {
                true => Ok(native(tool)),
                false => Err(NotPortable::Hosted {
                    name: tool.name,
                    format: tool.format,
                }),
            };
        }
        if tool.name.is_empty() && !tool.format.is_hosted() && self.target.calls_by_name() {
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
            unaccepted,
        })
    }
}

/// Says one tool in the target's format.
///
/// # Errors
/// As [`Emitter::emit`].
pub fn emit(tool: Tool, target: Target) -> Result<Emission, NotPortable> {
    Emitter::new(target).emit(tool)
}

/// Gives back the definition a tool was read from, built from its canonical parts.
#[must_use]
pub fn native(tool: Tool) -> Emission {
    let name = RenamedTool {
        emitted: tool.name.clone(),
        original: tool.name.clone(),
    };
    let value = formats::write(tool.format, tool);
    Emission {
        value,
        name,
        edits: Vec::new(),
        unaccepted: Vec::new(),
    }
}
