mod table;

use serde_json::{Value, json};
use toolwarden_model::json::Object;

/// The tool name in the definition of a family, which a probe replaces with the name it sends.
pub(super) const TEMPLATE_NAME: &str = "toolwarden_probe_tool";

/// The tool name for families that do not test names.
const DEFAULT_NAME: &str = "probe";

/// A family of keywords, and the smallest schema that demonstrates it.
#[derive(Clone, Debug, PartialEq)]
pub struct KeywordFamily {
    /// A stable id: the keyword, if there is one.
    pub id: &'static str,
    /// A short description.
    pub what: &'static str,
    /// The name of the tool.
    pub name: &'static str,
    /// The schema of its arguments.
    pub schema: Value,
    /// The prompt: asks for arguments that violate the schema, where possible.
    pub prompt: String,
}

/// A schema that every provider should accept.
pub(super) fn plain_family() -> KeywordFamily {
    property_family(
        "plain",
        "one string",
        json!({"type": "string"}),
        &json!("x"),
    )
}

/// Every family.
#[must_use]
pub fn families() -> Vec<KeywordFamily> {
    let mut all = table::references();
    all.extend(table::unions());
    all.extend(table::values());
    all.extend(table::objects());
    all.extend(table::lists());
    all.extend(table::annotations());
    all.extend(table::names());
    all
}

/// A family that tests the schema of one required property.
fn property_family(
    id: &'static str,
    what: &'static str,
    schema: Value,
    wanted: &Value,
) -> KeywordFamily {
    let properties = Object::from_iter([("value".to_owned(), schema)]);
    let schema = json!({"type": "object", "properties": properties, "required": ["value"]});
    schema_family(id, what, schema, &json!({ "value": wanted }))
}

/// A family that tests a whole schema.
fn schema_family(
    id: &'static str,
    what: &'static str,
    schema: Value,
    wanted: &Value,
) -> KeywordFamily {
    KeywordFamily {
        id,
        what,
        name: DEFAULT_NAME,
        schema,
        prompt: format!("Call the tool once, with exactly these arguments: {wanted}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn families_have_distinct_ids() {
        let families = families();
        let ids: BTreeSet<&str> = families.iter().map(|it| it.id).collect();
        assert_eq!(ids.len(), families.len());
        let long = families.iter().find(|it| it.id == "tool-long");
        assert_eq!(long.map(|it| it.name.len()), Some(65));
    }
}
