use serde_json::Value;
use toolwarden_model::Tool;
use toolwarden_model::json::{Object, Pointer};

use crate::dialect::facts::Facts;
use crate::dialect::lint::{Finding, Level};
use crate::emit::NameRule;
use crate::schema::subschemas;

/// What is wrong with a tool outside its schemas, and with the names of its parameters.
pub(in crate::dialect) fn tool_findings(tool: &Tool, facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut report = |rule, pointer: Pointer, message: String| {
        findings.push(Finding {
            rule,
            level: Level::Rejected,
            pointer,
            message: message.into(),
            fixable: false,
        });
    };
    if let Some(rule) = facts.tool_name.filter(|rule| !rule.accepts(&tool.name)) {
        report(
            "name",
            Pointer::of(["name"]),
            format!(
                "the name `{}` is not accepted: {}",
                tool.name,
                describe(rule)
            ),
        );
    }
    if facts.description_says_something && !tool.absent.description && tool.description.is_empty() {
        report(
            "description",
            Pointer::of(["description"]),
            "an empty description is not accepted".to_owned(),
        );
    }
    if facts.inputs_required && tool.absent.inputs {
        report(
            "inputs",
            Pointer::of(["inputs"]),
            "an input schema is required".to_owned(),
        );
    }
    if let Some(rule) = facts.parameter_name {
        let mut names = Vec::new();
        parameter_names(&tool.inputs, &Pointer::of(["inputs"]), &mut names);
        for (pointer, name) in names.into_iter().filter(|(_, name)| !rule.accepts(name)) {
            report(
                "parameter-name",
                pointer,
                format!(
                    "the parameter name `{name}` is not accepted: {}",
                    describe(rule)
                ),
            );
        }
    }
    findings
}

fn parameter_names(schema: &Object, place: &Pointer, names: &mut Vec<(Pointer, String)>) {
    if let Some(Value::Object(properties)) = schema.get("properties") {
        names.extend(
            properties
                .keys()
                .map(|name| (place.child("properties").child(name), name.clone())),
        );
    }
    for (at, child) in subschemas(schema, place) {
        if let Value::Object(child) = child {
            parameter_names(child, &at, names);
        }
    }
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
