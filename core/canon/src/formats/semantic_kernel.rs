use serde_json::Value;

use super::parameters::{
    parameter_remainder, parameter_schema, remainder_of_list, schema_of_list, unknown_types,
};
use super::table::{Conversion, FieldTable, ToolField, field};

pub(super) const FUNCTION: FieldTable = &[
    field("name", ToolField::Name),
    field("description", ToolField::Description),
    field("parameters", ToolField::Inputs).converted(&PARAMETER_LIST),
    field("return_parameter", ToolField::Outputs).converted(&RETURN_PARAMETER),
];

static PARAMETER_LIST: Conversion = Conversion::new(schema_of_list, |_| None)
    .with_remainder(remainder_of_list)
    .with_unknown_types(unknown_types);

static RETURN_PARAMETER: Conversion = Conversion::new(
    |value| Some(Value::Object(parameter_schema(value.as_object()?))),
    |_| None,
)
.with_remainder(|value| {
    let rest = parameter_remainder(value.as_object()?);
    (!rest.is_empty()).then_some(Value::Object(rest))
});
