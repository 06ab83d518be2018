use serde_json::Value;
use toolwarden_model::json::Object;

use crate::change::{Change, Class};
use crate::compare::Maker;
use crate::difference::{Difference, differences};
use crate::layout::{Facet, Observed};

/// A hint of MCP, its value where nobody says, and the value that asks for less caution.
struct Hint {
    name: &'static str,
    default: bool,
    careless: bool,
    meaning: &'static str,
}

const HINTS: [Hint; 4] = [
    Hint {
        name: "readOnlyHint",
        default: false,
        careless: true,
        meaning: "the tool now claims to change nothing",
    },
    Hint {
        name: "destructiveHint",
        default: true,
        careless: false,
        meaning: "the tool no longer warns that it may destroy",
    },
    Hint {
        name: "idempotentHint",
        default: false,
        careless: true,
        meaning: "the tool now claims that repeating a call does nothing more",
    },
    Hint {
        name: "openWorldHint",
        default: true,
        careless: false,
        meaning: "the tool no longer says that it reaches the outside world",
    },
];

/// Annotations with every hint written out, so that leaving one out and saying its default are the
/// same.
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

/// What it means when a hint turns toward less caution; nothing for any other change.
fn less_caution(name: &str, after: Option<&Value>) -> Option<&'static str> {
    let hint = HINTS.iter().find(|hint| hint.name == name)?;
    (after == Some(&Value::Bool(hint.careless))).then_some(hint.meaning)
}

/// Whether a definition says that the tool changes nothing.
pub(crate) fn is_read_only(observed: &Observed<'_>) -> bool {
    let written = observed.facet(Facet::Annotations);
    written.and_then(|written| written.get("readOnlyHint")) == Some(&Value::Bool(true))
}

/// What changed in the hints and the title.
///
/// A tool that published no hint before and begins to is told in one line: nearly all of what servers
/// begin to publish says less caution than the defaults, which fit the worst tool there could be. A hint
/// of a tool that published hints before is another matter, and so is one that its name contradicts,
/// which the text findings tell.
pub(crate) fn annotations(
    old: &Observed<'_>,
    new: &Observed<'_>,
    maker: &Maker<'_>,
) -> Vec<Change> {
    let place = new.layout.place(Facet::Annotations);
    let Some(place) = place.or(old.layout.place(Facet::Annotations)) else {
        return Vec::new();
    };
    let begins = !publishes_hints(old);
    let facet = Facet::Annotations;
    let before = Value::Object(with_defaults(old.facet(facet)));
    let after = Value::Object(with_defaults(new.facet(facet)));
    let mut changes = Vec::new();
    let mut published = Vec::new();
    for mut difference in differences(&before, &after) {
        let name = difference.pointer.segments().next().unwrap_or_default();
        let is_hint = HINTS.iter().any(|hint| hint.name == name);
        if let (true, true, Some(value)) = (begins, is_hint, difference.after) {
            published.push(format!("`{name}` {value}"));
            continue;
        }
        let said = |observed: &Observed<'_>| {
            let written = observed.facet(facet);
            written.and_then(|written| written.get(&name)).is_some()
        };
        // What nobody wrote is shown as nothing, however it is read.
        let unsaid = (!said(old), !said(new));
        difference.pointer = place.join(&difference.pointer);
        let meant = difference
            .before
            .filter(|_| unsaid.0)
            .map(|value| format!(" (nothing said meant {value})"));
        let meant = meant.unwrap_or_default();
        let careless = less_caution(&name, difference.after);
        difference.before = difference.before.filter(|_| !unsaid.0);
        difference.after = difference.after.filter(|_| !unsaid.1);
        let (rule, class, message) = match careless {
            Some(meaning) => ("less-caution", Class::Trust, format!("{meaning}{meant}")),
            None => (
                "annotations",
                Class::Behavioural,
                format!("`{name}` was changed"),
            ),
        };
        changes.push(maker.change(rule, facet, class, &difference, message));
    }
    if !published.is_empty() {
        let difference = Difference {
            pointer: place.clone(),
            before: None,
            after: new.facet(facet),
        };
        let message = format!("annotations are published now: {}", published.join(", "));
        let rule = "annotations-published";
        changes.push(maker.change(rule, facet, Class::Info, &difference, message));
    }
    changes
}

fn publishes_hints(observed: &Observed<'_>) -> bool {
    let written = observed.facet(Facet::Annotations);
    let is_written = |hint: &Hint| written.and_then(|it| it.get(hint.name)).is_some();
    HINTS.iter().any(is_written)
}
