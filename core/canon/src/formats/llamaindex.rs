use super::table::{FieldTable, ToolField, field};

pub(super) const METADATA: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("fn_schema", ToolField::Inputs).nullable(),
];
