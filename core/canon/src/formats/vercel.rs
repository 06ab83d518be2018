use serde_json::{Value, json};

use super::table::{Conversion, Slot, Table, field};

pub(super) const FUNCTION: Table = &[
    field("type", Slot::Constant("function")),
    field("name", Slot::Name),
    field("description", Slot::Description),
    field("inputSchema", Slot::Inputs).required(),
    field("outputSchema", Slot::Outputs),
    field("inputExamples", Slot::Examples).converted(&WRAPPED_EXAMPLES),
    field("strict", Slot::Strict),
];

/// The id of a provider tool is its identity, so it stays with the other provider keys.
pub(super) const PROVIDER: Table = &[field("name", Slot::Name)];

/// Examples stand inside `{"input": …}`.
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
