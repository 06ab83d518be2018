//! Tools of files, with where they stand.

use std::path::Path;

use toolwarden_canon::Source;
use toolwarden_warden::{Observation, is_definition};

use crate::args::InputArgs;
use crate::commands::talk::warn;
use crate::error::CliError;
use crate::input::{KeptPlace, ReadTool, each_tool};

/// One tool of a file.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) place: KeptPlace,
    pub(super) tool: Observation,
}

impl Seen {
    /// What was read, if it could be called: JSON without a name and a schema is no tool.
    pub(super) fn of(read: ReadTool<'_>) -> Option<Self> {
        if !is_definition(&read.found.tool) {
            return None;
        }
        warn(&read);
        let place = read.place.kept(&read.found);
        Some(Self {
            place,
            tool: Observation::of(read.found.tool),
        })
    }
}

/// Every tool of a file.
pub(super) fn read(file: &Path, source_format: Source) -> Result<Vec<Seen>, CliError> {
    let input = InputArgs {
        files: vec![file.to_owned()],
        input: Vec::new(),
        source_format,
        tools: Vec::new(),
    };
    let mut seen = Vec::new();
    each_tool(&input, |read| {
        seen.extend(Seen::of(read));
        Ok(())
    })?;
    Ok(seen)
}
