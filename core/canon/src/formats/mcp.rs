use super::table::{Slot, Table, field};

pub(super) const TOOL: Table = &[
    field("name", Slot::Name),
    field("title", Slot::Title),
    field("description", Slot::Description),
    field("inputSchema", Slot::Inputs).required(),
    field("outputSchema", Slot::Outputs),
    field("annotations", Slot::Annotations),
];
