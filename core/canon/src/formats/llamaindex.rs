use super::table::{Slot, Table, field};

pub(super) const METADATA: Table = &[
    field("name", Slot::Name),
    field("description", Slot::Description),
    field("fn_schema", Slot::Inputs).nullable(),
];
