use super::table::{FieldTable, ToolField, field};

/// A skill has no schema: text goes in and text comes out.
pub(super) const SKILL: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
];
