//! Tools of files, with where they stand.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
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

/// An entry of a list of tools.
pub(super) enum Entry {
    Tool(Seen),
    /// A tool that a provider runs, or no tool at all.
    Stray(Seen),
}

impl Seen {
    /// What was read. What has no name and no schema goes by what it stands for.
    pub(super) fn of(read: ReadTool<'_>) -> Entry {
        let is_tool = is_definition(&read.found.tool);
        if is_tool {
            warn(&read);
        }
        let place = read.place.kept(&read.found);
        let mut tool = Observation::of(read.found.tool);
        if is_tool {
            return Entry::Tool(Self { place, tool });
        }
        let received = serde_json::from_str(tool.text()).unwrap_or_default();
        tool.name = stand_in(&received, &tool);
        tool.opaque = true;
        Entry::Stray(Self { place, tool })
    }
}

/// What to call a tool that a provider runs, or an entry that is no tool at all.
fn stand_in(definition: &Value, tool: &Observation) -> String {
    let text = |key: &str| definition.get(key).and_then(Value::as_str);
    let hosted = text("type").map(|kind| match text("server_label") {
        Some(label) => format!("({kind} {label})"),
        None => format!("({kind})"),
    });
    let only = definition.as_object().filter(|members| members.len() == 1);
    let only = only
        .and_then(|members| members.keys().next())
        .map(|key| format!("({key})"));
    // Its place may change without it.
    let digest = || {
        let digest: String = tool.meaning().to_string().chars().take(8).collect();
        format!("(entry {digest})")
    };
    hosted.or(only).unwrap_or_else(digest)
}

/// Entries without a name of their own, told apart by a number where they share one.
pub(super) fn numbered(strays: Vec<Seen>) -> impl Iterator<Item = Seen> {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    strays.into_iter().map(move |mut stray| {
        let count = known.entry(stray.tool.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            stray.tool.name = format!("{} #{count}", stray.tool.name);
        }
        stray
    })
}

/// Every tool of a file.
pub(super) fn read(file: &Path, source_format: Source) -> Result<Vec<Seen>, CliError> {
    let input = InputArgs {
        files: vec![file.to_owned()],
        input: Vec::new(),
        source_format,
        tools: Vec::new(),
    };
    let (mut seen, mut strays) = (Vec::new(), Vec::new());
    each_tool(&input, |read| {
        match Seen::of(read) {
            Entry::Tool(tool) => seen.push(tool),
            Entry::Stray(stray) => strays.push(stray),
        }
        Ok(())
    })?;
    if !seen.is_empty() {
        seen.extend(numbered(strays));
    }
    Ok(seen)
}
