//! Suites that are drafted from tools: what is written is a suite, and its cases can be run.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use toolwarden_canon::{FormatChoice, canonicalize};
use toolwarden_model::Tool;
use toolwarden_probe::{CallExample, ProbeSuite, draft_suite, infer_tools, run_suite};
use toolwarden_testkit::provider::{
    FakeProvider, ProviderResponse, Script, chat_completion, tool_call,
};
use toolwarden_trials::{TrialOrigin, build_snapshot};

use crate::support::{settings, target};

fn tools(document: Value) -> Vec<Tool> {
    let read = canonicalize(document, FormatChoice::Detect).unwrap();
    read.tools.into_iter().map(|it| it.tool).collect()
}

fn parse(text: &str) -> ProbeSuite {
    ProbeSuite::parse(text, Path::new("suite.yaml"))
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn orders() -> Vec<Tool> {
    tools(json!([
        {"name": "create_order", "description": "Create an order.", "inputSchema": {
            "type": "object",
            "properties": {
                "customer": {"type": "string"},
                "priority": {"type": "string", "enum": ["low", "normal", "high"]},
                "lines": {"type": "array", "items": {"type": "object",
                    "properties": {"sku": {"type": "string", "pattern": "^[A-Z]{3}[0-9]{2}$"}, "quantity": {"type": "integer", "minimum": 1}},
                    "required": ["sku", "quantity"]}},
                "gift": {"type": "object", "properties": {"text": {"type": "string"}}}
            },
            "required": ["customer"]}},
        {"name": "get_order", "description": "Get an order.", "inputSchema": {
            "type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
         "outputSchema": {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}}
    ]))
}

#[test]
fn every_kind_of_case_is_drafted_and_reads_as_a_suite() {
    let draft = draft_suite("shop", "tools.json", &orders(), &[]).unwrap();
    let suite = parse(&draft.text);
    let names: Vec<&str> = suite.cases.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "create_order/typical",
            "create_order/optional",
            "create_order/enum-priority",
            "create_order/nested-gift",
            "create_order/parallel",
            "create_order/refusal",
            "get_order/typical",
            "get_order/parallel",
            "get_order/refusal",
            "create_order+get_order/two-tools",
            "create_order+get_order/multi-turn",
        ]
    );
    assert_eq!((draft.tools, draft.cases, draft.requests), (2, 11, 12));
    assert_eq!(draft.skipped, []);
    let offered = |tools: &[Tool]| -> Vec<(String, String, Value)> {
        let parts = tools.iter();
        parts
            .map(|it| {
                (
                    it.name.clone(),
                    it.description.clone(),
                    Value::Object(it.inputs.clone()),
                )
            })
            .collect()
    };
    assert_eq!(offered(&suite.tools), offered(&orders()));
    let sequence = suite.cases.last().unwrap();
    assert_eq!(
        sequence.messages[0]["content"],
        "Use the tool `create_order` with customer \"alpha\". Wait for its result. After that, \
         use the tool `get_order` with order_id \"A-1001\"."
    );
    assert_eq!(
        sequence.turns[0].calls[0].arguments,
        Some(json!({"order_id": "A-1001"}))
    );
}

#[test]
fn arguments_satisfy_the_schema_or_are_left_out() {
    // The pattern needs the schema engine; the contradiction has no value at all.
    let found = draft_suite(
        "s",
        "x",
        &tools(json!([
            {"name": "coded", "inputSchema": {"type": "object", "properties":
                {"code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}}, "required": ["code"]}},
            {"name": "never", "inputSchema": {"type": "object", "properties":
                {"n": {"type": "integer", "minimum": 5, "maximum": 4}}, "required": ["n"]}}
        ])),
        &[],
    );
    let suite = parse(&found.unwrap().text);
    let typical = |tool: &str| {
        let name = format!("{tool}/typical");
        suite.cases.iter().find(|it| it.name == name).unwrap().calls[0]
            .arguments
            .clone()
    };
    let code = typical("coded").unwrap()["code"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(code.len() == 8 && code.as_bytes()[3] == b'-', "{code}");
    assert_eq!(typical("never"), None);
}

#[test]
fn recorded_calls_give_the_arguments_and_without_definitions_the_tools() {
    let call = |tool: &str, arguments: Value| CallExample {
        tool: tool.to_owned(),
        arguments: arguments.as_object().unwrap().clone(),
    };
    let calls = [
        call("get_order", json!({"order_id": 7})),
        call("get_order", json!({"order_id": "R-7"})),
        call("get_order", json!({"order_id": "R-8"})),
    ];
    let draft = draft_suite("s", "x", &orders(), &calls).unwrap();
    let suite = parse(&draft.text);
    let arguments = |name: &str| -> Vec<Option<Value>> {
        let case = suite.cases.iter().find(|it| it.name == name).unwrap();
        case.calls.iter().map(|it| it.arguments.clone()).collect()
    };
    assert_eq!(
        arguments("get_order/typical"),
        [Some(json!({"order_id": "R-7"}))]
    );
    assert_eq!(
        arguments("get_order/parallel"),
        [
            Some(json!({"order_id": "R-7"})),
            Some(json!({"order_id": "R-8"}))
        ]
    );
    let calls = [
        call("pay", json!({"amount": 3, "to": {"iban": "x"}})),
        call(
            "pay",
            json!({"amount": 3.5, "to": {"iban": "y"}, "note": null}),
        ),
    ];
    let inferred = infer_tools(&calls);
    assert_eq!(
        Value::Object(inferred[0].inputs.clone()),
        json!({"type": "object",
            "properties": {
                "amount": {"type": ["integer", "number"]},
                "note": {"type": "null"},
                "to": {"type": "object", "properties": {"iban": {"type": "string"}}, "required": ["iban"]}},
            "required": ["amount", "to"]})
    );
    parse(&draft_suite("s", "x", &inferred, &calls).unwrap().text);
}

#[test]
fn hostile_names_and_texts_stay_text() {
    let names = [
        "true",
        "- a",
        "x: y",
        "a#2",
        "# no",
        "\"q\"",
        "it's",
        "日本",
        "a\nb",
        "\u{1b}[31m",
        "{}",
        "[1]",
        "&a",
        "*a",
        "!t",
        "%",
        "@",
        "`",
        "null",
        "1.0",
        "0x1",
        "a\u{2028}b",
        "\u{202e}rtl",
        "😀",
        "\u{e0041}",
        "<script>",
        "?",
        "|",
        ">",
    ];
    let definitions: Vec<Value> = names
        .iter()
        .map(|name| {
            let schema = json!({"type": "object", "properties": {*name: {"type": "string", "description": name}}, "required": [name]});
            json!({"name": name, "description": format!("{name} # {name}: {name}"), "input_schema": schema})
        })
        .collect();
    let read = tools(json!(definitions));
    let draft = draft_suite("a: #b\n- c", "x\n- injected: true", &read, &[]).unwrap();
    assert_eq!(draft.skipped, []);
    let suite = parse(&draft.text);
    assert_eq!(suite.name, "a: #b\n- c");
    let found: Vec<&str> = suite.tools.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(found, names);
    for (tool, name) in suite.tools.iter().zip(names) {
        assert_eq!(tool.description, format!("{name} # {name}: {name}"));
    }
    assert!(!draft.text.contains('\u{1b}') && !draft.text.contains('\u{202e}'));
}

#[test]
fn tools_that_no_model_can_be_offered_are_left_out_with_the_reason() {
    let mut read = tools(json!([
        {"name": "good", "input_schema": {"type": "object"}},
        {"name": "bad", "input_schema": {"type": "object", "properties": {"a": {"type": "strnig"}}}}
    ]));
    read.push(read[0].clone());
    let draft = draft_suite("s", "x", &read, &[]).unwrap();
    assert_eq!(draft.tools, 1);
    let left: Vec<&str> = draft.skipped.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(left, ["bad", "good"]);
    assert!(draft.skipped[0].1.contains("strnig"), "{:?}", draft.skipped);
    assert_eq!(draft.skipped[1].1, "another tool has the same name");
}

/// A model that does what the prompts of a drafted suite say.
fn obedient(expected: BTreeMap<String, Vec<(String, String)>>) -> Script {
    Script::by(move |request, _| {
        let messages = request.body["messages"].as_array().unwrap();
        let prompt = messages[0]["content"].as_str().unwrap();
        let later = messages.iter().any(|it| it["role"] == "tool");
        let calls = expected
            .get(&format!("{later}{prompt}"))
            .cloned()
            .unwrap_or_default();
        let calls: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(at, (tool, arguments))| {
                tool_call(&format!("call_{at}a1b2c3d4"), tool, arguments)
            })
            .collect();
        let (message, finish) = if calls.is_empty() {
            (
                json!({"role": "assistant", "content": "Done."}),
                json!("stop"),
            )
        } else {
            (
                json!({"role": "assistant", "content": null, "tool_calls": calls}),
                json!("tool_calls"),
            )
        };
        ProviderResponse::json(&chat_completion(&message, &finish))
    })
}

#[tokio::test]
async fn a_model_that_obeys_meets_every_drafted_case() {
    let suite = parse(&draft_suite("shop", "x", &orders(), &[]).unwrap().text);
    let mut expected = BTreeMap::new();
    for case in &suite.cases {
        let prompt = case.messages[0]["content"].as_str().unwrap();
        let calls = |calls: &[toolwarden_trials::ExpectedCall]| -> Vec<(String, String)> {
            let calls = calls.iter();
            calls
                .map(|it| (it.tool.clone(), it.arguments.clone().unwrap().to_string()))
                .collect()
        };
        expected.insert(format!("false{prompt}"), calls(&case.calls));
        for turn in &case.turns {
            expected.insert(format!("true{prompt}"), calls(&turn.calls));
        }
    }
    let provider = FakeProvider::start(obedient(expected));
    let runs = run_suite(vec![target(&provider)], &suite, &settings(), |_| {}).await;
    let origin = TrialOrigin {
        provider: "fake".to_owned(),
        model_id: "synthetic-1".to_owned(),
        wire: runs[0].provider.wire,
        at: None,
    };
    let taken = build_snapshot(origin, &suite.facts(), &runs[0].trials);
    assert_eq!(toolwarden_trials::conformance(&taken), []);
    let open: Vec<_> = taken
        .cases
        .iter()
        .filter(|(_, it)| !it.met.is_always())
        .collect();
    assert_eq!(open, []);
    // 12 requests a repetition, and the suite repeats each case 5 times.
    assert_eq!(taken.trials.measured, 60);
}
