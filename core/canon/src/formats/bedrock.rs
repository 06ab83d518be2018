use super::table::{FieldTable, ToolField, field};

pub(super) const TOOL_SPEC: FieldTable = &[field(
    "toolSpec",
    ToolField::Nested(&[
        field("name", ToolField::Name),
        field("description", ToolField::Description),
        field(
            "inputSchema",
            ToolField::Nested(&[field("json", ToolField::Inputs).required()]),
        ),
        field("strict", ToolField::Strict),
    ]),
)
.required()];
