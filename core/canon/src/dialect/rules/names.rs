use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};

use crate::dialect::facts::{Facts, NameMarks, Taken};
use crate::dialect::lint::{Finding, Level};
use crate::emit::NameRule;
use crate::schema::subschemas;

/// The longest name that is not long.
const LONG: usize = 64;

/// What is wrong with the name of a tool.
pub(super) fn tool_name(name: &str, facts: &Facts) -> Vec<Finding> {
    let place = Pointer::of(["name"]);
    let kind = Kind {
        rule: "name",
        what: "name",
        names: facts.tool_name,
        marks: facts.tool_marks,
    };
    kind.findings(name, &place)
}

/// What is wrong with the names of parameters.
pub(super) fn parameter_names(inputs: &Object, facts: &Facts) -> Vec<Finding> {
    let kind = Kind {
        rule: "parameter-name",
        what: "parameter name",
        names: facts.parameter_name,
        marks: facts.parameter_marks,
    };
    let mut findings = Vec::new();
    if kind.names.is_some() || kind.marks != NameMarks::HONOURED {
        kind.visit(inputs, &Pointer::of(["inputs"]), &mut findings);
    }
    findings
}

/// Names of one kind, and what they are held to.
struct Kind {
    rule: &'static str,
    what: &'static str,
    names: Option<NameRule>,
    marks: NameMarks,
}

impl Kind {
    fn visit(&self, schema: &Object, place: &Pointer, findings: &mut Vec<Finding>) {
        if let Some(Value::Object(properties)) = schema.get("properties") {
            let place = place.child("properties");
            findings.extend(
                properties
                    .keys()
                    .flat_map(|name| self.findings(name, &place.child(name))),
            );
        }
        for (at, child) in subschemas(schema, place) {
            if let Value::Object(child) = child {
                self.visit(child, &at, findings);
            }
        }
    }

    fn findings(&self, name: &str, place: &Pointer) -> Vec<Finding> {
        let finding = |level, message: String| Finding {
            rule: self.rule,
            level,
            pointer: place.clone(),
            message: message.into(),
            fixable: false,
        };
        let what = || format!("the {} `{name}`", self.what);
        let refused = self.names.filter(|rule| !rule.accepts(name)).map(|rule| {
            let said = Level::Rejected.said_of(&what());
            finding(Level::Rejected, format!("{said}: {}", describe(rule)))
        });
        let marked = marks(self.marks, name).map(|(level, mark)| {
            let said = level.said_of(&what());
            finding(level, format!("{said}: it {mark}"))
        });
        refused.into_iter().chain(marked).collect()
    }
}

/// What a name has about it that is minded.
fn marks(marks: NameMarks, name: &str) -> impl Iterator<Item = (Level, &'static str)> {
    let NameMarks {
        dot,
        hyphen,
        space,
        dollar,
        digit_first,
        beyond_ascii,
        long,
    } = marks;
    let rows: [(Taken, bool, &str); 7] = [
        (dot, name.contains('.'), "has a dot"),
        (hyphen, name.contains('-'), "has a hyphen"),
        (space, name.contains(' '), "has a space"),
        (dollar, name.contains('$'), "has a dollar sign"),
        (
            digit_first,
            name.starts_with(|first: char| first.is_ascii_digit()),
            "begins with a digit",
        ),
        (beyond_ascii, !name.is_ascii(), "goes beyond ASCII"),
        (
            long,
            name.chars().count() > LONG,
            "is longer than 64 characters",
        ),
    ];
    rows.into_iter()
        .filter(|(_, found, _)| *found)
        .filter_map(|(taken, _, mark)| Some((taken.objection()?, mark)))
}

fn describe(rule: NameRule) -> String {
    let length = if rule.max_length == usize::MAX {
        String::new()
    } else {
        format!(", at most {}", rule.max_length)
    };
    let first = if rule.starts_with_letter {
        ", a letter or underscore first"
    } else {
        ""
    };
    format!("letters, digits and {}{first}{length}", rule.punctuation)
}
