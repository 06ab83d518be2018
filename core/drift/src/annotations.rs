use serde_json::Value;
use toolwarden_model::json::Object;

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
pub(crate) fn less_caution(name: &str, after: Option<&Value>) -> Option<&'static str> {
    let hint = HINTS.iter().find(|hint| hint.name == name)?;
    (after == Some(&Value::Bool(hint.careless))).then_some(hint.meaning)
}
