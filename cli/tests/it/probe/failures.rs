//! A failed measurement is not a contract: the exit code is 3, and nothing is kept for later comparison.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwarden_testkit::provider::{
    FakeProvider, ProviderResponse, chat_completion, good, tool_call,
};

use super::{ProbeSandbox, parsed, serving};

pub(super) fn good_reply() -> ProviderResponse {
    ProviderResponse::json(&chat_completion(&good(), &json!("tool_calls")))
}

#[test]
fn a_failure_is_never_a_snapshot() {
    let reply = good_reply();
    let half = reply.body().get(..200).unwrap().to_vec();
    let login =
        ProviderResponse::new(302, "text/plain", "").header("location", "https://example.com/in");
    let html = "<html><body>Bad gateway</body></html>";
    let minimax =
        json!({"choices": null, "base_resp": {"status_code": 1004, "status_msg": "login fail"}});
    for (name, answer, told) in [
        (
            "500",
            ProviderResponse::refusal(500, "oh no"),
            "HTTP 500: oh no (status)",
        ),
        (
            "503",
            ProviderResponse::refusal(503, "later"),
            "HTTP 503: later (status)",
        ),
        (
            "429",
            ProviderResponse::refusal(429, "slow"),
            "HTTP 429: slow (status)",
        ),
        (
            "401",
            ProviderResponse::refusal(401, "who?"),
            "HTTP 401: who? (status)",
        ),
        (
            "302",
            login,
            "HTTP 302 redirects to https://example.com/in, which is not followed",
        ),
        (
            "HTML",
            ProviderResponse::new(200, "text/html", html),
            "Bad gateway</body></html> (not_json)",
        ),
        (
            "nothing",
            ProviderResponse::new(200, "application/json", ""),
            "(empty)",
        ),
        (
            "half",
            ProviderResponse::new(200, "application/json", half),
            "(truncated)",
        ),
        (
            "an error",
            ProviderResponse::json(&json!({"error": {"message": "full"}})),
            "full (error_body)",
        ),
        (
            "MiniMax",
            ProviderResponse::json(&minimax),
            "login fail (error_body)",
        ),
        (
            "no choices",
            ProviderResponse::json(&json!({"choices": []})),
            "(empty)",
        ),
        (
            "choices null",
            ProviderResponse::json(&json!({"choices": null})),
            "(empty)",
        ),
        (
            "a list",
            ProviderResponse::json(&json!([1])),
            "(wrong_envelope)",
        ),
    ] {
        let probe = ProbeSandbox::new();
        let server = serving(answer);
        let url = server.url();
        let ask = [
            "snapshot",
            "-p",
            "deepseek",
            "--base-url",
            &url,
            "--retries",
            "0",
        ];
        for more in [&[][..], &["--compat", "tooldrift"]] {
            let said = probe.run_to(3, &[&ask[..], &["-o", "x/y.json"], more].concat());
            assert!(
                said.err
                    .starts_with("not measured: deepseek: 1 of 1 trials: "),
                "{said:?}"
            );
            assert!(said.err.contains(told), "{name}: {}", said.err);
            assert_eq!(said.out, "", "{name}");
            assert!(!probe.path("x/y.json").exists(), "{name}");
        }
        // Two that fail alike are not equal.
        let run = [
            "run",
            "--old",
            "deepseek",
            "--new",
            "qwen",
            "--base-url",
            &url,
        ];
        let said = probe.run_to(3, &[&run[..], &["--retries", "0"]].concat());
        assert!(
            said.out
                .contains("NOT MEASURED — nothing can be compared. Exit 3."),
            "{name}"
        );
        assert!(
            said.err.contains("deepseek") && said.err.contains("qwen"),
            "{}",
            said.err
        );
        let compat = ["--retries", "0", "--compat", "tooldrift", "-f", "json"];
        let said = probe.run_to(3, &[&run[..], &compat].concat());
        assert_eq!(
            parsed(&said.out),
            json!({"diffs": [], "equivalent": false}),
            "{name}"
        );
    }
}

#[test]
fn unreachable_and_silent_providers() {
    let probe = ProbeSandbox::new();
    let ask = |url: &str, more: &[&str]| {
        let args = [
            "snapshot",
            "-p",
            "deepseek",
            "--base-url",
            url,
            "-o",
            "x.json",
        ];
        let said = probe.run_to(3, &[&args[..], more].concat());
        assert!(!probe.path("x.json").exists());
        said.err
    };
    // No process listens on port 1.
    let told = ask("http://127.0.0.1:1", &["--retries", "0"]);
    assert!(told.contains("(connection)"), "{told}");
    let hanging = serving(
        ProviderResponse::new(200, "application/json", "{")
            .split_at([1])
            .hanging(),
    );
    let begun = Instant::now();
    let told = ask(&hanging.url(), &["--timeout", "300ms"]);
    assert!(
        told.contains("no complete response within 0.3 s, 1 bytes received (timeout)"),
        "{told}"
    );
    let told = ask(&hanging.url(), &["--deadline", "0.3s", "--repeat", "8"]);
    assert!(told.contains("of 8 trials"), "{told}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

/// A provider that answers, one that does not, and one that answers otherwise.
pub(super) fn contract(probe: &ProbeSandbox, servers: &[(&str, &FakeProvider)], more: Value) {
    let providers = servers.iter().map(|(name, server)| {
        let described = json!({"base_url": server.url(), "model_id": "m", "api_key_env": []});
        ((*name).to_owned(), described)
    });
    let providers: Value = Value::Object(providers.collect());
    let mut contract = json!({"suite": "suite.yaml", "providers": providers});
    if more != Value::Null {
        contract["expected"] = more;
    }
    probe.write(
        "suite.yaml",
        include_str!("../../../../examples/suite.weather.yaml"),
    );
    probe.write("contract.yaml", &contract.to_string());
}

#[test]
fn one_failure_does_not_hide_the_rest() {
    let probe = ProbeSandbox::new();
    let (fine, broken) = (
        serving(good_reply()),
        serving(ProviderResponse::refusal(500, "oh no")),
    );
    let words = json!([tool_call(
        "call_0a1b2c3d4e",
        "get_weather",
        r#"{"location":5}"#
    )]);
    let other = json!({"role": "assistant", "content": null, "tool_calls": words});
    let other = serving(ProviderResponse::json(&chat_completion(
        &other,
        &json!("tool_calls"),
    )));
    let run = [
        "run",
        "--contract",
        "contract.yaml",
        "--retries",
        "0",
        "-f",
        "json",
    ];
    let measured = |said: &str| -> Value {
        let rows = parsed(said)["measured"].as_array().unwrap().clone();
        rows.iter()
            .map(|it| json!([it["provider"], it["measured"], it["failures"]]))
            .collect()
    };
    let compared = |said: &str| -> Value {
        let rows = parsed(said)["comparisons"].as_array().unwrap().clone();
        rows.iter()
            .map(|it| json!([it["old"], it["new"], it["verdict"]]))
            .collect()
    };

    contract(
        &probe,
        &[("a", &fine), ("b", &broken)],
        json!({"get_weather": {"emitted": true}}),
    );
    let said = probe.run_to(3, &run);
    assert_eq!(
        measured(&said.out),
        json!([["a", 1, {}], ["b", 0, {"status": 1}]])
    );
    assert_eq!(
        compared(&said.out),
        json!([["expected/pinned", "a/m", "pass"]])
    );
    assert!(
        said.err
            .contains("not measured: b: 1 of 1 trials: HTTP 500: oh no (status)")
    );

    contract(
        &probe,
        &[("a", &fine), ("b", &broken), ("c", &fine)],
        Value::Null,
    );
    let said = probe.run_to(3, &run);
    assert_eq!(compared(&said.out), json!([["a/m", "c/m", "pass"]]));
    // What was found is not taken back because something else could not be looked at.
    contract(
        &probe,
        &[("a", &fine), ("b", &broken), ("c", &other)],
        Value::Null,
    );
    let said = probe.run_to(1, &run);
    assert_eq!(compared(&said.out), json!([["a/m", "c/m", "fail"]]));
    for format in ["text", "markdown", "junit", "sarif", "github"] {
        contract(
            &probe,
            &[("a", &fine), ("b", &broken), ("c", &fine)],
            Value::Null,
        );
        let said = probe.run_to(
            3,
            &[
                "run",
                "--contract",
                "contract.yaml",
                "--retries",
                "0",
                "-f",
                format,
            ],
        );
        let told = "only 0 of 1 trials could be measured";
        assert!(said.out.contains(told), "{format}: {}", said.out);
    }
    let url = fine.url();
    let gone = broken.url();
    let args = [
        "run",
        "--old",
        "deepseek",
        "--new",
        "qwen",
        "--retries",
        "0",
    ];
    let sides = ["--old-base-url", &url, "--new-base-url", &gone];
    let said = probe.run_to(3, &[&args[..], &sides].concat());
    assert!(said.out.contains("NOT MEASURED"), "{}", said.out);
}
