use super::table::{Slot, Table, field};

pub(super) const CHAT: Table = &[
    field("type", Slot::Constant("function")),
    field(
        "function",
        Slot::Nested(&[
            field("name", Slot::Name),
            field("description", Slot::Description),
            field("parameters", Slot::Inputs).nullable(),
            field("strict", Slot::Strict),
        ]),
    )
    .required(),
];

pub(super) const CHAT_CUSTOM: Table = &[
    field("type", Slot::Constant("custom")),
    field(
        "custom",
        Slot::Nested(&[
            field("name", Slot::Name),
            field("description", Slot::Description),
        ]),
    )
    .required(),
];

pub(super) const RESPONSES: Table = &[
    field("type", Slot::Constant("function")),
    field("name", Slot::Name),
    field("description", Slot::Description),
    field("parameters", Slot::Inputs).nullable(),
    field("strict", Slot::Strict),
    field("output_schema", Slot::Outputs),
];

pub(super) const RESPONSES_CUSTOM: Table = &[
    field("type", Slot::Constant("custom")),
    field("name", Slot::Name),
    field("description", Slot::Description),
];

/// The type of a hosted tool is its identity, so it stays with the other provider keys.
pub(super) const HOSTED: Table = &[field("name", Slot::Name)];

pub(super) const LEGACY: Table = &[
    field("name", Slot::Name),
    field("description", Slot::Description),
    field("parameters", Slot::Inputs).nullable(),
    field("strict", Slot::Strict),
];

pub(super) const AGENTS: Table = &[
    field("name", Slot::Name),
    field("description", Slot::Description),
    field("params_json_schema", Slot::Inputs),
    field("strict_json_schema", Slot::Strict),
];
