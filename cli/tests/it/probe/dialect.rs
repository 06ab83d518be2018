//! What a provider takes, asked of it and kept for the linter.

use serde_json::json;
use toolwarden_testkit::provider::{
    FakeProvider, ProviderResponse, RecordedRequest, Script, chat_completion, tool_call,
};

use super::{ProbeSandbox, command_output, parsed};

/// A provider that takes no `oneOf`, and otherwise calls with whatever the user names.
fn obedient(seen: &RecordedRequest, _before: usize) -> ProviderResponse {
    let tool = &seen.body["tools"][0]["function"];
    if tool["parameters"].to_string().contains("oneOf") {
        return ProviderResponse::refusal(400, "Invalid schema: oneOf is not permitted");
    }
    let asked = seen.body["messages"][0]["content"].as_str().unwrap();
    let wanted = asked.split_once(": ").unwrap().1;
    let call = tool_call("call_0a1b2c3d4e", tool["name"].as_str().unwrap(), wanted);
    ProviderResponse::json(&chat_completion(
        &json!({"tool_calls": [call]}),
        &json!("tool_calls"),
    ))
}

#[test]
fn a_dialect_is_found_out_and_kept() {
    let probe = ProbeSandbox::new();
    let server = FakeProvider::start(Script::by(obedient));
    let url = server.url();
    let args = [
        "dialect",
        "-p",
        "kimi",
        "--base-url",
        &url,
        "-o",
        "new/kimi.json",
    ];
    let said = probe.run_to(0, &args);
    assert!(
        said.out
            .starts_with("kimi/moonshot-v1-8k over openai-chat\n"),
        "{}",
        said.out
    );
    let line = said.out.lines().find(|it| it.contains("oneOf")).unwrap();
    assert!(
        line.contains("rejected") && line.contains("(400): "),
        "{line}"
    );
    let kept = parsed(&probe.read("new/kimi.json"));
    assert_eq!(kept["schema"], "toolwarden/probe/dialect/v1");
    let json = probe.run_to(0, &[&args[..5], &["--format", "json"]].concat());
    assert_eq!(parsed(&json.out)["families"], kept["families"]);
}

#[test]
fn provider_that_refuses_everything_is_not_measured() {
    let probe = ProbeSandbox::new();
    let server = super::serving(ProviderResponse::refusal(401, "who are you?"));
    let url = server.url();
    let said = probe.run_to(3, &["dialect", "-p", "kimi", "--base-url", &url]);
    assert!(
        !said.out.contains("accepted") && said.out.contains("not measured"),
        "{}",
        said.out
    );
}

/// A schema that was taken, and of which no call shows what it is worth.
#[test]
fn uncalled_tool_is_reported() {
    let probe = ProbeSandbox::new();
    let server = FakeProvider::start(Script::by(|seen, before| match before {
        0 => obedient(seen, before),
        _ => ProviderResponse::json(&chat_completion(&json!({"content": "no"}), &json!("stop"))),
    }));
    let url = server.url();
    let said = probe.run_to(0, &["dialect", "-p", "kimi", "--base-url", &url]);
    let lines: Vec<&str> = said.out.lines().skip(1).collect();
    let untried = |it: &&&str| it.contains("accepted") && it.ends_with(" (not called)");
    assert_eq!(
        lines.iter().filter(untried).count(),
        lines.len(),
        "{lines:?}"
    );
    let called = FakeProvider::start(Script::by(obedient));
    let url = called.url();
    let said = probe.run_to(0, &["dialect", "-p", "kimi", "--base-url", &url]);
    assert!(!said.out.contains("not called"), "{}", said.out);
}

/// The loop is closed: what was found out is what definitions are checked for.
#[test]
fn the_linter_reads_what_was_found_out() {
    let probe = ProbeSandbox::new();
    let server = FakeProvider::start(Script::by(obedient));
    let url = server.url();
    probe.run_to(
        0,
        &[
            "dialect",
            "-p",
            "kimi",
            "--base-url",
            &url,
            "-o",
            "kimi.json",
        ],
    );
    let one_of = json!({"oneOf": [{"type": "string"}, {"type": "integer"}]});
    let tool = |schema: serde_json::Value| {
        json!({"name": "t", "description": "d", "inputSchema": {"type": "object", "properties": {"a": schema}}}).to_string()
    };
    probe.write("bad.json", &tool(one_of));
    probe.write("good.json", &tool(json!({"type": "string"})));
    for (file, code) in [("bad.json", 1), ("good.json", 0)] {
        let mut command = probe.sandbox.command();
        command.args(["canon", "lint", "--for", "kimi.json", file]);
        let said = command_output(command.output().unwrap());
        assert_eq!(said.code, code, "{said:?}");
        assert_eq!(said.out.contains("oneOf"), code == 1, "{said:?}");
    }
}
