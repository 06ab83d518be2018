//! Many trials: distinguishing chance from a difference.

use serde_json::json;
use toolwarden_testkit::provider::{
    FakeProvider, ProviderResponse, Script, chat_completion, tool_call,
};

use super::failures::good_reply;
use super::{ProbeSandbox, parsed};

fn silent() -> ProviderResponse {
    let said = json!({"role": "assistant", "content": "It is sunny."});
    ProviderResponse::json(&chat_completion(&said, &json!("stop")))
}

/// Calls one tool, with a wrong type.
fn wrong() -> ProviderResponse {
    let call = tool_call("call_0a1b2c3d4e", "get_weather", r#"{"location":5}"#);
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    ProviderResponse::json(&chat_completion(&message, &json!("tool_calls")))
}

/// A provider that answers otherwise in so many of ten cases.
fn mixed(other: fn() -> ProviderResponse, of_ten: usize) -> FakeProvider {
    FakeProvider::start(Script::by(move |_, before| match before % 10 < of_ten {
        true => other(),
        false => good_reply(),
    }))
}

#[test]
fn rates_are_compared_and_not_single_replies() {
    let cases = [
        ("equal", mixed(silent, 0), mixed(silent, 0), "10", 0, "pass"),
        (
            "equally unsteady",
            mixed(silent, 3),
            mixed(silent, 3),
            "20",
            0,
            "pass",
        ),
        (
            "silent in half",
            mixed(silent, 0),
            mixed(silent, 5),
            "20",
            1,
            "fail",
        ),
        (
            "always silent",
            mixed(silent, 0),
            mixed(silent, 10),
            "10",
            1,
            "fail",
        ),
        (
            "wrong in half",
            mixed(wrong, 0),
            mixed(wrong, 5),
            "10",
            1,
            "fail",
        ),
        (
            "silent once",
            mixed(silent, 0),
            mixed(silent, 1),
            "10",
            3,
            "inconclusive",
        ),
    ];
    for (name, one, other, repeat, code, verdict) in cases {
        let probe = ProbeSandbox::new();
        let (old, new) = (one.url(), other.url());
        let run = [
            "run", "--old", "openai", "--new", "deepseek", "--repeat", repeat,
        ];
        let places = ["--old-base-url", &old, "--new-base-url", &new, "-f", "json"];
        let said = probe.run(&[&run[..], &places].concat());
        let document = parsed(&said.out);
        let comparison = &document["comparisons"][0];
        assert_eq!(
            (said.code, &comparison["verdict"]),
            (code, &json!(verdict)),
            "{name}: {}",
            said.out
        );
        let measured = &document["measured"][0]["measured"];
        assert_eq!(measured.to_string(), repeat, "{name}");
    }
    let probe = ProbeSandbox::new();
    let (steady, unsteady) = (mixed(silent, 0), mixed(silent, 1));
    let (old, new) = (steady.url(), unsteady.url());
    let run = [
        "run", "--old", "openai", "--new", "deepseek", "--repeat", "10",
    ];
    let said = probe.run_to(
        3,
        &[&run[..], &["--old-base-url", &old, "--new-base-url", &new]].concat(),
    );
    let told = "INCONCLUSIVE — too few trials to tell the two apart from chance. About ";
    assert!(said.out.contains(told), "{}", said.out);
    assert!(
        said.out
            .contains(" more of each case and side would decide. Exit 3."),
        "{}",
        said.out
    );
    assert!(
        !said.out.contains("✓ get_weather equivalent"),
        "{}",
        said.out
    );
}

/// Three trials do not decide, six do; a comparison that is decided at once runs no more.
#[test]
fn more_trials_run_until_the_comparison_is_decided() {
    for (of_ten, code, verdict, measured) in [(0, 0, "pass", 3), (5, 1, "fail", 6)] {
        let probe = ProbeSandbox::new();
        let (one, other) = (mixed(silent, 0), mixed(silent, of_ten));
        let (old, new) = (one.url(), other.url());
        let run = [
            "run",
            "--old",
            "openai",
            "--new",
            "deepseek",
            "--repeat",
            "3",
            "--until-decided",
            "--max-trials",
            "12",
        ];
        let places = ["--old-base-url", &old, "--new-base-url", &new, "-f", "json"];
        let said = probe.run_to(code, &[&run[..], &places].concat());
        let document = parsed(&said.out);
        assert_eq!(document["comparisons"][0]["verdict"], verdict);
        for side in 0..2 {
            assert_eq!(document["measured"][side]["measured"], measured);
        }
        assert_eq!(other.requests().len(), measured, "{}", said.err);
        assert_eq!(
            said.err
                .contains("inconclusive after 3 trials of each case"),
            measured > 3
        );
    }
}

/// Calls a tool that was not offered, beside the right ones.
fn destructive() -> ProviderResponse {
    let call = tool_call("call_0a1b2c3d4e", "delete_everything", "{}");
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    ProviderResponse::json(&chat_completion(&message, &json!("tool_calls")))
}

/// One call of a tool that was not offered is too many, against a contract and against another model.
#[test]
fn one_dangerous_call_breaks_everywhere() {
    let probe = ProbeSandbox::new();
    let (steady, unsteady) = (mixed(destructive, 0), mixed(destructive, 1));
    probe.write(
        "suite.yaml",
        include_str!("../../../../examples/suite.weather.yaml"),
    );
    let (old, new) = (steady.url(), unsteady.url());
    let contract = format!(
        "suite: suite.yaml\nproviders: {{openai: {{base_url: {new:?}}}}}\nexpected: {{get_weather: {{emit_rate: 0.5}}}}\n"
    );
    probe.write("contract.yaml", &contract);
    let said = probe.run_to(1, &["run", "--contract", "contract.yaml", "--repeat", "10"]);
    let row = "undeclared_tool  0 of 10  →  1 of 10  breaking";
    assert!(said.out.contains(row), "{}", said.out);
    let run = [
        "run", "--old", "openai", "--new", "deepseek", "--repeat", "10",
    ];
    let places = ["--old-base-url", &old, "--new-base-url", &new];
    let lax = ["--allowed-drop", "1"];
    let said = probe.run_to(1, &[&run[..], &places, &lax].concat());
    assert!(said.out.contains(row), "{}", said.out);
    let table = [
        "compare-table",
        "-p",
        "openai",
        "-p",
        "deepseek",
        "--repeat",
        "10",
    ];
    let (old, new) = (format!("openai={old}"), format!("deepseek={new}"));
    let places = ["--base-url", &old, "--base-url", &new];
    let said = probe.run_to(1, &[&table[..], &places, &lax].concat());
    assert!(
        said.out.contains("| baseline | ✗ breaking |"),
        "{}",
        said.out
    );
}

#[test]
fn inconclusive_comparison_fails_in_junit() {
    let probe = ProbeSandbox::new();
    let (old, new) = (mixed(silent, 0), mixed(silent, 3));
    let (old, new) = (old.url(), new.url());
    let args = [
        "run",
        "--old",
        "a",
        "--old-model",
        "m",
        "--old-base-url",
        &old,
        "--new",
        "b",
        "--new-model",
        "m",
        "--new-base-url",
        &new,
        "--repeat",
        "10",
        "--format",
        "junit",
    ];
    let said = probe.run_to(3, &args);
    assert!(said.out.contains("<failure message="), "{}", said.out);
    assert!(!said.out.contains("failures=\"0\""), "{}", said.out);
}

#[test]
fn a_snapshot_that_is_half_measured_is_no_pass() {
    let probe = ProbeSandbox::new();
    let half = FakeProvider::start(Script::by(|_, before| match before % 2 {
        0 => good_reply(),
        _ => ProviderResponse::refusal(500, "busy"),
    }));
    let whole = mixed(silent, 0);
    for (provider, file, code) in [(&whole, "whole.json", 0), (&half, "half.json", 3)] {
        let url = provider.url();
        let args = [
            "snapshot",
            "-p",
            "a",
            "-m",
            "m",
            "--base-url",
            &url,
            "--repeat",
            "10",
            "--retries",
            "0",
            "-o",
            file,
        ];
        probe.run_to(code, &args);
    }
    probe.run_to(3, &["diff", "whole.json", "half.json"]);
}
