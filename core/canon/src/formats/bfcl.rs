use super::conversion::PYTHON_SCHEMA;
use super::table::{Slot, Table, field};

pub(super) const FUNCTION: Table = &[
    field("name", Slot::Name),
    field("description", Slot::Description),
    field("parameters", Slot::Inputs).converted(&PYTHON_SCHEMA),
    field("response", Slot::Outputs).converted(&PYTHON_SCHEMA),
];
