//! Looks at the tools of a server, and tells what is exactly as pinned without reading it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use toolwarden_canon::{Item, Source as Format, canonicalize_item};
use toolwarden_drift::shape::ValueKey;
use toolwarden_model::json::Pointer;
use toolwarden_warden::{INSTRUCTIONS, Listing, Observation, Pins};

use super::live::Answer;
use super::responses;
use super::seen::{Seen, Strays};
use super::sources::{From, Source};
use crate::args::{InputArgs, SourceArgs};
use crate::commands::talk::say;
use crate::error::CliError;
use crate::input::{KeptPlace, each_tool_but};
use crate::style::visible;

/// What was seen of a server, and where.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) listing: Listing,
    pub(super) places: BTreeMap<String, KeptPlace>,
    /// What the server calls itself.
    pub(super) calls_itself: Option<String>,
}

/// Looks at a server. With pins, what is exactly as pinned is only counted.
pub(super) fn look(
    source: &Source,
    answer: Option<Answer>,
    args: &SourceArgs,
    pins: Option<&Pins<'_>>,
    key: &ValueKey,
) -> Result<Look, CliError> {
    let mut look = Look {
        listing: Listing {
            whole: source.whole,
            ..Listing::default()
        },
        places: BTreeMap::new(),
        calls_itself: None,
    };
    let mut returned = Vec::new();
    match (&source.from, answer) {
        (From::Files(files), _) => look.files(files, args, pins)?,
        (From::Schema(file, tool), _) => look.schema(file, tool, args.source_format)?,
        (From::Live(_), Some(answer)) => returned = look.answer(source, answer, pins)?,
        (From::Live(_), None) => {
            return Err(CliError::Unasked {
                server: source.key.name.clone(),
            });
        }
    }
    let found = look.listing.observed.len() + look.listing.unchanged.len();
    // A list that became empty has lost its tools; one of which nothing is known is a mistake.
    let lost = source.whole && pins.is_some_and(|pins| !pins.tools.is_empty());
    if found == 0 && !lost && !matches!(source.from, From::Live(_)) {
        let places = match &source.from {
            From::Files(files) => files.iter().map(|it| it.display().to_string()).collect(),
            From::Schema(file, _) => vec![file.display().to_string()],
            From::Live(_) => Vec::new(),
        };
        return Err(CliError::NoTools {
            places: places.join(", "),
        });
    }
    if !matches!(source.from, From::Schema(..)) {
        look.select(source.wanted(args), pins)?;
    }
    look.results(args, pins, key, returned)?;
    Ok(look)
}

impl Look {
    /// Two tools of one name cannot be told apart once they are pinned.
    pub(super) fn refuse_doubled(&self, source: &Source) -> Result<(), CliError> {
        match self.listing.doubled() {
            Some(name) => Err(CliError::DoubledTool {
                name: name.to_owned(),
                server: source.key.name.clone(),
            }),
            None => Ok(()),
        }
    }

    fn files(
        &mut self,
        files: &[std::path::PathBuf],
        args: &SourceArgs,
        pins: Option<&Pins<'_>>,
    ) -> Result<(), CliError> {
        let input = InputArgs {
            files: files.to_vec(),
            input: Vec::new(),
            source_format: args.source_format,
            tools: Vec::new(),
        };
        let mut unchanged = Vec::new();
        let mut strays = Strays::default();
        each_tool_but(
            &input,
            |text| {
                let name = pins.and_then(|pins| pins.holds(text))?.to_owned();
                unchanged.push(name.clone());
                Some(name)
            },
            |read| match strays.sort(read) {
                Some(seen) => self.add(seen),
                None => Ok(()),
            },
        )?;
        self.listing.unchanged = unchanged;
        let tools = !self.listing.observed.is_empty() || !self.listing.unchanged.is_empty();
        for stray in strays.among(tools) {
            self.add(stray)?;
        }
        Ok(())
    }

    /// Keeps what is wanted. A wanted tool that nobody has and that never was pinned is a mistake; one
    /// that was pinned is gone.
    fn select(&mut self, wanted: &[String], pins: Option<&Pins<'_>>) -> Result<(), CliError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let observed = self.listing.observed.iter().map(|it| it.name.as_str());
        let unchanged = self.listing.unchanged.iter().map(String::as_str);
        let names: BTreeSet<&str> = observed.chain(unchanged).collect();
        let whole = self.listing.whole;
        let pinned =
            |name: &String| whole && pins.is_some_and(|pins| pins.tools.contains_key(name));
        let missing = wanted
            .iter()
            .find(|it| !names.contains(it.as_str()) && !pinned(it));
        if let Some(missing) = missing {
            return Err(CliError::NoSuchTool {
                name: missing.clone(),
                suggestion: toolwarden_model::closest(missing, names),
            });
        }
        self.listing.observed.retain(|it| wanted.contains(&it.name));
        self.listing.unchanged.retain(|it| wanted.contains(it));
        Ok(())
    }

    /// Two files with a tool of one name are not one server.
    fn add(&mut self, seen: Seen) -> Result<(), CliError> {
        let name = seen.tool.name.clone();
        if let Some(first) = self.places.get(&name)
            && first.file != seen.place.file
        {
            return Err(CliError::SameTool {
                name,
                first: first.file.clone(),
                second: seen.place.file,
            });
        }
        self.places.insert(name, seen.place);
        let mut tool = seen.tool;
        tool.compact();
        self.listing.observed.push(tool);
        Ok(())
    }

    /// The one definition of a file, whatever it calls itself.
    fn schema(&mut self, file: &Path, tool: &str, format: Format) -> Result<(), CliError> {
        let input = InputArgs {
            files: vec![file.to_owned()],
            input: Vec::new(),
            source_format: format,
            tools: Vec::new(),
        };
        let mut found = Vec::new();
        each_tool_but(
            &input,
            |_| None,
            |read| {
                let place = read.place.kept(&read.found);
                found.push(Seen {
                    place,
                    tool: Observation::of(read.found.tool),
                });
                Ok(())
            },
        )?;
        let named = found.iter().position(|seen| seen.tool.name == tool);
        let index = match (named, found.len()) {
            (Some(index), _) => index,
            (None, 1) => 0,
            (None, _) => {
                let names = found.iter().map(|seen| seen.tool.name.as_str());
                return Err(CliError::NoSuchTool {
                    name: tool.to_owned(),
                    suggestion: toolwarden_model::closest(tool, names),
                });
            }
        };
        if index < found.len() {
            let mut seen = found.swap_remove(index);
            if !seen.tool.definition().is_object() {
                return Err(CliError::NoTools {
                    places: file.display().to_string(),
                });
            }
            seen.tool.name = tool.to_owned();
            self.places.insert(tool.to_owned(), seen.place);
            self.listing.observed.push(seen.tool);
        }
        Ok(())
    }

    fn answer(
        &mut self,
        source: &Source,
        answer: Answer,
        pins: Option<&Pins<'_>>,
    ) -> Result<Vec<(String, Value)>, CliError> {
        for text in &answer.tools {
            if let Some(name) = pins.and_then(|pins| pins.holds(text)) {
                self.listing.unchanged.push(name.to_owned());
                continue;
            }
            let item = Item {
                pointer: Pointer::root(),
                text,
            };
            let format = Format::Format(toolwarden_model::Format::Mcp);
            let read = canonicalize_item(&item, format);
            let read = read.map_err(|error| CliError::Json {
                place: source.key.name.as_str().into(),
                position: error.position,
                kind: error.kind,
            })?;
            for found in read.tools {
                let tool = Observation::of(found.tool);
                let place = KeptPlace::of_text(&source.key.name, text);
                self.places.insert(tool.name.clone(), place);
                self.listing.observed.push(tool);
            }
        }
        if let Some(instructions) = &answer.server.instructions {
            self.instructions(source, instructions);
        }
        for (tool, why) in &answer.refused {
            say(&format!(
                "the call of `{}` brought no result: {}",
                visible(tool),
                visible(why)
            ));
        }
        self.calls_itself = answer.server.name;
        Ok(answer.results)
    }

    /// What a server tells models about itself is read by them like the description of a tool.
    fn instructions(&mut self, source: &Source, text: &str) {
        let tool = Observation::of_instructions(text);
        let place = KeptPlace::of_text(&source.key.name, tool.text());
        self.places.insert(INSTRUCTIONS.to_owned(), place);
        self.listing.observed.push(tool);
    }

    /// Takes in what tools returned.
    fn results(
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
        let only = match args.tools.as_slice() {
            [tool] => Some(tool.as_str()),
            _ if names.len() == 1 => names.first().map(String::as_str),
            _ => None,
        };
        for path in &args.responses {
            responses::read(path, only, &names, &mut take)?;
        }
        let strangers = self.listing.results.keys();
        let strangers = strangers.filter(|name| !names.contains(*name));
        for name in strangers {
            say(&format!(
                "`{}` was called, but is none of the tools that were looked at",
                visible(name)
            ));
        }
        Ok(())
    }
}
