use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};

use crate::change::{Change, ChangeClass};
use crate::change_builder::ChangeBuilder;
use crate::difference::{Difference, differences};
use crate::facet::{Facet, ObservedDefinition};

/// An MCP hint, its default when the definition omits it, and the value that asks for less caution.
struct Hint {
    name: &'static str,
    default: bool,
    unsafe_value: bool,
    meaning: &'static str,
}

const HINTS: [Hint; 4] = [
    Hint {
        name: "readOnlyHint",
        default: false,
        unsafe_value: true,
        meaning: "the tool now claims to change nothing",
    },
    Hint {
        name: "destructiveHint",
        default: true,
        unsafe_value: false,
        meaning: "the tool no longer warns that it may be destructive",
    },
    Hint {
        name: "idempotentHint",
        default: false,
        unsafe_value: true,
        meaning: "the tool now claims that repeating a call does nothing more",
    },
    Hint {
        name: "openWorldHint",
        default: true,
        unsafe_value: false,
        meaning: "the tool no longer says that it reaches the outside world",
    },
];

/// Annotations with every hint written out, so that an omitted hint equals one that states its default.
pub(crate) fn with_defaults(annotations: Option<&Value>) -> Object {
    let mut written = match annotations {
        Some(Value::Object(written)) => written.clone(),
        _ => Object::new(),
    };
    for hint in &HINTS {
        written
            .entry(hint.name)
            .or_insert(Value::Bool(hint.default));
    }
    written
}

/// The consequence of a hint that turns toward less caution; `None` for any other change.
fn less_caution(name: &str, after: Option<&Value>) -> Option<&'static str> {
    let hint = HINTS.iter().find(|hint| hint.name == name)?;
    (after == Some(&Value::Bool(hint.unsafe_value))).then_some(hint.meaning)
}

/// Whether a definition says that the tool changes nothing.
pub(crate) fn is_read_only(observed: &ObservedDefinition<'_>) -> bool {
    let written = observed.facet(Facet::Annotations);
    written.and_then(|written| written.get("readOnlyHint")) == Some(&Value::Bool(true))
}

/// Compares the hints and the title.
///
/// When a tool that published no annotations starts to publish them, one line reports all hints. Nearly
/// all of them ask for less caution than the defaults, which assume the worst possible tool. Any hint
/// that a tool with annotations adds or changes is reported by itself. The text findings report a hint
/// that contradicts the tool's name.
pub(crate) fn compare_annotations(
    old: &ObservedDefinition<'_>,
    new: &ObservedDefinition<'_>,
    maker: &ChangeBuilder<'_>,
) -> Vec<Change> {
    let place = new.layout.place(Facet::Annotations);
    let Some(place) = place.or(old.layout.place(Facet::Annotations)) else {
        return Vec::new();
    };
    let begins = old.facet(Facet::Annotations).is_none_or(Value::is_null);
    let facet = Facet::Annotations;
    let before = Value::Object(with_defaults(old.facet(facet)));
    let after = Value::Object(with_defaults(new.facet(facet)));
    let mut changes = Vec::new();
    let mut published = Vec::new();
    for mut difference in differences(&before, &after) {
        let name = difference.pointer.segments().next().unwrap_or_default();
        let is_hint = HINTS.iter().any(|hint| hint.name == name);
        let unreadable = is_hint && difference.after.is_some_and(|it| !it.is_boolean());
        if let (true, true, false, Some(value)) = (begins, is_hint, unreadable, difference.after) {
            published.push(format!("`{name}` {value}"));
            continue;
        }
        let said = |observed: &ObservedDefinition<'_>| {
            let written = observed.facet(facet);
            written.and_then(|written| written.get(&name)).is_some()
        };
        // A hint that the definition omits is shown as absent, although it has a default.
        let unsaid = (!said(old), !said(new));
        difference.pointer = place.join(&difference.pointer);
        let meant = difference
            .before
            .filter(|_| unsaid.0)
            .map(|value| format!(" (omitting it meant {value})"));
        let meant = meant.unwrap_or_default();
        let careless = less_caution(&name, difference.after);
        difference.before = difference.before.filter(|_| !unsaid.0);
        difference.after = difference.after.filter(|_| !unsaid.1);
        let (rule, class, message) = match careless {
            _ if unreadable => (
                "unreadable-hint",
                ChangeClass::Trust,
                format!("`{name}` is not true or false: clients cannot tell what it says"),
            ),
            Some(meaning) => (
                "less-caution",
                ChangeClass::Trust,
                format!("{meaning}{meant}"),
            ),
            None => (
                "annotations",
                ChangeClass::Behavioural,
                format!("`{name}` was changed"),
            ),
        };
        changes.push(maker.change(rule, facet, class, &difference, message));
    }
    changes.extend(unreadable(old, new, place, maker));
    if !published.is_empty() {
        let difference = Difference {
            pointer: place.clone(),
            before: None,
            after: new.facet(facet),
        };
        let message = format!("annotations are published now: {}", published.join(", "));
        let rule = "annotations-published";
        changes.push(maker.change(rule, facet, ChangeClass::Info, &difference, message));
    }
    changes
}

/// The change for annotations that are not an object, so that no hint can be read from them.
fn unreadable(
    old: &ObservedDefinition<'_>,
    new: &ObservedDefinition<'_>,
    place: &Pointer,
    maker: &ChangeBuilder<'_>,
) -> Option<Change> {
    let (before, after) = (old.facet(Facet::Annotations), new.facet(Facet::Annotations));
    let is_readable = |value: &Value| value.is_object() || value.is_null();
    if before == after || after.is_none_or(is_readable) {
        return None;
    }
    let difference = Difference {
        pointer: place.clone(),
        before,
        after,
    };
    let message = "annotations are not an object: clients cannot tell what they say".to_owned();
    let facet = Facet::Annotations;
    Some(maker.change(
        "unreadable-hint",
        facet,
        ChangeClass::Trust,
        &difference,
        message,
    ))
}
