//! Finds the changes of text that a model reads, and what the added or removed words introduce.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};

use crate::change::{Change, ChangeClass};
use crate::change_builder::ChangeBuilder;
use crate::definition_drift::Drift;
use crate::definition_text::{
    PROSE, all_text, by_place, has_text, is_type_name, join_text, says_something, schema_texts,
    speaks,
};
use crate::difference::Difference;
use crate::facet::{Facet, ObservedDefinition};
use crate::moved_text::is_same_text;
use crate::place_text::{MAX_VISITS, replaced_texts};
use crate::rename::name_words;
use crate::text::{AdditionContext, added_addresses, address, find_additions, is_ambiguous_host};

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

/// Members of a definition that hold examples of arguments.
const EXAMPLES: &[&str] = &["input_examples", "inputExamples", "examples", "example"];

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
        classify_text_change(change, (old, new), known);
    }
    for facet in [Facet::Input, Facet::Output] {
        let brought = text_added_by_changes(drift, (old, new), facet, maker, known);
        drift.changes.extend(brought);
        let replaced = text_replaced_at_places(drift, (old, new), facet, maker, known);
        drift.changes.extend(replaced);
    }
}

/// The text before and after, if the change is of text that a model reads.
#[must_use]
pub fn changed_texts(change: &Change) -> Option<(String, String)> {
    let is_text = change.class == ChangeClass::Text
        || (change.class == ChangeClass::Trust && is_text(change));
    is_text.then(|| before_and_after(change))
}

/// The text before and after a change, with the key of a member that came or went.
fn before_and_after(change: &Change) -> (String, String) {
    let key = change.pointer.segments().last().unwrap_or_default();
    let is_key = change.rule != "text" && says_something(&key);
    if is_example(change) {
        let text = |value: Option<&Value>| match value {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string().replace(',', ", "),
            None => String::new(),
        };
        return (text(change.before.as_ref()), text(change.after.as_ref()));
    }
    let text = |value: Option<&Value>| match value {
        Some(value) if is_key => format!("{key}\n{}", join_text(Some(value))),
        value => join_text(value),
    };
    match (change.before.as_ref(), change.after.as_ref()) {
        (Some(before), Some(after)) => (join_text(Some(before)), join_text(Some(after))),
        (before, after) => (text(before), text(after)),
    }
}

/// Whether a change is of examples of arguments.
fn is_example(change: &Change) -> bool {
    match change.evidence.facet {
        Facet::Other => {
            let mut outer = change.pointer.segments();
            outer.any(|name| EXAMPLES.contains(&name.as_str()))
        }
        _ => matches!(change.rule, "examples" | "example"),
    }
}

/// Whether the place of a change holds text for a model, rather than input for a validator.
fn is_text(change: &Change) -> bool {
    let last = || change.pointer.segments().last().unwrap_or_default();
    let came_or_went = change.before.is_none() || change.after.is_none();
    match change.evidence.facet {
        Facet::Title | Facet::Description => true,
        // A model imitates examples, whatever they hold.
        Facet::Other if is_example(change) => true,
        Facet::Annotations | Facet::Other => {
            let says = |value: Option<&Value>| match value {
                Some(value) if PROSE.contains(&last().as_str()) => has_text(Some(value)),
                Some(value) => speaks(value),
                None => false,
            };
            let is_key = || came_or_went && says_something(&last());
            says(change.before.as_ref()) || says(change.after.as_ref()) || is_key()
        }
        Facet::Input | Facet::Output => {
            let is_prose = |value: Option<&Value>| {
                let is_address = |text: &str| address(text).is_some() || is_ambiguous_host(text);
                value.is_some_and(|it| speaks(it) || it.as_str().is_some_and(is_address))
            };
            let is_key = || change.rule == "keyword" && came_or_went && says_something(&last());
            match change.rule {
                // A format is a word for a model too: it tells how to write a value.
                "examples" | "example" => true,
                "title" | "description" | "$comment" | "keyword" | "text" | "format"
                | "contentEncoding" | "contentMediaType" => {
                    has_text(change.before.as_ref()) || has_text(change.after.as_ref()) || is_key()
                }
                "default" => is_prose(change.after.as_ref()),
                _ => false,
            }
        }
        Facet::Name | Facet::Meta | Facet::Icons | Facet::Result => false,
    }
}

/// Sets the class of a text change.
fn classify_text_change(
    change: &mut Change,
    (old, new): (&ObservedDefinition<'_>, &ObservedDefinition<'_>),
    known: AdditionContext<'_>,
) {
    if change.class != ChangeClass::Behavioural {
        return;
    }
    let (before, after) = before_and_after(change);
    if !is_text(change) {
        if matches!(change.evidence.facet, Facet::Other | Facet::Annotations) {
            // A model learns nothing from it, but calls may go there.
            let found = added_addresses(&before, &after, &change.pointer, known);
            if !found.is_empty() {
                change.class = ChangeClass::Trust;
                change.evidence.reasons.extend(found);
            }
        }
        return;
    }
    if before.split_whitespace().eq(after.split_whitespace()) {
        // Numbers and switches beside the same text are no matter of spacing.
        if has_same_text_only(change) {
            change.class = ChangeClass::Info;
            change.message.push_str(": only its spacing");
        }
        return;
    }
    let is_title = change.evidence.facet == Facet::Title || ends_in_title(&change.pointer);
    let says_nothing = |title: &str| is_generated(title, &change.pointer, new.name);
    if is_title && says_nothing(&before) && says_nothing(&after) {
        change.class = ChangeClass::Info;
        change.message.push_str(": it repeats the name");
        return;
    }
    if change.rule != "text" && is_same_text(change, (old, new)) {
        change.class = ChangeClass::Info;
        change.message.push_str(": the same text in another place");
        return;
    }
    change.class = ChangeClass::Text;
    attach_suspicions(change, &before, &after, known);
    if matches!(change.rule, "default" | "const") && is_ambiguous_host(&after) {
        attach_suspicions(change, "", &format!("https://{after}"), known);
    }
}

/// Whether both values of a change are equal but for the spacing of their text.
fn has_same_text_only(change: &Change) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else {
        return true;
    };
    without_spacing(before) == without_spacing(after)
}

fn without_spacing(value: &Value) -> Value {
    match value {
        Value::String(text) => {
            let words: Vec<&str> = text.split_whitespace().collect();
            Value::from(words.join(" "))
        }
        Value::Array(items) => items.iter().map(without_spacing).collect(),
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(key, it)| (key.clone(), without_spacing(it)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

fn attach_suspicions(change: &mut Change, before: &str, after: &str, known: AdditionContext<'_>) {
    let found = find_additions(before, after, &change.pointer, known);
    if !found.is_empty() {
        change.class = change.class.max(ChangeClass::Trust);
        change.evidence.reasons.extend(found);
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
    let before = old.facet(facet).map(schema_texts).unwrap_or_default();
    let texts: BTreeSet<&str> = before.iter().map(|(_, text)| *text).collect();
    let before = by_place(&before);
    // The text that each change introduces, keyed by the place of the change.
    let mut brought: BTreeMap<&Pointer, AddedText<'_>> = BTreeMap::new();
    for (at, text) in schema_texts(schema) {
        if texts.contains(text) || text.trim().is_empty() {
            continue;
        }
        let whole = place.join(&at);
        let hosts = drift.changes.iter().filter(|it| it.evidence.facet == facet);
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
        texts.retain(|(at, text)| !is_type_name(at, text) || instructs(text, at, known));
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
                let message = format!("text that a model reads changed as well: {}", subject(at));
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
                    "text that a model reads changed as well in {} places",
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

/// Text about an argument that changed although no text of the schema did: a reference leads to another
/// definition, or choices changed places and left their descriptions behind.
fn text_replaced_at_places(
    drift: &Drift,
    (old, new): (&ObservedDefinition<'_>, &ObservedDefinition<'_>),
    facet: Facet,
    maker: &ChangeBuilder<'_>,
    known: AdditionContext<'_>,
) -> Vec<Change> {
    let is_here = |it: &&Change| it.evidence.facet == facet;
    let of_schema = |it: &Change| !is_text(it);
    let (Some(place), Some(before), Some(after)) =
        (new.layout.place(facet), old.facet(facet), new.facet(facet))
    else {
        return Vec::new();
    };
    if !drift.changes.iter().filter(is_here).any(of_schema) {
        return Vec::new();
    }
    let Some(found) = replaced_texts(before, after) else {
        return vec![texts_not_compared(facet, place, maker)];
    };
    let is_reported = |at: &Pointer| {
        let at = place.join(at);
        let mut changes = drift.changes.iter().filter(is_here);
        changes.any(|it| it.pointer == at || (is_text(it) && covers(it, &at)))
    };
    let mut changes = Vec::new();
    for text in found {
        let sides = [&text.before, &text.after].into_iter().flatten();
        if sides.map(|(at, _)| at).any(is_reported) {
            continue;
        }
        let Some((at, _)) = text.after.as_ref().or(text.before.as_ref()) else {
            continue;
        };
        let difference = Difference {
            pointer: place.join(at),
            before: text.before.as_ref().map(|(_, value)| *value),
            after: text.after.as_ref().map(|(_, value)| *value),
        };
        let class = ChangeClass::Behavioural;
        let mut change = maker.change("text", facet, class, &difference, text.message());
        classify_text_change(&mut change, (old, new), known);
        changes.push(change);
    }
    changes
}

fn texts_not_compared(facet: Facet, place: &Pointer, maker: &ChangeBuilder<'_>) -> Change {
    let message = format!(
        "the schema has more than {MAX_VISITS} subschemas: whether references lead to other text is not known"
    );
    let difference = Difference {
        pointer: place.clone(),
        before: None,
        after: None,
    };
    maker.change("text", facet, ChangeClass::Unknown, &difference, message)
}

/// Whether the words of a name introduce what a reviewer should see.
fn instructs(name: &str, at: &Pointer, known: AdditionContext<'_>) -> bool {
    !find_additions("", &name_words(name).join(" "), at, known).is_empty()
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
    let Some(rename) = &host.evidence.rename else {
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
    let renamed = change.evidence.rename.as_ref().map(|rename| {
        let mut pointer = change.pointer.clone();
        pointer.pop();
        pointer.child(&rename.to)
    });
    lies_in(&change.pointer) || renamed.is_some_and(|renamed| lies_in(&renamed))
}
