use super::parameters::{remainder_of_map, schema_of_map, unknown_types};
use super::table::{Conversion, FieldTable, ToolField, field};

pub(super) const V1: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("parameter_definitions", ToolField::Inputs).converted(&PARAMETER_DEFINITIONS),
];

/// A flat map of parameters with Python type names.
static PARAMETER_DEFINITIONS: Conversion = Conversion::new(schema_of_map, |_| None)
    .with_remainder(remainder_of_map)
    .with_unknown_types(unknown_types);
