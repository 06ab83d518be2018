use super::python_types::PYTHON_SCHEMA;
use super::table::{FieldTable, ToolField, field};

pub(super) const FUNCTION: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("parameters", ToolField::Inputs).converted(&PYTHON_SCHEMA),
    field("response", ToolField::Outputs).converted(&PYTHON_SCHEMA),
];
