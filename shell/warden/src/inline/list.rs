//! Reads what a server lists. What is exactly as pinned is only counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use toolwarden_canon::{Item, Source, Warning, canonicalize_item};
use toolwarden_drift::text::printable;
use toolwarden_model::Format;
use toolwarden_model::json::Pointer;

use crate::judge::Listing;
use crate::observation::Observation;
use crate::pins::Pins;

/// A list as it is held to its pins, and what cannot be.
#[derive(Debug, Default)]
pub(super) struct ReadList {
    pub(super) listing: Listing,
    /// Names of entries that nobody can read, or that two parsers may read differently, and why.
    pub(super) unreadable: BTreeMap<String, String>,
    /// Names that several entries have.
    pub(super) doubled: BTreeSet<String>,
    /// The names of the entries, by their place in the list.
    pub(super) names: BTreeMap<usize, Vec<String>>,
    /// Whether the server has to be reviewed, and nothing of it was approved so far.
    pub(super) is_unreviewed: bool,
    /// The names of entries.
    of_entries: BTreeSet<String>,
    /// These, and that of the instructions.
    seen: BTreeSet<String>,
}

impl ReadList {
    pub(super) fn new(whole: bool) -> Self {
        Self {
            listing: Listing {
                whole,
                ..Listing::default()
            },
            ..Self::default()
        }
    }

    pub(super) fn add_tool(&mut self, place: usize, tool: &RawValue, pins: &Pins<'_>) {
        let text = tool.get();
        let names = names(text);
        for name in &names {
            self.of_entries.insert(name.clone());
            if !self.seen.insert(name.clone()) {
                self.doubled.insert(name.clone());
            }
        }
        let read = match names.as_slice() {
            [] => return,
            [name] if pins.holds(text) == Some(name) => Ok(None),
            [name] => read(text, name).map(Some),
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

    /// Whether an entry is the only one of its name, and can be read.
    pub(super) fn single_name(&self, place: usize) -> Option<&str> {
        let [name] = self.names.get(&place)?.as_slice() else {
            return None;
        };
        let is_single = !self.doubled.contains(name) && !self.unreadable.contains_key(name);
        is_single.then_some(name)
    }

    /// Whether an entry of the list has a name.
    pub(super) fn has_tool(&self, name: &str) -> bool {
        self.of_entries.contains(name)
    }

    pub(super) fn add_instructions(&mut self, text: &str) {
        let seen = Observation::of_instructions(text);
        if !self.seen.insert(seen.name.clone()) {
            self.doubled.insert(seen.name.clone());
        }
        self.listing.observed.push(seen);
    }
}

fn read(text: &str, name: &str) -> Result<Observation, String> {
    let item = Item {
        pointer: Pointer::root(),
        text,
    };
    let read = canonicalize_item(&item, Source::Format(Format::Mcp));
    let mut read = read.map_err(|error| format!("its definition cannot be read: {error}"))?;
    let (Some(found), true) = (read.tools.pop(), read.tools.is_empty()) else {
        return Err("its definition is not the one of one tool".to_owned());
    };
    // The last of two values counts here, and the first may for whoever reads it next.
    let twice = found.warnings.iter().find_map(|warning| match warning {
        Warning::DuplicateKey(key) => Some(key.pointer.as_str()),
        _ => None,
    });
    if let Some(pointer) = twice {
        let pointer = printable(pointer);
        return Err(format!("its definition says `{pointer}` more than once"));
    }
    let seen = Observation::of(found.tool);
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

/// Every name on the first level of a definition, in whatever order a parser may take them.
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
    // What is no object has no name, and nobody can call it.
    deserializer.deserialize_map(Names).unwrap_or_default()
}
