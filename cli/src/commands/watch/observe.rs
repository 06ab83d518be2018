//! Observes the tools of a server. Tools that match their pins exactly are not parsed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use toolwarden_canon::{FormatChoice as Format, TextItem, canonicalize_with_values};
use toolwarden_drift::shape::ValueKey;
use toolwarden_model::SharedText;
use toolwarden_model::json::Pointer;
use toolwarden_watch::{INSTRUCTIONS, Observation, Pins, ServerListing};

use super::live_servers::LiveAnswer;
use super::read_tools::{
    LocatedTool, OtherEntries, instructions, members_beside_tools, refuse_doubled_keys,
};
use super::responses;
use super::sources::{SourceKind, WatchSource};
use crate::args::{InputArgs, SourceArgs};
use crate::commands::progress::print_status;
use crate::error::CliError;
use crate::input::{InputListFacts, SourceLocation, each_tool_except};
use crate::style::escape_controls;

/// The observed tools of a server and where they stand.
#[derive(Debug)]
pub(super) struct ObservedServer {
    pub(super) listing: ServerListing,
    pub(super) locations: BTreeMap<String, SourceLocation>,
    /// What the server calls itself.
    pub(super) reported_name: Option<String>,
    /// Files and calls that should have brought results and brought none, each with why.
    pub(super) without_results: Vec<(String, String)>,
}

/// Observes the tools of a server. With pins, tools that match their pins exactly are only counted.
pub(super) fn observe(
    source: &WatchSource,
    answer: Option<LiveAnswer>,
    args: &SourceArgs,
    pins: Option<&Pins<'_>>,
    key: &ValueKey,
) -> Result<ObservedServer, CliError> {
    let mut look = ObservedServer {
        listing: ServerListing {
            is_complete: source.is_complete,
            ..ServerListing::default()
        },
        locations: BTreeMap::new(),
        reported_name: None,
        without_results: Vec::new(),
    };
    let mut returned = Vec::new();
    match (&source.kind, answer) {
        (SourceKind::Files(files), _) => {
            // Requested tools may stand on one page.
            let is_whole = source.requested_tools(args).is_empty();
            look.observe_files(files, args, pins, is_whole)?;
        }
        (SourceKind::Schema(file, tool), _) => {
            look.observe_definition(file, tool, args.source_format)?
        }
        (SourceKind::Live(_), Some(answer)) => {
            returned = look.observe_answer(source, answer, pins)?
        }
        (SourceKind::Live(_), None) => {
            return Err(CliError::ServerNotAsked {
                server: source.key.name.clone(),
            });
        }
    }
    let found = look.listing.observed.len() + look.listing.unchanged.len();
    // A list that became empty has lost its tools; one of which nothing is known is a mistake.
    let lost = source.is_complete && pins.is_some_and(|pins| !pins.tools.is_empty());
    if found == 0 && !lost && !matches!(source.kind, SourceKind::Live(_)) {
        let places = match &source.kind {
            SourceKind::Files(files) => files.iter().map(|it| it.display().to_string()).collect(),
            SourceKind::Schema(file, _) => vec![file.display().to_string()],
            SourceKind::Live(_) => Vec::new(),
        };
        return Err(CliError::NoTools {
            places: places.join(", "),
        });
    }
    if !matches!(source.kind, SourceKind::Schema(..)) {
        look.retain_requested(source.requested_tools(args), pins)?;
    }
    look.observe_results(args, pins, key, returned)?;
    Ok(look)
}

impl ObservedServer {
    /// Two tools of one name cannot be distinguished once they are pinned.
    pub(super) fn refuse_duplicates(&self, source: &WatchSource) -> Result<(), CliError> {
        match self.listing.duplicate_name() {
            Some(name) => Err(CliError::DuplicateTool {
                name: name.to_owned(),
                server: source.key.name.clone(),
            }),
            None => Ok(()),
        }
    }

    fn observe_files(
        &mut self,
        files: &[std::path::PathBuf],
        args: &SourceArgs,
        pins: Option<&Pins<'_>>,
        is_whole: bool,
    ) -> Result<(), CliError> {
        let input = InputArgs {
            files: files.to_vec(),
            input: Vec::new(),
            source_format: args.source_format,
            tools: Vec::new(),
        };
        let mut unchanged = Vec::new();
        let mut strays = OtherEntries::default();
        let mut facts = InputListFacts::default();
        each_tool_except(
            &input,
            |text| {
                let name = pins.and_then(|pins| pins.match_exact(text))?.to_owned();
                unchanged.push(name.clone());
                Some(name)
            },
            |read| {
                refuse_doubled_keys(&read)?;
                match strays.take_named(read) {
                    Some(seen) => self.add_tool(seen),
                    None => Ok(()),
                }
            },
            &mut facts,
        )?;
        if let Some(error) = facts.unfinished_page().filter(|_| is_whole) {
            return Err(error);
        }
        if let Some(seen) = instructions(facts.instructions) {
            self.add_tool(seen)?;
        }
        for seen in members_beside_tools(facts.beside) {
            self.add_tool(seen)?;
        }
        self.listing.unchanged = unchanged;
        let tools = !self.listing.observed.is_empty() || !self.listing.unchanged.is_empty();
        for stray in strays.into_entries(tools) {
            self.add_tool(stray)?;
        }
        Ok(())
    }

    /// Keeps the requested tools. If no server lists a requested tool, it was removed if it has a pin;
    /// without a pin, the name is an error.
    fn retain_requested(
        &mut self,
        wanted: &[String],
        pins: Option<&Pins<'_>>,
    ) -> Result<(), CliError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let observed = self.listing.observed.iter().map(|it| it.name.as_str());
        let unchanged = self.listing.unchanged.iter().map(String::as_str);
        let names: BTreeSet<&str> = observed.chain(unchanged).collect();
        let whole = self.listing.is_complete;
        let pinned =
            |name: &String| whole && pins.is_some_and(|pins| pins.tools.contains_key(name));
        let missing = wanted
            .iter()
            .find(|it| !names.contains(it.as_str()) && !pinned(it));
        if let Some(missing) = missing {
            return Err(CliError::NoSuchTool {
                name: missing.clone(),
                suggestion: toolwarden_model::did_you_mean(missing, names),
            });
        }
        self.listing.observed.retain(|it| wanted.contains(&it.name));
        self.listing.unchanged.retain(|it| wanted.contains(it));
        Ok(())
    }

    /// Two files with a tool of one name are not one server.
    fn add_tool(&mut self, seen: LocatedTool) -> Result<(), CliError> {
        let name = seen.observation.name.clone();
        if let Some(first) = self.locations.get(&name)
            && first.file != seen.location.file
        {
            return Err(CliError::SameTool {
                name,
                first: first.file.to_string(),
                second: seen.location.file.to_string(),
            });
        }
        self.locations.insert(name, seen.location);
        let mut tool = seen.observation;
        tool.compact();
        self.listing.observed.push(tool);
        Ok(())
    }

    /// The one definition of a file, whatever it calls itself.
    fn observe_definition(
        &mut self,
        file: &Path,
        tool: &str,
        format: Format,
    ) -> Result<(), CliError> {
        let input = InputArgs {
            files: vec![file.to_owned()],
            input: Vec::new(),
            source_format: format,
            tools: Vec::new(),
        };
        let mut found = Vec::new();
        each_tool_except(
            &input,
            |_| None,
            |read| {
                refuse_doubled_keys(&read)?;
                let place = read.location.source_location(&read.canonicalized);
                found.push(LocatedTool {
                    location: place,
                    observation: Observation::from_canonicalized(read.canonicalized),
                });
                Ok(())
            },
            &mut InputListFacts::default(),
        )?;
        let named = found.iter().position(|seen| seen.observation.name == tool);
        let index = match (named, found.len()) {
            (Some(index), _) => index,
            (None, 1) => 0,
            (None, _) => {
                let names = found.iter().map(|seen| seen.observation.name.as_str());
                return Err(CliError::NoSuchTool {
                    name: tool.to_owned(),
                    suggestion: toolwarden_model::did_you_mean(tool, names),
                });
            }
        };
        if index < found.len() {
            let mut seen = found.swap_remove(index);
            if !seen.observation.definition().is_object() {
                return Err(CliError::NoTools {
                    places: file.display().to_string(),
                });
            }
            seen.observation.name = tool.to_owned();
            self.locations.insert(tool.to_owned(), seen.location);
            self.listing.observed.push(seen.observation);
        }
        Ok(())
    }

    fn observe_answer(
        &mut self,
        source: &WatchSource,
        answer: LiveAnswer,
        pins: Option<&Pins<'_>>,
    ) -> Result<Vec<(String, Value)>, CliError> {
        for text in &answer.tools {
            if let Some(name) = pins.and_then(|pins| pins.match_exact(text)) {
                self.listing.unchanged.push(name.to_owned());
                continue;
            }
            let document = SharedText::from(text.as_str());
            let item = TextItem {
                pointer: Pointer::root(),
                text: &document,
            };
            let format = Format::Format(toolwarden_model::Format::Mcp);
            let read = canonicalize_with_values(&item, &document, format);
            let read = read.map_err(|error| CliError::Json {
                place: source.key.name.as_str().into(),
                position: error.position,
                kind: error.kind,
            })?;
            for found in read.tools {
                if let Some(pointer) = found.doubled_key() {
                    return Err(CliError::DoubledKey {
                        place: source.key.name.as_str().into(),
                        pointer: pointer.clone(),
                        position: None,
                    });
                }
                let tool = Observation::from_canonicalized(found);
                let place = SourceLocation::from_text(&source.key.name, document.clone());
                self.locations.insert(tool.name.clone(), place);
                self.listing.observed.push(tool);
            }
        }
        if let Some(instructions) = &answer.server.instructions {
            self.observe_instructions(source, instructions);
        }
        for (tool, why) in &answer.failed_calls {
            print_status(&format!(
                "the call of `{}` returned no result: {}",
                escape_controls(tool),
                escape_controls(why)
            ));
            let why = format!("the call returned no result: {why}");
            self.without_results.push((tool.clone(), why));
        }
        self.reported_name = answer.server.name;
        Ok(answer.results)
    }

    /// What a server tells models about itself is read by them like the description of a tool.
    fn observe_instructions(&mut self, source: &WatchSource, text: &str) {
        let tool = Observation::from_instructions(text);
        let place = SourceLocation::from_text(&source.key.name, tool.shared_text());
        self.locations.insert(INSTRUCTIONS.to_owned(), place);
        self.listing.observed.push(tool);
    }

    /// Takes in what tools returned.
    fn observe_results(
        &mut self,
        args: &SourceArgs,
        pins: Option<&Pins<'_>>,
        key: &ValueKey,
        returned: Vec<(String, Value)>,
    ) -> Result<(), CliError> {
        if args.responses.is_empty() && returned.is_empty() {
            return Ok(());
        }
        let unchanged = self.listing.unchanged.iter();
        let observed = self.listing.observed.iter().map(|seen| &seen.name);
        let names: BTreeSet<String> = unchanged.chain(observed).cloned().collect();
        let listing = &mut self.listing;
        let mut take = |name: &str, result: &Value| -> Result<(), CliError> {
            Ok(listing.observe_result(name, result, pins, key)?)
        };
        for (name, result) in returned {
            take(&name, &result)?;
        }
        let mut without = Vec::new();
        let only = match args.tools.as_slice() {
            [tool] => Some(tool.as_str()),
            _ if names.len() == 1 => names.first().map(String::as_str),
            _ => None,
        };
        for path in &args.responses {
            if responses::read(path, only, &names, &mut take)? == 0 {
                let file = path.display().to_string();
                let why = format!("{file} contains no results");
                without.push((file, why));
            }
        }
        self.without_results.extend(without);
        let strangers = self.listing.results.keys();
        let strangers = strangers.filter(|name| !names.contains(*name));
        for name in strangers {
            print_status(&format!(
                "`{}` was called, but is not among the checked tools",
                escape_controls(name)
            ));
        }
        Ok(())
    }
}
