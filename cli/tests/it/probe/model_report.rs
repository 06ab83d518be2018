//! `probe report`: the page, its formats, its evidence, and that it is never greener than `run`.

use serde_json::{Value, json};
use toolwarden_testkit::provider::{
    FakeProvider, ProviderResponse, Script, chat_completion, good, tool_call,
};

use super::{ProbeSandbox, parsed};

const FIXTURES: [&str; 5] = ["deepseek", "qwen", "kimi", "glm", "minimax"];

fn snapshot_fixtures(probe: &ProbeSandbox) {
    for name in FIXTURES {
        let file = format!("{name}.json");
        probe.run_to(
            0,
            &[
                "snapshot",
                "--provider",
                name,
                "--from-fixtures",
                "-q",
                "-o",
                &file,
            ],
        );
    }
}

fn report(probe: &ProbeSandbox, args: &[&str]) -> Value {
    let words = [&["report", "--format", "json"], args].concat();
    parsed(&probe.run_to(0, &words).out)
}

/// The decision of each model of a document.
fn decisions(document: &Value) -> Vec<(&str, &str)> {
    let models = document["models"].as_array().unwrap().iter();
    models
        .map(|it| {
            (
                it["model"].as_str().unwrap(),
                it["decision"].as_str().unwrap(),
            )
        })
        .collect()
}

#[test]
fn no_model_is_greener_than_the_run_says() {
    let probe = ProbeSandbox::new();
    snapshot_fixtures(&probe);
    for old in FIXTURES {
        for new in FIXTURES {
            let run = ["run", "--old", old, "--new", new, "--from-fixtures"];
            let code = probe.run(&run).code;
            let (one, other) = (format!("{old}.json"), format!("{new}.json"));
            let document = report(&probe, &[&one, &other]);
            let decision = document["models"][1]["decision"].as_str().unwrap();
            let allowed: &[&str] = match code {
                0 => &["go", "not known", "no-go"],
                1 => &["no-go"],
                3 => &["not known", "no-go"],
                _ => panic!("{old} {new}: {code}"),
            };
            assert!(
                allowed.contains(&decision),
                "{old} → {new}: run {code}, report {decision}"
            );
            let tools = document["models"][1]["tools"].as_array().unwrap();
            for tool in tools.iter().filter(|it| it["decision"] == "go") {
                assert_eq!(tool["breaking"], 0, "{tool}");
            }
        }
    }
}

#[test]
fn contract_runs_and_pins_are_reported() {
    let probe = ProbeSandbox::new();
    probe.write(
        "contract.yaml",
        include_str!("../../../../examples/contract.yaml"),
    );
    probe.write(
        "suite.weather.yaml",
        include_str!("../../../../examples/suite.weather.yaml"),
    );
    let contract = ["--contract", "contract.yaml", "--from-fixtures"];
    let document = report(&probe, &contract);
    assert_eq!(
        decisions(&document),
        [
            ("deepseek/deepseek-chat", "not known"),
            ("qwen/qwen-plus", "no-go")
        ]
    );
    assert_eq!(
        document["command"],
        "toolwarden probe report --format json --contract contract.yaml --from-fixtures"
    );
    assert_eq!(document["schema"], "toolwarden/probe/report/v1");
    assert_eq!(document["decision"], "no-go");
    // One trial is not a rate.
    let called = &document["models"][0]["tools"][0]["called"];
    assert_eq!(*called, json!({"k": 1, "n": 1, "interval": null}));
    // The same snapshots judged by the same pins.
    probe.run_to(
        0,
        &[
            "snapshot",
            "--provider",
            "qwen",
            "--from-fixtures",
            "-q",
            "-o",
            "qwen.json",
        ],
    );
    let judged = report(&probe, &["qwen.json", "--contract", "contract.yaml"]);
    assert_eq!(decisions(&judged), [("qwen/qwen-plus", "no-go")]);
    let alone = report(&probe, &["qwen.json"]);
    assert_ne!(alone["models"][0]["decision"], "go");
}

/// A model that calls a tool with a hostile name, with arguments that the schema rejects.
fn hostile_provider() -> FakeProvider {
    let name = "<script>alert(1)</script>";
    let calls = json!([
        tool_call(
            "call_0a1b2c3d4e",
            "get_forecast",
            r#"{"location":"</pre><img src=x>","days":"3"}"#
        ),
        tool_call("call_1a1b2c3d4e", name, "{}"),
    ]);
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    let answer = ProviderResponse::json(&chat_completion(&message, &json!("tool_calls")));
    FakeProvider::start(Script::always(answer))
}

fn good_provider() -> FakeProvider {
    let answer = ProviderResponse::json(&chat_completion(&good(), &json!("tool_calls")));
    FakeProvider::start(Script::always(answer))
}

fn snapshot_of(probe: &ProbeSandbox, name: &str, repeat: &str, provider: &FakeProvider) {
    let (file, url) = (format!("{name}.json"), provider.url());
    let words = [
        "snapshot",
        "--provider",
        name,
        "--base-url",
        &url,
        "--model",
        "m<1>",
        "--repeat",
        repeat,
        "--capture",
        "raw",
        "-q",
        "-o",
        &file,
    ];
    probe.run_to(0, &words);
}

#[test]
fn the_page_escapes_everything_quotes_the_bytes_and_loads_nothing() {
    let probe = ProbeSandbox::new();
    snapshot_of(&probe, "old", "3", &good_provider());
    snapshot_of(&probe, "new", "3", &hostile_provider());
    let inputs = ["old.json", "new.json", "--answers", "raw"];
    probe.run_to(
        0,
        &[&["report", "-o", "out/report.html"], &inputs[..]].concat(),
    );
    let page = probe.read("out/report.html");
    for markup in [
        "<script",
        "<img",
        "http://",
        "https://",
        "@import",
        "url(",
        "javascript:",
        "<link",
        "<iframe",
    ] {
        assert!(!page.contains(markup), "{markup}");
    }
    assert!(
        page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"),
        "{page}"
    );
    // The exact bytes of the argument that breaks the schema.
    assert!(
        page.contains(r#"\&quot;days\&quot;:\&quot;3\&quot;"#),
        "{page}"
    );
    assert!(page.contains("default-src &#39;none&#39;") || page.contains("default-src 'none'"));
    assert_eq!(
        page.matches("<pre>").count(),
        page.matches("</pre>").count()
    );

    let document = report(&probe, &inputs);
    assert_eq!(
        decisions(&document),
        [("old/m<1>", "baseline"), ("new/m<1>", "no-go")]
    );
    let findings = document["models"][1]["findings"].as_array().unwrap();
    let shown = findings
        .iter()
        .find(|it| it["pointer"] == "/days" && it["severity"] == "breaking")
        .unwrap();
    assert_eq!(shown["evidence"]["status"], 200);
    assert!(
        shown["evidence"]["text"]
            .as_str()
            .unwrap()
            .contains(r#"\"days\":\"3\""#),
        "{shown}"
    );

    let markdown = probe
        .run_to(
            0,
            &[&["report", "--format", "markdown"], &inputs[..]].concat(),
        )
        .out;
    assert!(markdown.contains("✗ **No-go**"), "{markdown}");
    let quoted = markdown
        .lines()
        .filter(|it| it.contains("<script"))
        .all(|it| it.contains("\\<script") || it.starts_with("  "));
    assert!(quoted, "{markdown}");
}

#[test]
fn prices_come_from_a_table_that_users_can_replace() {
    let probe = ProbeSandbox::new();
    snapshot_fixtures(&probe);
    probe.write(
        "prices.yaml",
        "as_of: 2026-01-02\nsource: our contract\ncurrency: EUR\nprices: [{model: \"glm*\", input: 1000000, output: 0}]\n",
    );
    let document = report(&probe, &["glm.json", "--prices", "prices.yaml"]);
    assert_eq!(
        document["prices"],
        json!({"as_of": "2026-01-02", "source": "our contract"})
    );
    let input = document["models"][0]["tokens"]["input"].as_f64().unwrap();
    let cost = &document["models"][0]["cost_of_1000_replies"];
    assert_eq!(cost["currency"], "EUR");
    assert!(
        (cost["amount"].as_f64().unwrap() - input * 1_000.0).abs() < 1e-3,
        "{cost}"
    );
    probe.write("bad.yaml", "as_of: x\n");
    probe.run_to(2, &["report", "glm.json", "--prices", "bad.yaml"]);
}

#[test]
fn mistakes_and_other_suites_are_refused() {
    let probe = ProbeSandbox::new();
    probe.run_to(2, &["report"]);
    probe.run_to(2, &["report", "missing.json"]);
    let compat = [
        "snapshot",
        "--provider",
        "qwen",
        "--from-fixtures",
        "--compat",
        "tooldrift",
        "-q",
        "-o",
        "v1.json",
    ];
    probe.run_to(0, &compat);
    let said = probe.run_to(2, &["report", "v1.json"]);
    assert_eq!(
        said.err,
        "error: v1.json is a snapshot of the tooldrift program, which has no rates to report\n"
    );
}

#[test]
fn three_good_trials_of_each_case_are_a_go_and_two_are_not() {
    for (repeat, decision) in [("2", "not known"), ("3", "go")] {
        let probe = ProbeSandbox::new();
        for name in ["old", "new"] {
            snapshot_of(&probe, name, repeat, &good_provider());
        }
        let document = report(&probe, &["old.json", "new.json"]);
        let model = &document["models"][1];
        assert_eq!(model["decision"], decision, "{repeat}: {model:#}");
        let tools = model["tools"].as_array().unwrap();
        let cells: Vec<&Value> = tools.iter().map(|it| &it["decision"]).collect();
        assert_eq!(cells, [decision, decision], "{repeat}: {model:#}");
    }
}

#[test]
fn findings_that_are_not_listed_are_counted() {
    let probe = ProbeSandbox::new();
    snapshot_fixtures(&probe);
    let mut taken = parsed(&probe.read("glm.json"));
    for at in 0..120 {
        taken["undeclared"][format!("tool{at}")] =
            json!({"calls": 1, "trials": {"k": 1, "n": 1, "rate": 1.0}});
    }
    probe.write("many.json", &taken.to_string());
    let document = report(&probe, &["many.json"]);
    let model = &document["models"][0];
    assert_eq!(model["findings"].as_array().unwrap().len(), 100);
    let more = model["more_findings"].as_u64().unwrap();
    assert!(more >= 20, "{more}");
    for format in ["html", "markdown"] {
        let page = probe.run_to(0, &["report", "--format", format, "many.json"]);
        assert!(page.out.contains(&format!("and {more} more")), "{format}");
    }
}
