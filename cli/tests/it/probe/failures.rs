//! What could not be measured is no contract: 3, and nothing is kept that could be compared later.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwarden_testkit::provider::{Answer, FakeProvider, good, tool_call, whole};

use super::{Probe, parsed, serving};

pub(super) fn well() -> Answer {
    Answer::json(&whole(&good(), &json!("tool_calls")))
}

#[test]
fn a_failure_is_never_a_snapshot() {
    let reply = well();
    let half = reply.body().get(..200).unwrap().to_vec();
    let login = Answer::new(302, "text/plain", "").header("location", "https://example.com/in");
    let html = "<html><body>Bad gateway</body></html>";
    let minimax =
        json!({"choices": null, "base_resp": {"status_code": 1004, "status_msg": "login fail"}});
    for (name, answer, told) in [
        (
            "500",
            Answer::refusal(500, "oh no"),
            "HTTP 500: oh no (status)",
        ),
        (
            "503",
            Answer::refusal(503, "later"),
            "HTTP 503: later (status)",
        ),
        (
            "429",
            Answer::refusal(429, "slow"),
            "HTTP 429: slow (status)",
        ),
        (
            "401",
            Answer::refusal(401, "who?"),
            "HTTP 401: who? (status)",
        ),
        (
            "302",
            login,
            "HTTP 302 leads to https://example.com/in, which is not followed",
        ),
        (
            "HTML",
            Answer::new(200, "text/html", html),
            "Bad gateway</body></html> (not_json)",
        ),
        (
            "nothing",
            Answer::new(200, "application/json", ""),
            "(empty)",
        ),
        (
            "half",
            Answer::new(200, "application/json", half),
            "(truncated)",
        ),
        (
            "an error",
            Answer::json(&json!({"error": {"message": "full"}})),
            "full (error_body)",
        ),
        ("MiniMax", Answer::json(&minimax), "login fail (error_body)"),
        (
            "no choices",
            Answer::json(&json!({"choices": []})),
            "(empty)",
        ),
        (
            "choices null",
            Answer::json(&json!({"choices": null})),
            "(empty)",
        ),
        ("a list", Answer::json(&json!([1])), "(wrong_envelope)"),
    ] {
        let probe = Probe::new();
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
fn nobody_there_and_nobody_answering() {
    let probe = Probe::new();
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
    // Nobody listens on the first port of all.
    let told = ask("http://127.0.0.1:1", &["--retries", "0"]);
    assert!(told.contains("(connection)"), "{told}");
    let hanging = serving(
        Answer::new(200, "application/json", "{")
            .split_at([1])
            .hanging(),
    );
    let begun = Instant::now();
    let told = ask(&hanging.url(), &["--timeout", "300ms"]);
    assert!(
        told.contains("no whole response within 0.3 s, 1 bytes came (timeout)"),
        "{told}"
    );
    let told = ask(&hanging.url(), &["--deadline", "0.3s", "--repeat", "8"]);
    assert!(told.contains("of 8 trials"), "{told}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

/// A provider that answers, one that does not, and one that answers otherwise.
pub(super) fn contract(probe: &Probe, servers: &[(&str, &FakeProvider)], more: Value) {
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
    let probe = Probe::new();
    let (fine, broken) = (serving(well()), serving(Answer::refusal(500, "oh no")));
    let words = json!([tool_call(
        "call_0a1b2c3d4e",
        "get_weather",
        r#"{"location":5}"#
    )]);
    let other = json!({"role": "assistant", "content": null, "tool_calls": words});
    let other = serving(Answer::json(&whole(&other, &json!("tool_calls"))));
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
