//! Tools of files, with where they stand.

use std::collections::{BTreeMap, BTreeSet};
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

/// What stands in a list besides tools that have a name.
#[derive(Default)]
pub(super) struct Strays {
    /// Tools that providers run, documents that say more than their tools, and entries nobody can read.
    entries: Vec<Seen>,
    /// Whether any of them is something an agent gets.
    hosted: bool,
    documents: BTreeSet<String>,
}

impl Strays {
    /// Takes what was read, and gives it back if it is a tool with a name.
    pub(super) fn sort(&mut self, read: ReadTool<'_>) -> Option<Seen> {
        let is_tool = is_definition(&read.found.tool);
        let hosted = read.found.tool.format.is_hosted();
        if is_tool {
            warn(&read);
        }
        let place = read.place.kept(&read.found);
        let mut tool = Observation::of(read.found.tool);
        if is_tool {
            if tool.is_of_document() && self.documents.insert(place.file.clone()) {
                let document = place.text();
                let whole = Observation::of_document("(document)", document).ok();
                let parts = whole
                    .into_iter()
                    .chain(Observation::of_calls("(calls)", document));
                let place = place.clone();
                self.entries.extend(parts.map(|tool| Seen {
                    place: place.clone(),
                    tool,
                }));
            }
            return Some(Seen { place, tool });
        }
        self.hosted |= hosted;
        let received = serde_json::from_str(tool.text()).unwrap_or_default();
        tool.name = stand_in(&received, &tool);
        self.entries.push(Seen { place, tool });
        None
    }

    /// The entries, told apart by a number where they share a name. Without any tool beside them, what
    /// nobody can read is something else than a list of tools.
    pub(super) fn among(self, tools: bool) -> impl Iterator<Item = Seen> {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let wanted = tools || self.hosted;
        let entries = self.entries.into_iter().filter(move |_| wanted);
        entries.map(move |mut stray| {
            let count = known.entry(stray.tool.name.clone()).or_default();
            *count += 1;
            if *count > 1 {
                stray.tool.name = format!("{} #{count}", stray.tool.name);
            }
            stray
        })
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

/// Every tool of a file.
pub(super) fn read(file: &Path, source_format: Source) -> Result<Vec<Seen>, CliError> {
    let input = InputArgs {
        files: vec![file.to_owned()],
        input: Vec::new(),
        source_format,
        tools: Vec::new(),
    };
    let (mut seen, mut strays) = (Vec::new(), Strays::default());
    each_tool(&input, |read| {
        seen.extend(strays.sort(read));
        Ok(())
    })?;
    seen.extend(strays.among(!seen.is_empty()));
    Ok(seen)
}
