//! Tools of files, with where they stand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use toolwarden_canon::{BesideTools, FormatChoice};
use toolwarden_watch::{Observation, is_definition};

use crate::args::InputArgs;
use crate::commands::progress::{print_status, print_warnings};
use crate::error::CliError;
use crate::input::{InputListFacts, InputTool, SourceLocation, each_tool_except};

/// One tool of a file.
#[derive(Clone, Debug)]
pub(super) struct LocatedTool {
    pub(super) location: SourceLocation,
    pub(super) observation: Observation,
}

/// What stands in a list besides tools that have a name.
#[derive(Default)]
pub(super) struct OtherEntries {
    /// Tools that providers run, documents that say more than their tools, and unreadable entries.
    entries: Vec<LocatedTool>,
    /// Whether any of them is something an agent gets.
    hosted: bool,
    documents: BTreeSet<Arc<str>>,
}

impl OtherEntries {
    /// Takes what was read, and gives it back if it is a tool with a name.
    pub(super) fn take_named(&mut self, read: InputTool<'_>) -> Option<LocatedTool> {
        let is_tool = is_definition(&read.canonicalized.tool);
        let hosted = read.canonicalized.tool.format.is_hosted();
        if is_tool {
            print_warnings(&read);
        }
        let place = read.location.source_location(&read.canonicalized);
        let mut tool = Observation::from_canonicalized(read.canonicalized);
        if is_tool {
            if tool.is_of_document() && self.documents.insert(Arc::clone(&place.file)) {
                let document = place.text();
                let whole = Observation::from_document("(document)", document).ok();
                let calls = Observation::from_calls("(calls)", document);
                let whole = whole.map(|tool| (place.of_document(), tool));
                let calls = calls.map(|tool| (place.of_calls(), tool));
                let parts = whole.into_iter().chain(calls);
                self.entries.extend(parts.map(|(place, tool)| LocatedTool {
                    location: place,
                    observation: tool,
                }));
            }
            return Some(LocatedTool {
                location: place,
                observation: tool,
            });
        }
        self.hosted |= hosted;
        let received = serde_json::from_str(tool.text()).unwrap_or_default();
        tool.name = entry_name(&received, &tool);
        self.entries.push(LocatedTool {
            location: place,
            observation: tool,
        });
        None
    }

    /// The entries, numbered if they share a name. Without any tool beside them, unreadable entries mean
    /// that the document is not a list of tools.
    pub(super) fn into_entries(self, tools: bool) -> impl Iterator<Item = LocatedTool> {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let wanted = tools || self.hosted;
        let entries = self.entries.into_iter().filter(move |_| wanted);
        entries.map(move |mut stray| {
            let count = known.entry(stray.observation.name.clone()).or_default();
            *count += 1;
            if *count > 1 {
                stray.observation.name = format!("{} #{count}", stray.observation.name);
            }
            stray
        })
    }
}

/// What to call a tool that a provider runs, or an entry that is not a tool.
fn entry_name(definition: &Value, tool: &Observation) -> String {
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
        let digest: String = tool
            .semantic_fingerprint()
            .to_string()
            .chars()
            .take(8)
            .collect();
        format!("(entry {digest})")
    };
    hosted.or(only).unwrap_or_else(digest)
}

/// A key that is written twice means one thing to a reader that takes the first and another to one
/// that takes the last.
pub(super) fn refuse_doubled_keys(read: &InputTool<'_>) -> Result<(), CliError> {
    match read.doubled_key() {
        Some((pointer, position)) => Err(CliError::DoubledKey {
            place: read.location.file.to_owned(),
            pointer,
            position,
        }),
        None => Ok(()),
    }
}

/// Whether a file without tools says that there are none. Standard input cannot be read again, and
/// held nothing but lists.
fn is_empty_list(file: &Path) -> bool {
    if !file.is_file() {
        return true;
    }
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    documents.all(|document| document.is_ok_and(|document| lists_nothing(&document)))
}

fn lists_nothing(document: &Value) -> bool {
    let lists = [
        "",
        "/tools",
        "/result/tools",
        "/functions",
        "/functionDeclarations",
        "/function_declarations",
        "/skills",
        "/toolConfig/tools",
    ];
    lists
        .iter()
        .any(|at| document.pointer(at).is_some_and(Value::is_array))
        || document.get("paths").is_some_and(Value::is_object)
}

/// Every tool of a file.
pub(super) fn read_tools(
    file: &Path,
    source_format: FormatChoice,
) -> Result<Vec<LocatedTool>, CliError> {
    let input = InputArgs {
        files: vec![file.to_owned()],
        input: Vec::new(),
        source_format,
        tools: Vec::new(),
    };
    let (mut seen, mut strays) = (Vec::new(), OtherEntries::default());
    let mut facts = InputListFacts::default();
    each_tool_except(
        &input,
        |_| None,
        |read| {
            refuse_doubled_keys(&read)?;
            seen.extend(strays.take_named(read));
            Ok(())
        },
        &mut facts,
    )?;
    if let Some(page) = facts.unfinished_page() {
        print_status(&format!("warning: {page}"));
    }
    let hosted = strays.hosted;
    let nothing = seen.is_empty() && !hosted;
    if nothing && (!strays.entries.is_empty() || !is_empty_list(file)) {
        let places = file.display().to_string();
        return Err(CliError::NoTools { places });
    }
    seen.extend(strays.into_entries(!seen.is_empty()));
    seen.extend(instructions(facts.instructions));
    seen.extend(members_beside_tools(facts.beside));
    Ok(seen)
}

/// The members beside the lists of tools, each under the name of its key. What models read is text;
/// whatever else changes there, its effect on calls is unknown.
pub(super) fn members_beside_tools(
    beside: Vec<(SourceLocation, BesideTools)>,
) -> impl Iterator<Item = LocatedTool> {
    let mut known: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    beside.into_iter().filter_map(move |(location, member)| {
        let texts = known.entry(member.key).or_default();
        // Several pages of one list may repeat it.
        if texts.contains(&member.text) {
            return None;
        }
        texts.push(member.text.clone());
        let name = match texts.len() {
            1 => format!("({})", member.key),
            count => format!("({}) #{count}", member.key),
        };
        let mut observation = Observation::from_document(&name, &member.text).ok()?;
        observation.opaque = !member.is_prose;
        Some(LocatedTool {
            location,
            observation,
        })
    })
}

/// What a server tells models about itself, which they read like the description of a tool. Several
/// files may repeat it.
pub(super) fn instructions(said: Vec<(SourceLocation, String)>) -> Option<LocatedTool> {
    let mut texts: Vec<&str> = Vec::new();
    for (_, text) in &said {
        if !texts.contains(&text.as_str()) {
            texts.push(text);
        }
    }
    let observation = Observation::from_instructions(&texts.join("\n\n"));
    let (location, _) = said.into_iter().next()?;
    Some(LocatedTool {
        location,
        observation,
    })
}
