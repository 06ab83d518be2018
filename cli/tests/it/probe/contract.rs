//! A contract file: whom to ask, and what is pinned.

use serde_json::{Value, json};
use toolwarden_testkit::read_vectors;

use super::{ProbeSandbox, parsed};

/// A probe with a suite and a contract that pins everything the first provider shows.
fn with_contract(vectors: &Value) -> ProbeSandbox {
    let probe = ProbeSandbox::new();
    probe.write(
        "probe/suite.yaml",
        include_str!("../../../../examples/suite.weather.yaml"),
    );
    let contract = json!({
        "version": 1,
        "suite": "suite.yaml",
        "providers": {"deepseek": {}, "qwen": {}},
        "expected": vectors["deepseek_snapshot"]["tools"],
    });
    probe.write("probe/contract.yaml", &contract.to_string());
    probe
}

const RUN: [&str; 4] = [
    "run",
    "--contract",
    "probe/contract.yaml",
    "--from-fixtures",
];

#[test]
fn the_codes_and_the_number_of_comparisons_are_the_original_ones() {
    let Some(vectors) = read_vectors("probe-flagship.json") else {
        return;
    };
    let probe = with_contract(&vectors);
    let one = [&RUN[..], &["--base", "deepseek"]].concat();
    let both = [&RUN[..], &["--base", "deepseek", "--base", "qwen"]].concat();
    let pinned = &vectors["contract_expected_deepseek_only_exit"];
    let drifted = &vectors["contract_deepseek_qwen_exit"];
    let count = vectors["contract_deepseek_qwen_diff_count"]
        .as_u64()
        .unwrap();
    for (args, code, count) in [
        (&one, pinned, 1),
        (&both, drifted, count),
        (&RUN.to_vec(), drifted, count),
    ] {
        let json = [&args[..], &["--format", "json"]].concat();
        let ours = probe.run(&json);
        assert_eq!(json!(ours.code), *code, "{ours:?}");
        let document = parsed(&ours.out);
        assert_eq!(
            document["comparisons"].as_array().unwrap().len() as u64,
            count
        );
        let theirs = probe.tooldrift(&json);
        assert_eq!(json!(theirs.code), *code, "{theirs:?}");
        let document = parsed(&theirs.out);
        if count == 1 {
            assert!(
                document.get("diffs").is_none(),
                "one comparison stands alone"
            );
            continue;
        }
        let keys: Vec<&String> = document.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["diffs", "equivalent"]);
        assert_eq!(document["equivalent"], false);
        let labels = document["diffs"].as_array().unwrap().iter();
        let labels: Vec<Value> = labels
            .map(|it| json!([it["old_label"], it["new_label"]]))
            .collect();
        let (deepseek, qwen) = ("deepseek/deepseek-chat", "qwen/qwen-plus");
        let pinned = "expected/pinned";
        assert_eq!(
            json!(labels),
            json!([[deepseek, qwen], [deepseek, pinned], [qwen, pinned]])
        );
        let fields = document["diffs"][2]["tools"][1]["fields"].clone();
        let fields: Vec<Value> = fields
            .as_array()
            .unwrap()
            .iter()
            .map(|it| json!([it["field"], it["old"], it["new"], it["severity"]]))
            .collect();
        assert_eq!(
            json!(fields),
            json!([
                ["arguments_encoding", "object", "json_string", "breaking"],
                ["tool_call_id_format", "custom", "openai", "warning"],
                ["finish_reason", "stop", "tool_calls", "warning"],
            ])
        );
    }
}

/// Only what is named is compared; a file that pins nothing and one provider are nothing to compare.
#[test]
fn what_is_not_pinned_is_not_compared() {
    let probe = ProbeSandbox::new();
    probe.write(
        "suite.yaml",
        include_str!("../../../../examples/suite.weather.yaml"),
    );
    let contract = |expected: &str| {
        // The bundled answer of qwen has faults, which count whatever is pinned.
        let limits = match expected {
            "" => "",
            _ => "max_rate: {wrong_type: 1, client_break: 1}",
        };
        let text = format!("suite: suite.yaml\nproviders: {{qwen: }}\n{limits}\n{expected}");
        probe.write("c.yaml", &text);
        probe.run(&["run", "--contract", "c.yaml", "--from-fixtures"])
    };
    for (expected, code) in [
        ("expected: {get_weather: {emitted: true}}", 0),
        ("expected: {get_weather: {arguments_encoding: object}}", 0),
        (
            "expected: {get_weather: {arguments_encoding: json_string}}",
            1,
        ),
        (
            "expected: {get_forecast: {arg_nesting: {days: integer}}}",
            1,
        ),
        ("expected: {get_forecast: {schema_valid_rate: 0.5}}", 1),
        ("expected: {get_weather: {schema_valid_rate: 1}}", 0),
        ("", 2),
    ] {
        let said = contract(expected);
        assert_eq!(said.code, code, "{expected}: {said:#?}");
    }
    let nothing = "error: nothing to compare: a single provider was probed and the contract pins no 'expected' block.\n";
    assert!(contract("").err.starts_with(nothing));
    let said = probe.tooldrift(&["run", "--contract", "c.yaml", "--from-fixtures"]);
    assert!(said.code == 2 && said.err.starts_with(nothing), "{said:?}");
}

/// Pins that the original does not know are checked as well if its output is requested.
#[test]
fn a_pinned_share_is_not_lost_in_the_original_words() {
    let probe = ProbeSandbox::new();
    probe.write(
        "suite.yaml",
        include_str!("../../../../examples/suite.weather.yaml"),
    );
    let text = "suite: suite.yaml\nproviders: {qwen: }\nexpected: {get_forecast: {schema_valid_rate: 1}}\n";
    probe.write("c.yaml", text);
    let said = probe.tooldrift(&[
        "run",
        "--contract",
        "c.yaml",
        "--from-fixtures",
        "-f",
        "json",
    ]);
    assert_eq!(said.code, 1, "{said:?}");
    let fields = parsed(&said.out)["tools"][0]["fields"].clone();
    assert_eq!(fields[0]["field"], "schema_valid_rate", "{}", said.out);
}

fn contract_of(provider: &str, expected: &Value) -> ProbeSandbox {
    let probe = ProbeSandbox::new();
    let suite = include_str!("../../../../examples/suite.weather.yaml");
    probe.write("suite.yaml", suite);
    let contract = json!({
        "version": 1,
        "suite": "suite.yaml",
        "providers": {provider: {}},
        "expected": expected,
    });
    probe.write("contract.yaml", &contract.to_string());
    probe
}

#[test]
fn a_contract_that_pins_nothing_compares_nothing() {
    let probe = contract_of("deepseek", &json!({"get_weather": {}}));
    let args = ["run", "--contract", "contract.yaml", "--from-fixtures"];
    let said = probe.run_to(2, &args);
    assert!(said.err.contains("nothing to compare"), "{said:?}");
}

#[test]
fn faults_are_reported_whatever_is_pinned() {
    // The bundled answer of qwen has a text where the schema wants an integer, and arguments as an
    // object, which the client libraries do not read.
    let probe = contract_of("qwen", &json!({"get_weather": {"emitted": true}}));
    let args = [
        "run",
        "--contract",
        "contract.yaml",
        "--from-fixtures",
        "--format",
        "json",
    ];
    let said = probe.run_to(1, &args);
    let told = parsed(&said.out);
    let changes = told["comparisons"][0]["changes"].as_array().unwrap();
    let wrong = changes.iter().find(|it| it["pointer"] == "/days").unwrap();
    assert_eq!(
        (&wrong["tool"], &wrong["severity"]),
        (&json!("get_forecast"), &json!("breaking"))
    );
    let broken = changes.iter().filter(|it| it["field"] == "client_break");
    let broken: Vec<Value> = broken
        .map(|it| json!([it["pointer"], it["severity"]]))
        .collect();
    assert_eq!(
        broken,
        ["langchain-openai", "openai-node", "openai-python"]
            .map(|it| json!([format!("/replies/notes/client-{it}"), "breaking"]))
    );
    // No allowed drop covers a fault; a pinned rate covers the faults that it names.
    probe.run_to(1, &[&args[..], &["--allowed-drop", "1"]].concat());
    let strict = probe.read("contract.yaml");
    let limited = |limits: Value| {
        let expected = format!("\"max_rate\": {limits}, \"expected\"");
        strict.replace("\"expected\"", &expected)
    };
    for one in ["wrong_type", "client_break"] {
        probe.write("contract.yaml", &limited(json!({one: 1})));
        probe.run_to(1, &args);
    }
    let allowing = limited(json!({"wrong_type": 1, "client_break": 1}));
    probe.write("contract.yaml", &allowing);
    probe.run_to(0, &args);
    probe.write(
        "contract.yaml",
        &allowing.replace("wrong_type", "wrong_typ"),
    );
    let said = probe.run_to(2, &args);
    assert!(said.err.contains("wrong_typ"), "{}", said.err);
    probe.write("contract.yaml", &strict);
    // What the suite forbids breaks.
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    let suite = json!({
        "tools": [tool("get_weather"), tool("get_forecast")],
        "cases": [{
            "name": "now",
            "messages": [{"role": "user", "content": "How is the weather?"}],
            "forbid": ["get_forecast"],
        }],
    });
    probe.write("suite.yaml", &suite.to_string());
    probe.run_to(1, &args);
}
