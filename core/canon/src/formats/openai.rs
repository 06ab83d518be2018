use super::table::{FieldTable, ToolField, field};

pub(super) const CHAT: FieldTable = &[
    field("type", ToolField::Constant("function")),
    field(
        "function",
        ToolField::Nested(&[
            field("name", ToolField::Name),
            field("description", ToolField::Description),
            field("parameters", ToolField::Inputs).nullable(),
            field("strict", ToolField::Strict),
        ]),
    )
    .required(),
];

pub(super) const CHAT_CUSTOM: FieldTable = &[
    field("type", ToolField::Constant("custom")),
    field(
        "custom",
        ToolField::Nested(&[
            field("name", ToolField::Name),
            field("description", ToolField::Description),
        ]),
    )
    .required(),
];

pub(super) const RESPONSES: FieldTable = &[
    field("type", ToolField::Constant("function")),
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("parameters", ToolField::Inputs).nullable(),
    field("strict", ToolField::Strict),
    field("output_schema", ToolField::Outputs),
];

pub(super) const RESPONSES_CUSTOM: FieldTable = &[
    field("type", ToolField::Constant("custom")),
    field("name", ToolField::Name),
    field("description", ToolField::Description),
];

/// The type of a hosted tool is its identity, so it stays with the other provider keys.
pub(super) const HOSTED: FieldTable = &[field("name", ToolField::Name)];

pub(super) const LEGACY: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("parameters", ToolField::Inputs).nullable(),
    field("strict", ToolField::Strict),
];

pub(super) const AGENTS: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("params_json_schema", ToolField::Inputs),
    field("strict_json_schema", ToolField::Strict),
];
