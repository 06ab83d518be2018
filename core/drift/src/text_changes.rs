//! Finds the changes of text that a model reads, and what the added or removed words introduce.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};
use toolwarden_model::keywords::{SubschemaForm, subschema_form};

use crate::change::{Change, ChangeClass};
use crate::compare::{ChangeBuilder, Drift};
use crate::difference::Difference;
use crate::facet::{Facet, ObservedDefinition};
use crate::rename::name_words;
use crate::text::{AdditionContext, added_addresses, address, find_additions};

/// Keywords that a validator reads and whose values the author did not write as prose.
const NON_TEXT_KEYWORDS: &[&str] = &[
    "type",
    "pattern",
    "required",
    "dependentRequired",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "$schema",
    "$id",
    "id",
    "$vocabulary",
    "x-mcp-header",
];

/// Keywords whose values are mostly identifiers. A model reads them all the same, so a value that says
/// more than a name counts as text.
const VALUES: &[&str] = &[
    "enum",
    "const",
    "default",
    "format",
    "contentEncoding",
    "contentMediaType",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
];

/// Members that always hold text.
const PROSE: &[&str] = &["description", "summary", "title"];

/// A name with more words than this is text.
const MOST_NAME_WORDS: usize = 4;
/// A name with more letters than this in a script without spaces is text.
const MOST_NAME_LETTERS: usize = 12;

/// Words that schema generators put into titles.
const GENERATED_TITLE_WORDS: &[&str] = &[
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

/// The maximum schema depth that is searched for text.
const MAX_DEPTH: usize = 128;

/// Finds the text changes of a tool, and the text that other changes introduce.
pub(crate) fn classify(
    drift: &mut Drift,
    (old, new): (&ObservedDefinition<'_>, &ObservedDefinition<'_>),
    maker: &ChangeBuilder<'_>,
    tools: &BTreeSet<&str>,
) {
    if drift.changes.is_empty() {
        return;
    }
    let said = all_text(old.definition);
    let known = AdditionContext {
        old_text: &said,
        tools,
        tool_name: new.name,
    };
    for change in &mut drift.changes {
        classify_text_change(change, new.name, known);
    }
    for facet in [Facet::Input, Facet::Output] {
        let brought = text_added_by_changes(drift, (old, new), facet, maker, known);
        drift.changes.extend(brought);
    }
}

/// The text before and after a change of text; `None` for any other change.
pub(crate) fn texts(change: &Change) -> Option<(String, String)> {
    let is_text = change.class == ChangeClass::Text
        || (change.class == ChangeClass::Trust && is_text(change));
    is_text.then(|| {
        (
            join_text(change.before.as_ref()),
            join_text(change.after.as_ref()),
        )
    })
}

/// Whether the place of a change holds text for a model, rather than input for a validator.
fn is_text(change: &Change) -> bool {
    let last = || change.pointer.segments().last().unwrap_or_default();
    match change.facet {
        Facet::Title | Facet::Description => true,
        Facet::Annotations | Facet::Other => {
            let says = |value: Option<&Value>| match value {
                Some(value) if PROSE.contains(&last().as_str()) => has_text(Some(value)),
                Some(value) => speaks(value),
                None => false,
            };
            says(change.before.as_ref()) || says(change.after.as_ref())
        }
        Facet::Input | Facet::Output => {
            let is_prose = |value: Option<&Value>| {
                let is_address = |text: &str| address(text).is_some();
                value.is_some_and(|it| speaks(it) || it.as_str().is_some_and(is_address))
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
        Facet::Name | Facet::Meta | Facet::Icons | Facet::Result => false,
    }
}

/// Sets the class of a text change.
fn classify_text_change(change: &mut Change, tool: &str, known: AdditionContext<'_>) {
    if change.class != ChangeClass::Behavioural {
        return;
    }
    if !is_text(change) && matches!(change.facet, Facet::Other | Facet::Annotations) {
        // A model learns nothing from it, but calls may go there.
        let (before, after) = (
            join_text(change.before.as_ref()),
            join_text(change.after.as_ref()),
        );
        let found = added_addresses(&before, &after, &change.pointer, known);
        if !found.is_empty() {
            change.class = ChangeClass::Trust;
            change.reasons.extend(found);
        }
        return;
    }
    if !is_text(change) {
        return;
    }
    let (before, after) = (
        join_text(change.before.as_ref()),
        join_text(change.after.as_ref()),
    );
    if before.split_whitespace().eq(after.split_whitespace()) {
        change.class = ChangeClass::Info;
        change.message.push_str(": only its spacing");
        return;
    }
    let is_title = change.facet == Facet::Title || ends_in_title(&change.pointer);
    let says_nothing = |title: &str| is_generated(title, &change.pointer, tool);
    if is_title && says_nothing(&before) && says_nothing(&after) {
        change.class = ChangeClass::Info;
        change.message.push_str(": it repeats the name");
        return;
    }
    change.class = ChangeClass::Text;
    attach_suspicions(change, &before, &after, known);
}

fn attach_suspicions(change: &mut Change, before: &str, after: &str, known: AdditionContext<'_>) {
    let found = find_additions(before, after, &change.pointer, known);
    if !found.is_empty() {
        change.class = change.class.max(ChangeClass::Trust);
        change.reasons.extend(found);
    }
}

fn ends_in_title(at: &Pointer) -> bool {
    at.segments().last().is_some_and(|last| last == "title")
}

/// Whether a title only repeats the names of the tool and of the member it belongs to.
fn is_generated(title: &str, at: &Pointer, tool: &str) -> bool {
    let mut names: BTreeSet<String> = at.segments().flat_map(|it| name_words(&it)).collect();
    names.extend(name_words(tool));
    name_words(title)
        .iter()
        .all(|word| names.contains(word) || GENERATED_TITLE_WORDS.contains(&word.as_str()))
}

/// A change and the text that it added, by location.
type AddedText<'b> = (&'b Change, Vec<(Pointer, &'b str)>);

/// Text that arrived with another change, such as the description of an added argument.
fn text_added_by_changes(
    drift: &Drift,
    (old, new): (&ObservedDefinition<'_>, &ObservedDefinition<'_>),
    facet: Facet,
    maker: &ChangeBuilder<'_>,
    known: AdditionContext<'_>,
) -> Vec<Change> {
    let (Some(place), Some(schema)) = (new.layout.place(facet), new.facet(facet)) else {
        return Vec::new();
    };
    if old.facet(facet) == Some(schema) {
        return Vec::new();
    }
    let before: BTreeMap<Pointer, &str> = old.facet(facet).map(schema_texts).unwrap_or_default();
    let texts: BTreeSet<&str> = before.values().copied().collect();
    // The text that each change introduces, keyed by the place of the change.
    let mut brought: BTreeMap<&Pointer, AddedText<'_>> = BTreeMap::new();
    for (at, text) in schema_texts(schema) {
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
                maker.change("text", facet, ChangeClass::Text, &difference, message)
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
                maker.change("text", facet, ChangeClass::Text, &difference, message)
            }
        };
        let earlier = join_text(change.before.as_ref());
        for (_, text) in &texts {
            attach_suspicions(&mut change, &earlier, text, known);
            if !text.contains(char::is_whitespace) && address(text).is_none() {
                let words = name_words(text).join(" ");
                attach_suspicions(&mut change, &earlier, &words, known);
            }
        }
        changes.push(change);
    }
    changes
}

/// What kind of text it is, and which member it describes.
fn subject(at: &Pointer) -> String {
    let places: Vec<String> = at.segments().collect();
    match places.as_slice() {
        [.., map, name, keyword] if map == "properties" => format!("`{keyword}` of `{name}`"),
        [.., keyword] => format!("`{keyword}`"),
        [] => "text".to_owned(),
    }
}

/// The place that the same text had before a rename.
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

/// Whether a change is of a member that contains this place.
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
fn schema_texts(schema: &Value) -> BTreeMap<Pointer, &str> {
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
        match (subschema_form(keyword), value) {
            (Some(SubschemaForm::Map), Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    let at = at.child(name);
                    if says_something(name) {
                        found.insert(at.clone(), name);
                    }
                    collect(schema, &at, depth + 1, found);
                }
            }
            (Some(SubschemaForm::List | SubschemaForm::OneOrList), Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    collect(schema, &at.index(index), depth + 1, found);
                }
            }
            (Some(_), schema) => collect(schema, &at, depth + 1, found),
            (None, _) if NON_TEXT_KEYWORDS.contains(&keyword.as_str()) => {}
            (None, value) if VALUES.contains(&keyword.as_str()) => {
                let mut values = BTreeMap::new();
                strings(value, &at, depth, &mut values);
                values.retain(|_, text| says_something(text));
                found.append(&mut values);
            }
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

/// Whether a string says more than a name does: it has spaces, many words, or an address.
fn says_something(text: &str) -> bool {
    has_words(text) || address(text).is_some()
}

/// Whether a string is more than a name or an address.
fn has_words(text: &str) -> bool {
    if text.trim().contains(char::is_whitespace) {
        return true;
    }
    let letters = || text.chars().filter(|c| c.is_alphabetic());
    let is_long = name_words(text).len() > MOST_NAME_WORDS
        || (letters().any(|c| !c.is_ascii()) && letters().count() > MOST_NAME_LETTERS);
    is_long && address(text).is_none()
}

/// Whether any string of a value, or any key, says more than a name does.
fn speaks(value: &Value) -> bool {
    match value {
        Value::String(text) => has_words(text),
        Value::Array(items) => items.iter().any(speaks),
        Value::Object(members) => members.iter().any(|(key, member)| {
            has_words(key)
                || speaks(member)
                || (PROSE.contains(&key.as_str()) && member.is_string())
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
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
fn join_text(value: Option<&Value>) -> String {
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
fn all_text(definition: &Value) -> String {
    let mut found = BTreeMap::new();
    strings(definition, &Pointer::root(), 0, &mut found);
    let texts = found.into_values().collect::<Vec<_>>().join("\n");
    texts.to_lowercase()
}
