//! Which changes are of text that a model reads, and what the words that came or went bring with them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::keywords::{Position, position};

use crate::change::{Change, Class};
use crate::compare::{Drift, Maker};
use crate::difference::Difference;
use crate::layout::{Facet, Observed};
use crate::rename::name_words;
use crate::text::{Known, addresses, introduced};

/// Keywords that a validator reads. Every other member of a schema is there to be read by people and
/// models.
const NO_TEXT: &[&str] = &[
    "type",
    "enum",
    "const",
    "default",
    "format",
    "pattern",
    "required",
    "dependentRequired",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "$schema",
    "$id",
    "id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$vocabulary",
    "contentEncoding",
    "contentMediaType",
    "x-mcp-header",
];

/// Words that generators of schemas put into titles.
const GENERATED: &[&str] = &[
    "arguments",
    "args",
    "argument",
    "input",
    "inputs",
    "params",
    "parameters",
    "schema",
    "request",
    "output",
    "result",
    "results",
    "response",
    "dict",
    "model",
    "wrapped",
];

/// The deepest schema that is read for text.
const MAX_DEPTH: usize = 128;

/// Finds the changes of text among the changes of a tool, and the text that other changes bring in.
pub(crate) fn classify(
    drift: &mut Drift,
    (old, new): (&Observed<'_>, &Observed<'_>),
    maker: &Maker<'_>,
    tools: &BTreeSet<&str>,
) {
    if drift.changes.is_empty() {
        return;
    }
    let said = everything_said(old.definition);
    let known = Known {
        said: &said,
        tools,
        own: new.name,
    };
    for change in &mut drift.changes {
        reword(change, new.name, known);
    }
    for facet in [Facet::Input, Facet::Output] {
        let brought = brought(drift, (old, new), facet, maker, known);
        drift.changes.extend(brought);
    }
}

/// The text before and after a change of text; none for any other change.
pub(crate) fn texts(change: &Change) -> Option<(String, String)> {
    let is_text = change.class == Class::Text || (change.class == Class::Trust && is_text(change));
    is_text.then(|| (flat(change.before.as_ref()), flat(change.after.as_ref())))
}

/// Whether the place of a change holds text for a model, rather than something a validator reads.
fn is_text(change: &Change) -> bool {
    let last = || change.pointer.segments().last().unwrap_or_default();
    match change.facet {
        Facet::Title | Facet::Description => true,
        Facet::Annotations => last() == "title",
        Facet::Input | Facet::Output => {
            let is_prose = |value: Option<&Value>| {
                let text = value.and_then(Value::as_str);
                text.is_some_and(|text| text.contains(char::is_whitespace))
            };
            match change.rule {
                "title" | "description" | "examples" | "example" | "$comment" | "keyword"
                | "text" => has_text(change.before.as_ref()) || has_text(change.after.as_ref()),
                "default" | "format" | "contentEncoding" | "contentMediaType" => {
                    is_prose(change.after.as_ref())
                }
                _ => false,
            }
        }
        Facet::Name | Facet::Meta | Facet::Icons | Facet::Other | Facet::Result => false,
    }
}

/// Gives a change of text its class.
fn reword(change: &mut Change, tool: &str, known: Known<'_>) {
    if change.class != Class::Behavioural {
        return;
    }
    if change.facet == Facet::Other {
        // No model reads it, but calls may go there.
        let (before, after) = (flat(change.before.as_ref()), flat(change.after.as_ref()));
        let found = addresses(&before, &after, &change.pointer, known);
        if !found.is_empty() {
            change.class = Class::Trust;
            change.reasons.extend(found);
        }
        return;
    }
    if !is_text(change) {
        return;
    }
    let (before, after) = (flat(change.before.as_ref()), flat(change.after.as_ref()));
    if before.split_whitespace().eq(after.split_whitespace()) {
        change.class = Class::Info;
        change.message.push_str(": only its spacing");
        return;
    }
    let is_title = change.facet == Facet::Title || ends_in_title(&change.pointer);
    let says_nothing = |title: &str| is_generated(title, &change.pointer, tool);
    if is_title && says_nothing(&before) && says_nothing(&after) {
        change.class = Class::Info;
        change.message.push_str(": it says what the name says");
        return;
    }
    change.class = Class::Text;
    suspect(change, &before, &after, known);
}

fn suspect(change: &mut Change, before: &str, after: &str, known: Known<'_>) {
    let found = introduced(before, after, &change.pointer, known);
    if !found.is_empty() {
        change.class = change.class.max(Class::Trust);
        change.reasons.extend(found);
    }
}

fn ends_in_title(at: &Pointer) -> bool {
    at.segments().last().is_some_and(|last| last == "title")
}

/// Whether a title only repeats the names of the tool and of what it stands on.
fn is_generated(title: &str, at: &Pointer, tool: &str) -> bool {
    let mut names: BTreeSet<String> = at.segments().flat_map(|it| name_words(&it)).collect();
    names.extend(name_words(tool));
    name_words(title)
        .iter()
        .all(|word| names.contains(word) || GENERATED.contains(&word.as_str()))
}

/// A change, and the text that came with it, by place.
type Brought<'b> = (&'b Change, Vec<(Pointer, &'b str)>);

/// Text that came as a part of another change, such as the description of an argument that was added.
fn brought(
    drift: &Drift,
    (old, new): (&Observed<'_>, &Observed<'_>),
    facet: Facet,
    maker: &Maker<'_>,
    known: Known<'_>,
) -> Vec<Change> {
    let (Some(place), Some(schema)) = (new.layout.place(facet), new.facet(facet)) else {
        return Vec::new();
    };
    if old.facet(facet) == Some(schema) {
        return Vec::new();
    }
    let before: BTreeMap<Pointer, &str> = old.facet(facet).map(prose).unwrap_or_default();
    let texts: BTreeSet<&str> = before.values().copied().collect();
    // Which text each change brings, by the place of the change.
    let mut brought: BTreeMap<&Pointer, Brought<'_>> = BTreeMap::new();
    for (at, text) in prose(schema) {
        if texts.contains(text) || text.trim().is_empty() {
            continue;
        }
        let whole = place.join(&at);
        let hosts = drift.changes.iter().filter(|it| it.facet == facet);
        let host = hosts
            .filter(|it| covers(it, &whole))
            .max_by_key(|it| it.pointer.as_str().len());
        match host {
            Some(host) if !is_text(host) => {
                let known = brought.entry(&host.pointer);
                known
                    .or_insert_with(|| (host, Vec::new()))
                    .1
                    .push((at, text));
            }
            _ => {}
        }
    }
    let mut changes = Vec::new();
    for (host, mut texts) in brought.into_values() {
        texts.retain(|(at, text)| !(ends_in_title(at) && is_generated(text, at, new.name)));
        let mut change = match texts.as_slice() {
            [] => continue,
            [(at, text)] => {
                let after = Value::from(*text);
                let earlier = before
                    .get(&earlier_place(at, host))
                    .map(|it| Value::from(*it));
                let difference = Difference {
                    pointer: place.join(at),
                    before: earlier.as_ref(),
                    after: Some(&after),
                };
                let message = format!("text that a model reads came with it: {}", subject(at));
                maker.change("text", facet, Class::Text, &difference, message)
            }
            several => {
                let members = several.iter();
                let members = members.map(|(at, text)| (at.to_string(), Value::from(*text)));
                let after = Value::Object(members.collect::<Object>());
                let difference = Difference {
                    pointer: host.pointer.clone(),
                    before: None,
                    after: Some(&after),
                };
                let message = format!(
                    "text that a model reads came with it in {} places",
                    several.len()
                );
                maker.change("text", facet, Class::Text, &difference, message)
            }
        };
        let earlier = flat(change.before.as_ref());
        for (_, text) in &texts {
            suspect(&mut change, &earlier, text, known);
        }
        changes.push(change);
    }
    changes
}

/// What a text is, and of what.
fn subject(at: &Pointer) -> String {
    let places: Vec<String> = at.segments().collect();
    match places.as_slice() {
        [.., map, name, keyword] if map == "properties" => format!("`{keyword}` of `{name}`"),
        [.., keyword] => format!("`{keyword}`"),
        [] => "text".to_owned(),
    }
}

/// Where the same text would have stood before a rename.
fn earlier_place(at: &Pointer, host: &Change) -> Pointer {
    let Some(rename) = &host.rename else {
        return at.clone();
    };
    let mut is_inside = false;
    let places = at.segments().map(|place| {
        let is_name = is_inside && place == rename.to;
        is_inside = place == "properties";
        if is_name { rename.from.clone() } else { place }
    });
    let places: Vec<String> = places.collect();
    Pointer::of(places.iter().map(String::as_str))
}

/// Whether a change is of something a place lies in.
fn covers(change: &Change, place: &Pointer) -> bool {
    let lies_in = |outer: &Pointer| {
        let rest = place.as_str().strip_prefix(outer.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let renamed = change.rename.as_ref().map(|rename| {
        let mut pointer = change.pointer.clone();
        pointer.pop();
        pointer.child(&rename.to)
    });
    lies_in(&change.pointer) || renamed.is_some_and(|renamed| lies_in(&renamed))
}

/// The text of a schema, by place.
fn prose(schema: &Value) -> BTreeMap<Pointer, &str> {
    let mut found = BTreeMap::new();
    collect(schema, &Pointer::root(), 0, &mut found);
    found
}

fn collect<'v>(
    schema: &'v Value,
    at: &Pointer,
    depth: usize,
    found: &mut BTreeMap<Pointer, &'v str>,
) {
    let Some(members) = schema.as_object().filter(|_| depth < MAX_DEPTH) else {
        return;
    };
    for (keyword, value) in members {
        let at = at.child(keyword);
        match (position(keyword), value) {
            (Some(Position::Map), Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    collect(schema, &at.child(name), depth + 1, found);
                }
            }
            (Some(Position::List | Position::OneOrList), Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    collect(schema, &at.index(index), depth + 1, found);
                }
            }
            (Some(_), schema) => collect(schema, &at, depth + 1, found),
            (None, _) if NO_TEXT.contains(&keyword.as_str()) => {}
            (None, value) => strings(value, &at, depth, found),
        }
    }
}

fn strings<'v>(
    value: &'v Value,
    at: &Pointer,
    depth: usize,
    found: &mut BTreeMap<Pointer, &'v str>,
) {
    if depth >= MAX_DEPTH {
        return;
    }
    match value {
        Value::String(text) => {
            found.insert(at.clone(), text);
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                strings(item, &at.index(index), depth + 1, found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                strings(member, &at.child(key), depth + 1, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn has_text(value: Option<&Value>) -> bool {
    let mut found = BTreeMap::new();
    if let Some(value) = value {
        strings(value, &Pointer::root(), 0, &mut found);
    }
    !found.is_empty()
}

/// All text of a value, one string per line.
fn flat(value: Option<&Value>) -> String {
    if let Some(Value::String(text)) = value {
        return text.clone();
    }
    let mut found = BTreeMap::new();
    if let Some(value) = value {
        strings(value, &Pointer::root(), 0, &mut found);
    }
    found.into_values().collect::<Vec<_>>().join("\n")
}

/// Every string of a definition, in lower case.
fn everything_said(definition: &Value) -> String {
    let mut found = BTreeMap::new();
    strings(definition, &Pointer::root(), 0, &mut found);
    let texts = found.into_values().collect::<Vec<_>>().join("\n");
    texts.to_lowercase()
}
