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
    let told = "INCONCLUSIVE — too few trials to tell the two apart from chance. Exit 3.";
    assert!(said.out.contains(told), "{}", said.out);
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
