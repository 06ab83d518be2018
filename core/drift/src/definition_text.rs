//! The text of a definition: every string and every key that a model may read as more than a name.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_model::keywords::{SubschemaForm, subschema_form};

use crate::rename::name_words;
use crate::text::{address, is_secret_or_path};

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
    "type",
    "required",
    "dependentRequired",
    "$schema",
    "$id",
    "id",
    "$vocabulary",
    "x-mcp-header",
];

/// Keywords that refer to another schema.
const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// Members that always hold text.
pub(crate) const PROSE: &[&str] = &["description", "summary", "title"];

/// Where the published metaschemas are.
const METASCHEMAS: [&str; 2] = ["https://json-schema.org/", "http://json-schema.org/"];

/// The longest reference to a published metaschema.
const MOST_METASCHEMA_BYTES: usize = 64;

/// A name with more words than this is text.
const MOST_NAME_WORDS: usize = 4;
/// A name of a definition with more words than this is text: generators join the names of several types.
const MOST_TYPE_WORDS: usize = 8;
/// A name with more letters than this in a script without spaces is text.
const MOST_NAME_LETTERS: usize = 12;
/// A pattern with more words than this in a row is text.
const MOST_PATTERN_WORDS: usize = 3;

/// The maximum depth that is searched for text.
const MAX_DEPTH: usize = 128;

/// The text of a schema with its places, in document order. A key that is text has the place of its
/// member.
pub(crate) fn schema_texts(schema: &Value) -> Vec<(Pointer, &str)> {
    let mut found = Vec::new();
    collect(schema, &Pointer::root(), 0, &mut found);
    found
}

fn collect<'v>(schema: &'v Value, at: &Pointer, depth: usize, found: &mut Vec<(Pointer, &'v str)>) {
    let Some(members) = schema.as_object().filter(|_| depth < MAX_DEPTH) else {
        return;
    };
    for (keyword, value) in members {
        let at = at.child(keyword);
        let form = subschema_form(keyword);
        if form.is_none() && says_something(keyword) {
            found.push((at.clone(), keyword));
        }
        match (form, value) {
            (Some(SubschemaForm::Map), Value::Object(schemas)) => {
                let is_text = match keyword.as_str() {
                    "patternProperties" => pattern_says_something,
                    _ => says_something,
                };
                for (name, schema) in schemas {
                    let at = at.child(name);
                    if is_text(name) {
                        found.push((at.clone(), name));
                    }
                    match schema {
                        Value::Object(_) => collect(schema, &at, depth + 1, found),
                        // The lists of `dependencies`, and what is not a schema.
                        other => names(other, &at, depth + 1, found),
                    }
                }
            }
            (Some(SubschemaForm::List | SubschemaForm::OneOrList), Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    collect(schema, &at.index(index), depth + 1, found);
                }
            }
            (Some(_), schema @ Value::Object(_)) => collect(schema, &at, depth + 1, found),
            (Some(_), other) => names(other, &at, depth + 1, found),
            (None, Value::String(pattern)) if keyword == "pattern" => {
                if pattern_says_something(pattern) {
                    found.push((at, pattern));
                }
            }
            (None, Value::String(reference)) if REFERENCES.contains(&keyword.as_str()) => {
                if reference_says_something(reference) {
                    found.push((at, reference));
                }
            }
            (None, value) if VALUES.contains(&keyword.as_str()) => {
                names(value, &at, depth, found);
            }
            (None, value) => strings(value, &at, depth, found),
        }
    }
}

/// The strings and keys of a value that say more than a name does.
fn names<'v>(value: &'v Value, at: &Pointer, depth: usize, found: &mut Vec<(Pointer, &'v str)>) {
    let mut values = Vec::new();
    strings(value, at, depth, &mut values);
    values.retain(|(_, text)| says_something(text));
    found.append(&mut values);
}

/// The strings of a value, and the keys that say more than a name does.
fn strings<'v>(value: &'v Value, at: &Pointer, depth: usize, found: &mut Vec<(Pointer, &'v str)>) {
    if depth >= MAX_DEPTH {
        return;
    }
    match value {
        Value::String(text) => found.push((at.clone(), text)),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                strings(item, &at.index(index), depth + 1, found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                let at = at.child(key);
                if says_something(key) {
                    found.push((at.clone(), key));
                }
                strings(member, &at, depth + 1, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a string says more than a name does: it has spaces, many words, an address, a path or a
/// secret.
pub(crate) fn says_something(text: &str) -> bool {
    let is_metaschema = text.len() <= MOST_METASCHEMA_BYTES
        && METASCHEMAS.iter().any(|known| text.starts_with(known))
        && !text.contains(char::is_whitespace);
    !is_metaschema && (has_words(text) || address(text).is_some() || is_secret_or_path(text))
}

/// Whether a string is more than a name or an address.
pub(crate) fn has_words(text: &str) -> bool {
    if text.trim().contains(char::is_whitespace) {
        return true;
    }
    is_long(text, MOST_NAME_WORDS) && address(text).is_none()
}

/// Whether a string without spaces has more words than this, or many letters of another script. Numbers
/// and single letters are not words: `claude-3-5-sonnet-20241022` is a name.
fn is_long(text: &str, most: usize) -> bool {
    let words = name_words(text);
    let words = words
        .iter()
        .filter(|word| word.chars().count() > 1 && word.chars().all(char::is_alphabetic));
    let letters = || text.chars().filter(|c| c.is_alphabetic());
    words.count() > most
        || (letters().any(|c| !c.is_ascii()) && letters().count() > MOST_NAME_LETTERS)
}

/// Whether a text is the name of a type in `$defs`, as generators write it:
/// `ListPullRequestReviewCommentsInput`, `shop__models__orders__LineItem`.
pub(crate) fn is_type_name(at: &Pointer, text: &str) -> bool {
    let places: Vec<String> = at.segments().collect();
    let is_definition = matches!(places.as_slice(), [.., map, name]
        if matches!(map.as_str(), "$defs" | "definitions") && name == text);
    let mut parts = text.split(|c: char| !c.is_ascii_alphanumeric());
    let last = parts.rfind(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()));
    is_definition
        && last.is_some_and(|it| it.starts_with(|c: char| c.is_ascii_uppercase()))
        && !text.contains(char::is_whitespace)
        && address(text).is_none()
        && !is_long(text, MOST_TYPE_WORDS)
}

/// Whether a pattern contains a sentence or an address rather than an expression.
fn pattern_says_something(pattern: &str) -> bool {
    let mut row = 0;
    for word in pattern.split([' ', '_', '-', '+']) {
        let is_word = word.chars().count() > 1 && word.chars().all(char::is_alphabetic);
        row = if is_word { row + 1 } else { 0 };
        if row > MOST_PATTERN_WORDS {
            return true;
        }
    }
    let plain = pattern.replace('\\', "");
    let hosts = plain.split("://").skip(1);
    let mut hosts = hosts.map(|rest| {
        rest.split(|c: char| !c.is_alphanumeric() && c != '.' && c != '-')
            .next()
            .unwrap_or_default()
    });
    hosts.any(|host| address(host).is_some())
}

/// Whether a reference is more than the place of a schema. The names on its path count where they are
/// defined.
fn reference_says_something(reference: &str) -> bool {
    let spaced = reference.contains(char::is_whitespace) || reference.contains("%20");
    spaced || (!reference.starts_with('#') && says_something(reference))
}

/// Whether any string of a value, or any key, says more than a name does.
pub(crate) fn speaks(value: &Value) -> bool {
    match value {
        Value::String(text) => has_words(text) || is_secret_or_path(text),
        Value::Array(items) => items.iter().any(speaks),
        Value::Object(members) => members.iter().any(|(key, member)| {
            says_something(key)
                || speaks(member)
                || (PROSE.contains(&key.as_str()) && member.is_string())
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a value has any string, or a key that says more than a name does.
pub(crate) fn has_text(value: Option<&Value>) -> bool {
    let mut found = Vec::new();
    if let Some(value) = value {
        strings(value, &Pointer::root(), 0, &mut found);
    }
    !found.is_empty()
}

/// All text of a value, one string per line, in the order of its places.
pub(crate) fn join_text(value: Option<&Value>) -> String {
    if let Some(Value::String(text)) = value {
        return text.clone();
    }
    let mut found = Vec::new();
    if let Some(value) = value {
        strings(value, &Pointer::root(), 0, &mut found);
    }
    // The order of members says nothing.
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    let texts = found.into_iter().map(|(_, text)| text);
    texts.collect::<Vec<_>>().join("\n")
}

/// Every string of a definition and every key that is text, in lower case.
pub(crate) fn all_text(definition: &Value) -> String {
    let mut found = Vec::new();
    strings(definition, &Pointer::root(), 0, &mut found);
    let texts = found.into_iter().map(|(_, text)| text);
    texts.collect::<Vec<_>>().join("\n").to_lowercase()
}

/// The strings of a schema by place; where a key is text too, the string wins.
pub(crate) fn by_place<'v>(texts: &[(Pointer, &'v str)]) -> BTreeMap<Pointer, &'v str> {
    texts.iter().cloned().collect()
}
