use super::table::{Slot, Table, field};

pub(super) const MESSAGES: Table = &[
    field("name", Slot::Name),
    field("description", Slot::Description),
    field("input_schema", Slot::Inputs).required(),
    field("strict", Slot::Strict),
    field("input_examples", Slot::Examples),
];

/// The dated type of a server tool is its identity, so it stays with the other provider keys.
pub(super) const SERVER: Table = &[field("name", Slot::Name)];
