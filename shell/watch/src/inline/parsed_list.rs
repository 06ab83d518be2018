//! Reads the list of a server. Tools that match their pin byte for byte are only counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use toolwarden_canon::{FormatChoice, TextItem, Warning, canonicalize_with_values};
use toolwarden_drift::text::printable;
use toolwarden_model::json::Pointer;
use toolwarden_model::{Format, SharedText};

use crate::judge::ServerListing;
use crate::observation::Observation;
use crate::pins::Pins;

/// A list in the form that is compared with its pins, and the entries that cannot be compared.
#[derive(Debug, Default)]
pub(super) struct ParsedList {
    pub(super) listing: ServerListing,
    /// Names of entries that cannot be parsed, or that two parsers may read differently, with the reason.
    pub(super) unreadable: BTreeMap<String, String>,
    /// Names that several entries have.
    pub(super) duplicates: BTreeSet<String>,
    /// The names of the entries, by their index in the list.
    pub(super) names: BTreeMap<usize, Vec<String>>,
    /// Whether the server needs review, and nothing of it was approved so far.
    pub(super) is_unreviewed: bool,
    /// The names of entries.
    entry_names: BTreeSet<String>,
    /// These names, and that of the instructions.
    all_names: BTreeSet<String>,
}

impl ParsedList {
    pub(super) fn new(whole: bool) -> Self {
        Self {
            listing: ServerListing {
                is_complete: whole,
                ..ServerListing::default()
            },
            ..Self::default()
        }
    }

    pub(super) fn add_tool(&mut self, place: usize, tool: &RawValue, pins: &Pins<'_>) {
        let text = tool.get();
        let names = names(text);
        for name in &names {
            self.entry_names.insert(name.clone());
            if !self.all_names.insert(name.clone()) {
                self.duplicates.insert(name.clone());
            }
        }
        let read = match names.as_slice() {
            [] => return,
            [name] if pins.match_exact(text) == Some(name) => Ok(None),
            [name] => parse_tool(text, name).map(Some),
            _ => Err("its definition has more than one name".to_owned()),
        };
        match read {
            Ok(Some(seen)) => self.listing.observed.push(seen),
            Ok(None) => self.listing.unchanged.extend(names.iter().cloned()),
            Err(why) => {
                let all = names.iter().map(|name| (name.clone(), why.clone()));
                self.unreadable.extend(all);
            }
        }
        self.names.insert(place, names);
    }

    /// The name of an entry if it is unique and the entry is readable.
    pub(super) fn single_name(&self, place: usize) -> Option<&str> {
        let [name] = self.names.get(&place)?.as_slice() else {
            return None;
        };
        let is_single = !self.duplicates.contains(name) && !self.unreadable.contains_key(name);
        is_single.then_some(name)
    }

    /// Whether an entry of the list has a name.
    pub(super) fn has_tool(&self, name: &str) -> bool {
        self.entry_names.contains(name)
    }

    pub(super) fn add_instructions(&mut self, text: &str) {
        let seen = Observation::from_instructions(text);
        if !self.all_names.insert(seen.name.clone()) {
            self.duplicates.insert(seen.name.clone());
        }
        self.listing.observed.push(seen);
    }
}

fn parse_tool(text: &str, name: &str) -> Result<Observation, String> {
    let shared = SharedText::from(text);
    let item = TextItem {
        pointer: Pointer::root(),
        text: &shared,
    };
    let read = canonicalize_with_values(&item, &shared, FormatChoice::Format(Format::Mcp));
    let mut read = read.map_err(|error| format!("its definition cannot be read: {error}"))?;
    let (Some(found), true) = (read.tools.pop(), read.tools.is_empty()) else {
        return Err("its definition is not that of a single tool".to_owned());
    };
    // Here the last of two values counts; another parser may use the first.
    let twice = found.warnings.iter().find_map(|warning| match warning {
        Warning::DuplicateKey(key) => Some(key.pointer.as_str()),
        _ => None,
    });
    if let Some(pointer) = twice {
        let pointer = printable(pointer);
        return Err(format!("its definition has `{pointer}` more than once"));
    }
    let seen = Observation::from_canonicalized(found);
    if seen.name == name {
        Ok(seen)
    } else {
        Err("its definition is read under another name".to_owned())
    }
}

/// The name of a definition that has one.
pub(super) fn tool_name(definition: &RawValue) -> Option<String> {
    names(definition.get()).pop()
}

/// Every name at the top level of a definition, because a parser may use any of them.
fn names(text: &str) -> Vec<String> {
    struct Names;

    impl<'de> Visitor<'de> for Names {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a definition")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Vec<String>, A::Error> {
            let mut names = Vec::new();
            while let Some(key) = members.next_key::<String>()? {
                if key != "name" {
                    members.next_value::<IgnoredAny>()?;
                } else if let serde_json::Value::String(name) = members.next_value()? {
                    names.push(name);
                }
            }
            Ok(names)
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(text);
    // An entry that is not an object has no name and cannot be called.
    deserializer.deserialize_map(Names).unwrap_or_default()
}
