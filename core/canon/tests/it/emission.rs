//! The edits that an emission reports, case by case.

use serde_json::{Value, json};
use toolwarden_canon::{EditKind, Emission, EmitTarget, Emitter, FormatChoice, canonicalize, emit};
use toolwarden_model::Tool;

fn tool(definition: Value) -> Tool {
    canonicalize(definition, FormatChoice::Detect)
        .unwrap()
        .tools
        .remove(0)
        .tool
}

/// The edits as lines: what happened where.
fn account(emission: &Emission) -> Vec<String> {
    let word = |kind| match kind {
        EditKind::Change => "changed",
        EditKind::Loss(severity) => severity.as_str(),
    };
    emission
        .edits
        .iter()
        .map(|edit| format!("{} {}", word(edit.kind), edit.path))
        .collect()
}

fn check(definition: Value, target: EmitTarget, value: &Value, edits: &[&str]) {
    let emission = emit(tool(definition), target).unwrap();
    assert_eq!(emission.value, *value);
    assert_eq!(account(&emission), edits);
}

#[test]
fn what_was_added_to_the_canonical_form_is_lost_with_a_word() {
    let mut edited = tool(
        json!({"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}),
    );
    edited.title = Some("T".to_owned());
    edited.version = "3".into();
    edited.outputs = json!({"type": "object"}).as_object().unwrap().clone();
    let emission = emit(edited, EmitTarget::OpenaiChat).unwrap();
    assert_eq!(
        emission.value,
        json!({"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}})
    );
    assert_eq!(
        account(&emission),
        ["metadata /version", "metadata /title", "metadata /outputs"]
    );
}

#[test]
fn revisions_of_mcp_differ_in_tasks_and_results() {
    let definition = json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"},
        "execution": {"taskSupport": "required"}, "_meta": {"a": 1}});
    check(definition.clone(), EmitTarget::Mcp, &definition, &[]);
    check(
        definition.clone(),
        EmitTarget::Mcp20251125,
        &json!({"name": "t", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}, "_meta": {"a": 1}}),
        &["metadata /outputs"],
    );
    check(
        definition,
        EmitTarget::Mcp20260728,
        &json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}, "_meta": {"a": 1}}),
        &["metadata /extensions/mcp/execution"],
    );
}

#[test]
fn strict_mode_says_what_it_costs() {
    check(
        json!({"name": "t", "description": "d", "inputSchema": {"type": "object",
            "properties": {"a": {"type": "string", "default": "x"}, "b": {"type": "array", "items": {"type": "string"}, "uniqueItems": true}},
            "required": ["b"]}}),
        EmitTarget::OpenaiStrict,
        &json!({"type": "function", "function": {"name": "t", "description": "d", "parameters": {"type": "object",
            "properties": {"a": {"type": ["string", "null"]}, "b": {"type": "array", "items": {"type": "string"}, "description": "(uniqueItems: true)"}},
            "required": ["a", "b"], "additionalProperties": false}, "strict": true}}),
        &[
            "changed /strict",
            "semantic /inputs/additionalProperties",
            "semantic /inputs/required",
            "semantic /inputs/properties/a",
            "metadata /inputs/properties/a/default",
            "semantic /inputs/properties/b/uniqueItems",
            "semantic /inputs/properties/b/description",
        ],
    );
}

#[test]
fn gemini_parameters_are_rewritten_or_lose_what_cannot_be_said() {
    check(
        json!({"name": "t", "description": "d", "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "properties": {"a": {"const": "x"}, "b": {"$ref": "#/definitions/B"}, "c": {"not": {"type": "string"}}},
            "definitions": {"B": {"type": ["integer", "null"]}}}}),
        EmitTarget::Gemini,
        &json!({"name": "t", "description": "d", "parameters": {"type": "OBJECT",
            "properties": {"a": {"enum": ["x"]}, "b": {"ref": "#/defs/B"}, "c": {}}, "defs": {"B": {"type": "INTEGER", "nullable": true}}}}),
        &[
            "metadata /inputs/$schema",
            "changed /inputs/$defs",
            "changed /inputs/definitions",
            "changed /inputs/properties/a/enum",
            "changed /inputs/properties/a/const",
            "changed /inputs/properties/b/$ref",
            "semantic /inputs/properties/c/not",
        ],
    );
}

#[test]
fn free_text_tools_become_functions_of_one_argument() {
    check(
        json!({"type": "custom", "name": "run", "format": {"type": "grammar", "syntax": "regex", "definition": "a"}}),
        EmitTarget::Anthropic,
        &json!({"name": "run", "input_schema": {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}}),
        &[
            "semantic /extensions/openai-responses-custom/format",
            "changed /inputs",
        ],
    );
}

#[test]
fn tools_a_provider_runs_go_nowhere_else() {
    let hosted = || tool(json!({"type": "web_search_20250305", "name": "web_search"}));
    let error = emit(hosted(), EmitTarget::Mcp).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`web_search` is run by its provider (anthropic-server) and has no definition another provider could use"
    );
    let same = emit(hosted(), EmitTarget::Anthropic).unwrap();
    assert_eq!(
        same.value,
        json!({"type": "web_search_20250305", "name": "web_search"})
    );
}

#[test]
fn names_stay_apart_over_all_tools_of_an_emitter() {
    let mut emitter = Emitter::new(EmitTarget::Bedrock);
    let mut emitted = |name: &str| {
        let emission = emitter
            .emit(tool(
                json!({"name": name, "inputSchema": {"type": "object"}}),
            ))
            .unwrap();
        (
            emission.name.emitted,
            emission.value["toolSpec"]["name"].clone(),
        )
    };
    let (first, written) = emitted("a.b");
    assert_eq!((first.as_str(), written), ("a_b", json!("a_b")));
    let (second, _) = emitted("a/b");
    assert!(second.starts_with("a_b_") && second.len() == 12, "{second}");
}

#[test]
fn what_no_rewrite_can_mend_is_said() {
    let definition = json!({"name": "t", "inputSchema": {"type": "object", "properties": {"any": {}}, "required": ["any"]}});
    let emission = emit(tool(definition), EmitTarget::OpenaiStrict).unwrap();
    let said: Vec<String> = emission
        .findings
        .iter()
        .map(|it| format!("{}: {}", it.pointer, it.message))
        .collect();
    assert_eq!(
        said,
        ["/inputs/properties/any: a value without a type is not accepted"]
    );
}

#[test]
fn the_responses_api_is_told_that_a_function_is_not_strict() {
    check(
        json!({"name": "t", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}),
        EmitTarget::OpenaiResponses,
        &json!({"type": "function", "name": "t",
            "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}, "strict": false}),
        &["changed /strict"],
    );
    // A function that stays in the format keeps what leaving it out means there.
    let own = json!({"type": "function", "name": "t", "parameters": {"type": "object"}});
    check(own.clone(), EmitTarget::OpenaiResponses, &own, &[]);
}

#[test]
fn arguments_are_found_under_the_keys_people_use() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    for definition in [
        json!({"name": "t", "inputs": schema}),
        json!({"name": "t", "type": "function", "input_schema": schema}),
        json!({"title": "t", "params": schema}),
    ] {
        let emission = emit(tool(definition.clone()), EmitTarget::Mcp).unwrap();
        assert_eq!(emission.value["inputSchema"], schema, "{definition}");
    }
    // Parameters one by one say the same in other words.
    let listed = json!({"type": "object", "properties": {
        "a": {"type": "string", "description": "d", "default": "x"},
        "b": {"type": "array", "items": {"type": "integer"}}}, "required": ["b"]});
    let a = json!({"name": "a", "type": "str", "is_required": false, "default_value": "x", "description": "d"});
    let b = json!({"name": "b", "type": "list[int]", "required": true});
    for key in ["parameters", "arguments", "inputs", "signature"] {
        check(
            json!({"name": "t", key: [a, b]}),
            EmitTarget::Mcp,
            &json!({"name": "t", "inputSchema": listed}),
            &[&format!("changed /extensions/raw/{key}")],
        );
        check(
            json!({"name": "t", key: {"a": a, "b": b}}),
            EmitTarget::Mcp,
            &json!({"name": "t", "inputSchema": listed}),
            &[&format!("changed /extensions/raw/{key}")],
        );
    }
    // A type that is not one of JSON is lost, and so is what cannot be read at all.
    check(
        json!({"name": "t", "parameters": [{"name": "a", "type": "Image"}]}),
        EmitTarget::Mcp,
        &json!({"name": "t", "inputSchema": {"type": "object", "properties": {"a": {}}, "required": []}}),
        &["semantic /extensions/raw/parameters"],
    );
    for arguments in [
        json!(["a"]),
        json!("f(a: str)"),
        json!([{"name": "a"}, {"name": "a"}]),
    ] {
        check(
            json!({"name": "t", "arguments": arguments}),
            EmitTarget::Mcp,
            &json!({"name": "t", "inputSchema": {"type": "object", "properties": {}}}),
            &["semantic /extensions/raw/arguments", "changed /inputs"],
        );
    }
}

#[test]
fn types_of_media_are_lost_and_named() {
    let inputs = json!({"a": {"type": "image", "description": "d"}, "b": {"type": "any", "description": "d"}});
    check(
        json!({"name": "t", "description": "d", "inputs": inputs, "output_type": "string"}),
        EmitTarget::Anthropic,
        &json!({"name": "t", "description": "d", "input_schema": {"type": "object",
            "properties": {"a": {"description": "d"}, "b": {"description": "d"}}, "required": ["a", "b"]}}),
        &[
            "semantic /extensions/smolagents/inputs",
            "metadata /extensions/smolagents/output_type",
        ],
    );
    let definition = |property: Value| {
        json!({"type": "function", "function": {"name": "t", "description": "d",
            "parameters": {"type": "object", "properties": {"a": property}},
            "return": {"type": "string"}}})
    };
    let emitted = |property: Value| {
        json!({"name": "t", "description": "d",
            "input_schema": {"type": "object", "properties": {"a": property}}})
    };
    check(
        definition(json!({"type": "image"})),
        EmitTarget::Anthropic,
        &emitted(json!({})),
        &["semantic /extensions/hf/function", "metadata /outputs"],
    );
    check(
        definition(json!({"type": "string", "nullable": true})),
        EmitTarget::Anthropic,
        &emitted(json!({"type": ["string", "null"]})),
        &["changed /extensions/hf/function", "metadata /outputs"],
    );
    check(
        json!({"name": "t", "description": "d", "parameter_definitions": {"a": {"type": "Invoice", "required": true}}}),
        EmitTarget::Anthropic,
        &json!({"name": "t", "description": "d", "input_schema": {"type": "object",
            "properties": {"a": {}}, "required": ["a"]}}),
        &["semantic /extensions/cohere-v1/parameter_definitions"],
    );
}

#[test]
fn what_draft_7_ignores_does_not_become_active() {
    let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "properties": {"a": {"$ref": "#/definitions/A", "minLength": 3, "description": "d"}},
        "definitions": {"A": {"type": "string"}}});
    let definition = json!({"name": "t", "inputSchema": schema});
    check(
        definition.clone(),
        EmitTarget::Gemini,
        &json!({"name": "t", "parameters": {"type": "OBJECT",
            "properties": {"a": {"ref": "#/defs/A", "description": "d"}}, "defs": {"A": {"type": "STRING"}}}}),
        &[
            "changed /inputs/properties/a/minLength",
            "metadata /inputs/$schema",
            "changed /inputs/$defs",
            "changed /inputs/definitions",
            "changed /inputs/properties/a/$ref",
        ],
    );
    let strict = emit(tool(definition), EmitTarget::OpenaiStrict)
        .unwrap()
        .value;
    let a = &strict["function"]["parameters"]["properties"]["a"];
    assert_eq!(
        *a,
        json!({"description": "d", "anyOf": [{"type": "string"}, {"type": "null"}]})
    );
}

#[test]
fn gemini_gets_no_list_of_items() {
    let pair = json!([{"type": "string"}, {"type": "integer"}]);
    let with =
        |b: Value| json!({"name": "t", "inputSchema": {"type": "object", "properties": {"b": b}}});
    let expected = json!({"name": "t", "parameters": {"type": "OBJECT", "properties": {"b": {"type": "ARRAY",
        "items": {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}}}}});
    check(
        with(json!({"type": "array", "items": pair})),
        EmitTarget::Gemini,
        &expected,
        &["semantic /inputs/properties/b/items"],
    );
    check(
        with(json!({"type": "array", "prefixItems": pair})),
        EmitTarget::Gemini,
        &expected,
        &[
            "semantic /inputs/properties/b/items",
            "semantic /inputs/properties/b/prefixItems",
        ],
    );
}

#[test]
fn a_result_that_may_be_anything_loses_something_when_it_becomes_an_object() {
    check(
        json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"description": "d"}}),
        EmitTarget::Gemini,
        &json!({"name": "t", "parameters": {"type": "OBJECT"}, "response": {"type": "OBJECT", "description": "d"}}),
        &["semantic /outputs/type"],
    );
}

#[test]
fn a_tool_without_a_name_is_refused() {
    let nameless = || tool(json!({"inputSchema": {"type": "object"}}));
    let error = emit(nameless(), EmitTarget::Anthropic).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the tool has no name, and anthropic calls tools by name; add `name`"
    );
    assert!(emit(nameless(), EmitTarget::JsonSchema).is_ok());
}

#[test]
fn an_input_schema_without_a_type_gets_one() {
    let definition = json!({"name": "t", "input_schema": {}});
    let completed = json!({"name": "t", "input_schema": {"type": "object", "properties": {}}});
    let edits = ["changed /inputs/type", "changed /inputs/properties"];
    check(definition, EmitTarget::Anthropic, &completed, &edits);
}

#[test]
fn a_draft_is_converted_when_it_is_asked_for() {
    let definition = json!({"name": "t", "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object", "properties": {"a": {"items": [{"type": "string"}]}}}});
    let schema = |target| {
        let value = emit(tool(definition.clone()), target).unwrap().value;
        (value["$schema"].clone(), value["properties"]["a"].clone())
    };
    let (old, new) = (
        json!({"items": [{"type": "string"}]}),
        json!({"prefixItems": [{"type": "string"}]}),
    );
    assert_eq!(
        schema(EmitTarget::JsonSchema),
        (
            json!("http://json-schema.org/draft-07/schema#"),
            old.clone()
        )
    );
    assert_eq!(
        schema(EmitTarget::JsonSchema201909),
        (json!("https://json-schema.org/draft/2019-09/schema"), old)
    );
    assert_eq!(
        schema(EmitTarget::JsonSchema202012),
        (json!("https://json-schema.org/draft/2020-12/schema"), new)
    );
}

#[test]
fn a_canonical_tool_of_others_is_read_with_warnings() {
    let document = json!({"name": "read_file", "inputs": {"type": "object"}, "owner": "ada"});
    let read = canonicalize(document, FormatChoice::Detect)
        .unwrap()
        .tools
        .remove(0);
    let warnings: Vec<&str> = read.warnings.iter().map(|it| it.code()).collect();
    assert_eq!(
        warnings,
        ["extra-field", "no-capabilities", "no-description"]
    );
    assert_eq!(read.tool.hints.action, "read");
    let kept = read
        .tool
        .extensions
        .get(&toolwarden_model::Format::Canonical);
    assert_eq!(kept.unwrap()["owner"], json!("ada"));
}

#[test]
fn a_dynamic_reference_that_a_target_does_not_have_is_a_semantic_loss() {
    let definition = json!({"name": "t", "inputSchema": {"type": "object", "$dynamicAnchor": "node",
        "properties": {"a": {"type": "object", "$dynamicRef": "#node"}}}});
    let emission = emit(tool(definition), EmitTarget::Gemini).unwrap();
    assert_eq!(
        account(&emission),
        [
            "metadata /inputs/$dynamicAnchor",
            "semantic /inputs/properties/a/$dynamicRef"
        ]
    );
}

#[test]
fn dynamic_references_become_plain_ones_in_a_draft_that_writes_them_differently() {
    let recursive = json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "title": "t",
        "type": "object", "$recursiveAnchor": true, "properties": {"a": {"$recursiveRef": "#"}}});
    check(
        recursive,
        EmitTarget::JsonSchema202012,
        &json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "t",
            "type": "object", "properties": {"a": {"$ref": "#"}}}),
        &[
            "changed /inputs/$recursiveAnchor",
            "changed /inputs/properties/a/$recursiveRef",
            "changed /inputs/properties/a/$ref",
            "changed /inputs/$schema",
        ],
    );
    let dynamic = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "t",
        "type": "object", "$dynamicAnchor": "node", "properties": {"a": {"$dynamicRef": "#node"}}});
    check(
        dynamic,
        EmitTarget::JsonSchema201909,
        &json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "title": "t",
            "type": "object", "properties": {"a": {"$ref": "#node"}}, "$anchor": "node"}),
        &[
            "changed /inputs/$dynamicAnchor",
            "changed /inputs/$anchor",
            "changed /inputs/properties/a/$dynamicRef",
            "changed /inputs/properties/a/$ref",
            "changed /inputs/$schema",
        ],
    );
    // Another schema resource may bind the anchor differently.
    let bundled = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "t",
        "type": "object", "$dynamicAnchor": "node", "properties": {"a": {"$dynamicRef": "#node"}},
        "$defs": {"b": {"$id": "https://example.com/b", "$dynamicAnchor": "node", "type": "object"}}});
    let emission = emit(tool(bundled), EmitTarget::JsonSchema201909).unwrap();
    let lost = "semantic /inputs/properties/a/$dynamicRef".to_owned();
    assert!(account(&emission).contains(&lost), "{emission:#?}");
}
