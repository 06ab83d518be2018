use super::table::{Slot, Table, field};

pub(super) const TOOL: Table = &[
    field("type", Slot::Constant("function")),
    field(
        "function",
        Slot::Nested(&[
            field("name", Slot::Name),
            field("description", Slot::Description),
            field("parameters", Slot::Inputs).nullable(),
            field("return", Slot::Outputs),
        ]),
    )
    .required(),
];
