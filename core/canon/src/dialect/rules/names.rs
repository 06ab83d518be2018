use serde_json::Value;
use toolwarden_model::json::{Object, Pointer};

use crate::dialect::facts::{DialectFacts, KeywordSupport, NameSupport};
use crate::dialect::lint::{DialectFinding, DialectLevel};
use crate::name_rule::NameRule;
use crate::schema::subschemas;

/// The longest name that is not long.
const MAX_SHORT_NAME: usize = 64;

/// What is wrong with the name of a tool.
pub(super) fn tool_name(name: &str, facts: &DialectFacts) -> Vec<DialectFinding> {
    let place = Pointer::of(["name"]);
    let kind = NameCheck {
        rule: "name",
        what: "name",
        names: facts.tool_name,
        marks: facts.tool_name_support,
    };
    kind.findings(name, &place)
}

/// What is wrong with the names of parameters.
pub(super) fn parameter_names(inputs: &Object, facts: &DialectFacts) -> Vec<DialectFinding> {
    let kind = NameCheck {
        rule: "parameter-name",
        what: "parameter name",
        names: facts.parameter_name,
        marks: facts.parameter_name_support,
    };
    let mut findings = Vec::new();
    if kind.names.is_some() || kind.marks != NameSupport::SUPPORTED {
        kind.visit(inputs, &Pointer::of(["inputs"]), &mut findings);
    }
    findings
}

/// A check of one kind of names.
struct NameCheck {
    rule: &'static str,
    what: &'static str,
    names: Option<NameRule>,
    marks: NameSupport,
}

impl NameCheck {
    fn visit(&self, schema: &Object, place: &Pointer, findings: &mut Vec<DialectFinding>) {
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

    fn findings(&self, name: &str, place: &Pointer) -> Vec<DialectFinding> {
        let finding = |level, message: String| DialectFinding {
            rule: self.rule,
            level,
            pointer: place.clone(),
            message: message.into(),
            fixable: false,
        };
        let what = || format!("the {} `{name}`", self.what);
        let refused = self.names.filter(|rule| !rule.accepts(name)).map(|rule| {
            let said = DialectLevel::Rejected.describe(&what());
            finding(
                DialectLevel::Rejected,
                format!("{said}: {}", describe(rule)),
            )
        });
        let marked = unsupported_marks(self.marks, name).map(|(level, mark)| {
            let said = level.describe(&what());
            finding(level, format!("{said}: it {mark}"))
        });
        refused.into_iter().chain(marked).collect()
    }
}

/// The features of a name that the provider does not support.
fn unsupported_marks(
    marks: NameSupport,
    name: &str,
) -> impl Iterator<Item = (DialectLevel, &'static str)> {
    let NameSupport {
        dot,
        hyphen,
        space,
        dollar,
        digit_first,
        non_ascii: beyond_ascii,
        long,
    } = marks;
    let rows: [(KeywordSupport, bool, &str); 7] = [
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
            name.chars().count() > MAX_SHORT_NAME,
            "is longer than 64 characters",
        ),
    ];
    rows.into_iter()
        .filter(|(_, found, _)| *found)
        .filter_map(|(taken, _, mark)| Some((taken.finding_level()?, mark)))
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
