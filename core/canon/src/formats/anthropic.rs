use super::table::{FieldTable, ToolField, field};

pub(super) const MESSAGES: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("input_schema", ToolField::Inputs).required(),
    field("strict", ToolField::Strict),
    field("input_examples", ToolField::Examples),
];

/// The dated type of a server tool is its identity, so it stays with the other provider keys.
pub(super) const SERVER: FieldTable = &[field("name", ToolField::Name)];
