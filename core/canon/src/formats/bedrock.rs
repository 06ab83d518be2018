use super::table::{Slot, Table, field};

pub(super) const TOOL_SPEC: Table = &[field(
    "toolSpec",
    Slot::Nested(&[
        field("name", Slot::Name),
        field("description", Slot::Description),
        field(
            "inputSchema",
            Slot::Nested(&[field("json", Slot::Inputs).required()]),
        ),
        field("strict", Slot::Strict),
    ]),
)
.required()];
