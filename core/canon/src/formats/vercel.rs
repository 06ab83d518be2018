use serde_json::{Value, json};

use super::table::{Conversion, FieldTable, ToolField, field};

pub(super) const FUNCTION: FieldTable = &[
    field("type", ToolField::Constant("function")),
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("inputSchema", ToolField::Inputs).required(),
    field("outputSchema", ToolField::Outputs),
    field("inputExamples", ToolField::Examples).converted(&WRAPPED_EXAMPLES),
    field("strict", ToolField::Strict),
];

/// The id of a provider tool is its identity, so it stays with the other provider keys.
pub(super) const PROVIDER: FieldTable = &[field("name", ToolField::Name)];

/// Each example is wrapped in `{"input": …}`.
static WRAPPED_EXAMPLES: Conversion = Conversion::new(
    |value| {
        let items = value.as_array()?.iter();
        items
            .map(|item| item.get("input").cloned())
            .collect::<Option<Vec<Value>>>()
            .map(Value::Array)
    },
    |value| {
        let items = value.as_array()?.iter();
        Some(items.map(|item| json!({ "input": item })).collect())
    },
);
