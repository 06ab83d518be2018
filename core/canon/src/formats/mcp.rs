use super::table::{FieldTable, ToolField, field};

pub(super) const TOOL: FieldTable = &[
    field("name", ToolField::Name),
    field("title", ToolField::Title),
    field("description", ToolField::Description),
    field("inputSchema", ToolField::Inputs).required(),
    field("outputSchema", ToolField::Outputs),
    field("annotations", ToolField::Annotations),
];
