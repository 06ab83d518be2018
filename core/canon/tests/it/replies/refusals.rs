use toolwarden_canon::reply::classify_refusal;
use toolwarden_model::reply::TrialFailure;

#[test]
fn refusals_about_a_tool_are_recognized() {
    for (status, body) in [
        (
            400,
            r#"{"error":{"message":"Invalid schema for function 'f': None is not of type 'object'","type":"invalid_request_error","param":"tools[0].function.parameters","code":"invalid_function_parameters"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"tools.function.parameters is not a valid moonshot flavored json schema, details: <At path 'properties.a.anyOf': type should be defined in anyOf items>"}}"#,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"exclusiveMinimum\" at 'tools[0].function_declarations[0].parameters.properties[0].value'","status":"INVALID_ARGUMENT"}}"#,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"tools.0.custom.input_schema: JSON schema is invalid"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Failed to deserialize the JSON body into the target type: tools[0].type: unknown variant `namespace`, expected `function` at line 1 column 90"}}"#,
        ),
        (
            422,
            r#"{"detail":[{"type":"missing","loc":["body","tools",0,"function","name"],"msg":"Field required"}]}"#,
        ),
        (
            400,
            r#"{"message":"[{'type': 'missing', 'loc': ('body', 'tools', 0, 'function')}]"}"#,
        ),
        (400, r#"{"error":{"message":"bad","param":"functions[0]"}}"#),
    ] {
        assert_eq!(
            classify_refusal(status, body.as_bytes()),
            TrialFailure::SchemaRejected,
            "{body}"
        );
    }
    for (status, body) in [
        (401, r#"{"error":{"message":"Incorrect API key"}}"#),
        (429, r#"{"error":{"message":"tools[0] rate"}}"#),
        (500, "Invalid schema"),
        (
            400,
            r#"{"error":{"message":"tool_choice 'required' is incompatible with thinking enabled","param":"tool_choice"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Invalid parameter: temperature must be 1"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"This model does not support tools."}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Invalid schema for response_format 'x'"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"messages with role 'tool' must follow tool_calls"}}"#,
        ),
        (400, ""),
        (400, "\u{fffd}<html>"),
    ] {
        assert_eq!(
            classify_refusal(status, body.as_bytes()),
            TrialFailure::Status,
            "{body}"
        );
    }
}
