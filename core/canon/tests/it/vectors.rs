//! The acceptance vectors: what the original program does, case by case, and where ours differs on
//! purpose.

use serde_json::{Value, json};
use toolwarden_canon::{EmitTarget, FormatChoice, canonicalize, emit};
use toolwarden_model::json::Object;
use toolwarden_model::{Domain, Format, FormatFamily, Hints, HintsEvidence, Security, Tool};
use toolwarden_testkit::read_vectors;

const FAMILIES: [&str; 5] = ["openai", "anthropic", "mcp", "langchain", "raw"];

/// What a vector expects of us where that is not what the original does.
struct Purpose {
    why: &'static str,
    format: Option<&'static str>,
    scores: Option<[f64; 5]>,
    result: Option<Value>,
}

const fn same(why: &'static str) -> Purpose {
    Purpose {
        why,
        format: None,
        scores: None,
        result: None,
    }
}

const NO_DESCRIPTION: &str = "Tool has no description — consider adding one.";

/// The differences on purpose, by the name of the vector.
fn purpose(name: &str) -> Option<Purpose> {
    let schema =
        json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]});
    let result = |format: &str, name: &str, inputs: Value, warnings: Value| {
        Some(json!({"source_format": format, "name": name, "inputs": inputs, "warnings": warnings}))
    };
    Some(match name {
        "openai_function_null" => Purpose {
            result: result(
                "raw",
                "",
                json!({}),
                json!([
                    "Parser error for openai: `/function` is null, expected an object",
                    "Tool has no name — consider adding one.",
                    NO_DESCRIPTION
                ]),
            ),
            ..same("the original raises on bad input")
        },
        "anthropic_server_tool" => Purpose {
            format: Some("anthropic"),
            scores: Some([0.0, 1.0, 0.0, 0.0, 0.1]),
            result: result("anthropic", "web_search", json!({}), json!([])),
            ..same("the original loses the keys of a server tool")
        },
        "mcp_and_anthropic" => Purpose {
            result: result(
                "anthropic",
                "a",
                schema,
                json!(["Format is ambiguous: taken as anthropic, could be mcp."]),
            ),
            ..same("ambiguity is reported")
        },
        "openai_and_mcp" => Purpose {
            result: result(
                "openai",
                "a",
                schema,
                json!(["Format is ambiguous: taken as openai-legacy, could be mcp."]),
            ),
            ..same("ambiguity is reported")
        },
        "langchain_properties_no_desc" => Purpose {
            format: Some("langchain"),
            result: result(
                "langchain",
                "a",
                json!({"type": "object", "properties": {"q": {"type": "string"}}}),
                json!([NO_DESCRIPTION]),
            ),
            ..same(
                "the document promises the format without a description, and the original loses the properties",
            )
        },
        "langchain_title_form" => Purpose {
            format: Some("json-schema"),
            result: result(
                "json-schema",
                "A",
                json!({"properties": {"q": {"type": "string"}}, "type": "object"}),
                json!([]),
            ),
            ..same("the original loses the properties of a titled schema")
        },
        "langchain_extra_schema_keys" => Purpose {
            result: result(
                "langchain",
                "a",
                json!({"type": "object", "properties": {"q": {"$ref": "#/$defs/Q"}}, "$defs": {"Q": {"type": "string"}}, "additionalProperties": false}),
                json!([]),
            ),
            ..same("the original loses $defs and additionalProperties")
        },
        "langchain_args_schema_str" => Purpose {
            result: result(
                "raw",
                "a",
                json!({}),
                json!([
                    "Parser error for langchain: `/args_schema` is a string, expected an object"
                ]),
            ),
            ..same("the original's warning is a Python message")
        },
        "null_description" => Purpose {
            result: result("anthropic", "a", schema, json!([NO_DESCRIPTION])),
            ..same("the original fails on a null description")
        },
        "null_schema" => Purpose {
            result: result(
                "raw",
                "a",
                json!({}),
                json!(["Parser error for anthropic: `/input_schema` is null, expected an object"]),
            ),
            ..same("the original's warning is a Python message")
        },
        "gemini_function_declaration" => Purpose {
            format: Some("gemini"),
            scores: Some([0.0, 0.0, 0.0, 0.0, 0.1]),
            result: result(
                "gemini",
                "a",
                json!({"type": "object", "properties": {"q": {"type": "string"}}}),
                json!([]),
            ),
            ..same("capital types are Gemini's; the original passes them on as JSON Schema")
        },
        "bedrock_toolSpec" => Purpose {
            format: Some("bedrock"),
            result: result("bedrock", "a", schema, json!([])),
            ..same("the original loses everything in a toolSpec")
        },
        _ => return None,
    })
}

#[test]
fn detection_and_reading() {
    let Some(vectors) = read_vectors("canon.json") else {
        return;
    };
    let rows =
        vectors["detect_name_input_format_confidence[openai,anthropic,mcp,langchain,raw]_result"]
            .as_array()
            .unwrap();
    let mut different = 0;
    for row in rows {
        let (name, input) = (row[0].as_str().unwrap(), &row[1]);
        let read = canonicalize(input.clone(), FormatChoice::Detect)
            .unwrap()
            .tools
            .remove(0);
        let purpose = purpose(name).unwrap_or_else(|| same(""));
        different += usize::from(!purpose.why.is_empty());
        let format = read.detection.format.family().as_str();
        assert_eq!(
            format,
            purpose.format.unwrap_or(row[2].as_str().unwrap()),
            "{name}: {}",
            purpose.why
        );
        let scores = FAMILIES.map(|word| {
            read.detection
                .family_score(word.parse::<FormatFamily>().unwrap())
                .fraction()
        });
        let expected = purpose
            .scores
            .unwrap_or_else(|| std::array::from_fn(|index| row[3][index].as_f64().unwrap()));
        assert_eq!(scores, expected, "{name}: {}", purpose.why);
        let warnings: Vec<String> = read.warnings.iter().map(ToString::to_string).collect();
        let result = json!({"source_format": read.tool.format.family().as_str(), "name": read.tool.name,
            "inputs": read.tool.inputs, "warnings": warnings});
        assert_eq!(
            result,
            purpose.result.unwrap_or_else(|| row[4].clone()),
            "{name}: {}",
            purpose.why
        );
        assert_eq!(read.tool.definition.unwrap().value(), *input, "{name}");
    }
    println!("{} vectors, {different} different on purpose", rows.len());
    assert_eq!((rows.len(), different), (27, 12));
}

/// Where inference differs on purpose: the whole row, and why.
const INFERENCE: &[(&str, [&str; 2], [bool; 2], &str)] = &[
    (
        "search_web",
        ["search", "web"],
        [false, true],
        "the original's action is random",
    ),
    (
        "delete_record",
        ["delete", "database"],
        [true, false],
        "side-effect actions stay specific",
    ),
    (
        "update_profile",
        ["update", "general"],
        [true, false],
        "`file` inside `profile` tells nothing; specific action",
    ),
    (
        "get_profile",
        ["get", "general"],
        [false, true],
        "`file` inside `profile` tells nothing",
    ),
    (
        "encode_base64",
        ["read", "general"],
        [false, true],
        "`code` inside `encode` tells nothing",
    ),
    (
        "send_email",
        ["send", "email"],
        [true, false],
        "side-effect actions stay specific",
    ),
    (
        "run_sql",
        ["run", "database"],
        [true, false],
        "`run` is a side effect",
    ),
    (
        "search_database",
        ["search", "database"],
        [false, true],
        "the more specific word decides the domain",
    ),
    (
        "http_post",
        ["post", "web"],
        [true, false],
        "side-effect actions stay specific",
    ),
    (
        "postcode_lookup",
        ["read", "general"],
        [false, true],
        "`post` and `code` inside `postcode` tell nothing",
    ),
    (
        "capital_city",
        ["read", "general"],
        [false, true],
        "`api` inside `capital` tells nothing",
    ),
    (
        "widget_count",
        ["read", "general"],
        [false, true],
        "`get` inside `widget` tells nothing",
    ),
    (
        "drop_table",
        ["drop", "general"],
        [true, false],
        "`drop` is a side effect",
    ),
    (
        "execute_code",
        ["execute", "code"],
        [true, false],
        "`execute` is a side effect",
    ),
    (
        "transfer_money",
        ["transfer", "general"],
        [true, false],
        "`transfer` is a side effect",
    ),
    (
        "webhook",
        ["fire", "general"],
        [true, false],
        "`web` inside `webhook` tells nothing; `fire` is a side effect",
    ),
];

#[test]
fn inference() {
    let Some(vectors) = read_vectors("canon.json") else {
        return;
    };
    let key = "infer_name_description_action(list=nondeterministic)_domain_sideeffects_idempotent";
    let rows = vectors[key].as_array().unwrap();
    let mut different = Vec::new();
    for row in rows {
        let (name, description) = (row[0].as_str().unwrap(), row[1].as_str().unwrap());
        let document = json!({"name": name, "description": description, "input_schema": {}});
        let hints = canonicalize(document, FormatChoice::Detect)
            .unwrap()
            .tools
            .remove(0)
            .tool
            .hints;
        let ours = json!([
            hints.action,
            hints.domain.as_str(),
            hints.side_effects,
            hints.idempotent
        ]);
        match INFERENCE.iter().find(|(vector, ..)| *vector == name) {
            Some((_, [action, domain], [side_effects, idempotent], why)) => {
                assert_eq!(
                    ours,
                    json!([action, domain, side_effects, idempotent]),
                    "{name}: {why}"
                );
                assert_ne!(
                    ours,
                    json!([row[2], row[3], row[4], row[5]]),
                    "{name} does not differ"
                );
                different.push(name);
            }
            None => assert_eq!(ours, json!([row[2], row[3], row[4], row[5]]), "{name}"),
        }
    }
    println!(
        "{} vectors, {} different on purpose",
        rows.len(),
        different.len()
    );
    assert_eq!(different.len(), INFERENCE.len());
}

#[test]
fn emission() {
    let Some(vectors) = read_vectors("canon.json") else {
        return;
    };
    let rows = vectors["emit_label_inputs_parameters_jsonschema"]
        .as_array()
        .unwrap();
    for row in rows {
        let label = row[0].as_str().unwrap();
        let tool = tool_of(label, row[1].as_object().unwrap());
        let openai = emit(tool.clone(), EmitTarget::OpenaiChat).unwrap().value;
        assert_eq!(openai["function"]["parameters"], row[2], "{label}");
        let anthropic = emit(tool.clone(), EmitTarget::Anthropic).unwrap().value;
        assert_eq!(anthropic["input_schema"], row[2], "{label}");
        let mcp = emit(tool.clone(), EmitTarget::Mcp).unwrap().value;
        assert_eq!(mcp["inputSchema"], row[2], "{label}");
        let mut schema = emit(tool.clone(), EmitTarget::JsonSchema).unwrap().value;
        if label == "title_and_schema_override" {
            // The original loses the tool's name and description here; ours keeps them aside.
            let members = schema.as_object_mut().unwrap();
            assert_eq!(members.shift_remove("x-name"), Some(json!("t")));
            assert_eq!(members.shift_remove("x-description"), Some(json!("d")));
        }
        assert_eq!(schema, row[3], "{label}");
    }
    assert_eq!(rows.len(), 4);
}

fn tool_of(label: &str, inputs: &Object) -> Tool {
    let mut tool = Tool::new(Format::Raw);
    tool.inputs = inputs.clone();
    (tool.name, tool.description) = ("t".to_owned(), "d".to_owned());
    if label == "security_and_outputs" {
        tool.name = "delete_record".to_owned();
        tool.description = "Permanently delete a database record by ID".to_owned();
        let capabilities = json!({"action": "delete", "domain": "database", "side_effects": true, "idempotent": false, "cost_estimate": "low"});
        tool.hints =
            Hints::from_value(capabilities, toolwarden_model::json::Pointer::root()).unwrap();
        let security = json!({"required_permissions": ["db:write", "records:delete"], "data_classification": "confidential", "pii_handling": "processes"});
        tool.security =
            Some(Security::from_value(security, toolwarden_model::json::Pointer::root()).unwrap());
        tool.outputs = json!({"type": "object"}).as_object().unwrap().clone();
        tool.evidence = HintsEvidence::all(toolwarden_model::Evidence::Explicit);
        assert_eq!(tool.hints.domain, Domain::Database);
    }
    tool
}
