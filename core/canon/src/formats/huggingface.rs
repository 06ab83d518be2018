use super::table::{FieldTable, ToolField, field};

pub(super) const TOOL: FieldTable = &[
    field("type", ToolField::Constant("function")),
    field(
        "function",
        ToolField::Nested(&[
            field("name", ToolField::Name),
            field("description", ToolField::Description),
            field("parameters", ToolField::Inputs).nullable(),
            field("return", ToolField::Outputs),
        ]),
    )
    .required(),
];
