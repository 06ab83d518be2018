use super::table::{Slot, Table, field};

/// A skill has no schema: text goes in and text comes out.
pub(super) const SKILL: Table = &[
    field("name", Slot::Name),
    field("description", Slot::Description),
];
