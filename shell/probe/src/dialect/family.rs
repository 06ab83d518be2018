mod table;

use serde_json::{Value, json};
use toolwarden_model::json::Object;

/// The name that stands for the tool until its own is put in.
pub(super) const STAND_IN: &str = "toolwarden_probe_tool";

/// The name of the tool where names are not the question.
const NAME: &str = "probe";

/// A family of keywords, and the smallest schema that shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// The stable word: the keyword, where there is one.
    pub id: &'static str,
    /// What it is about.
    pub what: &'static str,
    /// The name of the tool.
    pub name: &'static str,
    /// The schema of its arguments.
    pub schema: Value,
    /// What the user asks for: arguments that go against the schema, where some do.
    pub ask: String,
}

/// A schema that every provider should take.
pub(super) fn plain() -> Family {
    value(
        "plain",
        "one string",
        json!({"type": "string"}),
        &json!("x"),
    )
}

/// Every family.
#[must_use]
pub fn families() -> Vec<Family> {
    let mut all = table::references();
    all.extend(table::unions());
    all.extend(table::values());
    all.extend(table::objects());
    all.extend(table::lists());
    all.extend(table::annotations());
    all.extend(table::names());
    all
}

/// A family about the schema of one required property.
fn value(id: &'static str, what: &'static str, schema: Value, wanted: &Value) -> Family {
    let properties = Object::from_iter([("value".to_owned(), schema)]);
    let schema = json!({"type": "object", "properties": properties, "required": ["value"]});
    whole(id, what, schema, &json!({ "value": wanted }))
}

/// A family about a whole schema.
fn whole(id: &'static str, what: &'static str, schema: Value, wanted: &Value) -> Family {
    Family {
        id,
        what,
        name: NAME,
        schema,
        ask: format!("Call the tool once, with exactly these arguments: {wanted}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn families_are_told_apart() {
        let families = families();
        let ids: BTreeSet<&str> = families.iter().map(|it| it.id).collect();
        assert_eq!(ids.len(), families.len());
        let long = families.iter().find(|it| it.id == "tool-long");
        assert_eq!(long.map(|it| it.name.len()), Some(65));
    }
}
