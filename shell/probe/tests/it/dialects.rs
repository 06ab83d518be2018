//! Which keywords a provider accepts.

use serde_json::{Value, json};
use toolwarden_model::reply::WireApi;
use toolwarden_probe::{DialectReport, KeywordFamilyOutcome, families, probe_dialect};
use toolwarden_testkit::provider::{
    FakeProvider, ProviderResponse, RecordedRequest, Script, chat_completion, tool_call,
};

use crate::support::{settings, target, target_on};

/// A provider that refuses some schemas, and otherwise makes the call that the user names.
fn obedient(seen: &RecordedRequest, _before: usize) -> ProviderResponse {
    let tool = &seen.body["tools"][0]["function"];
    if seen.body["tool_choice"] == "required" {
        return ProviderResponse::refusal(400, "tool_choice `required` is not supported");
    }
    if tool["parameters"].to_string().contains("oneOf") {
        return ProviderResponse::refusal(400, "Invalid schema: oneOf is not permitted");
    }
    if tool["name"].as_str().unwrap().contains('.') {
        return ProviderResponse::refusal(422, "tools[0].function.name is invalid");
    }
    if tool["parameters"].to_string().contains("multipleOf") {
        return ProviderResponse::refusal(401, "who are you?");
    }
    let asked = seen.body["messages"][0]["content"].as_str().unwrap();
    let wanted = asked.split_once(": ").unwrap().1;
    let call = tool_call("call_0a1b2c3d4e", tool["name"].as_str().unwrap(), wanted);
    ProviderResponse::json(&chat_completion(
        &json!({"tool_calls": [call]}),
        &json!("tool_calls"),
    ))
}

#[tokio::test]
async fn dialect_is_inferred_from_provider_behaviour() {
    let provider = FakeProvider::start(Script::by(obedient));
    let report = probe_dialect(target(&provider), &settings(), |_| {}).await;
    assert_eq!(report.tool_choice, "auto");
    assert_eq!(report.plain.outcome, KeywordFamilyOutcome::Accepted);
    assert_eq!(report.families.len(), families().len());
    let of = |id: &str| report.families.iter().find(|it| it.id == id).unwrap();
    let found = |id: &str| (of(id).outcome, of(id).status, of(id).message.clone());
    for (id, outcome, status, message) in [
        ("$ref", KeywordFamilyOutcome::Accepted, 200, None),
        (
            "oneOf",
            KeywordFamilyOutcome::Rejected,
            400,
            Some("HTTP 400: Invalid schema: oneOf is not permitted"),
        ),
        (
            "tool-dot",
            KeywordFamilyOutcome::Rejected,
            422,
            Some("HTTP 422: tools[0].function.name is invalid"),
        ),
        (
            "multipleOf",
            KeywordFamilyOutcome::NotMeasured,
            401,
            Some("HTTP 401: who are you?"),
        ),
        (
            "enum",
            KeywordFamilyOutcome::Ignored,
            200,
            Some("/value: \"c\" is not one of \"a\" or \"b\""),
        ),
        (
            "format",
            KeywordFamilyOutcome::Ignored,
            200,
            Some("/value: \"yesterday\" is not a \"date-time\""),
        ),
        ("tool-hyphen", KeywordFamilyOutcome::Accepted, 200, None),
        (
            "nullable",
            KeywordFamilyOutcome::Ignored,
            200,
            Some("/value: 7 is not of type \"string\""),
        ),
    ] {
        let expected = (outcome, Some(status), message.map(str::to_owned));
        assert_eq!(found(id), expected, "{id}");
    }
    let accepted = report
        .families
        .iter()
        .filter(|it| it.outcome == KeywordFamilyOutcome::Accepted);
    let accepted: Vec<&str> = accepted.map(|it| it.id.as_str()).collect();
    // The other families ask for what their schema forbids.
    let harmless = [
        "$ref",
        "definitions",
        "recursion",
        "untyped",
        "boolean-schema",
        "format-of-openapi",
        "no-properties",
        "no-schema",
        "$schema",
        "default",
        "title",
        "examples",
        "$comment",
        "deprecated",
        "unknown-keyword",
        "parameter-dot",
        "parameter-space",
        "parameter-dollar",
        "parameter-unicode",
        "parameter-long",
        "tool-hyphen",
        "tool-digit",
        "tool-unicode",
        "tool-long",
    ];
    assert_eq!(accepted, harmless);
    let text = report.to_json().unwrap();
    assert_eq!(DialectReport::from_json(&text).unwrap(), report);
    let other = text.replace("dialect/v1", "dialect/v2");
    let error = DialectReport::from_json(&other).unwrap_err().to_string();
    assert_eq!(
        error,
        "the document is `toolwarden/probe/dialect/v2`, expected `toolwarden/probe/dialect/v1`"
    );
}

#[tokio::test]
async fn families_are_not_measured_when_a_plain_schema_fails() {
    let provider = FakeProvider::start(Script::always(ProviderResponse::refusal(401, "no")));
    let report = probe_dialect(target(&provider), &settings(), |_| {}).await;
    assert_eq!(provider.requests().len(), 1);
    let known = report
        .families
        .iter()
        .filter(|it| it.outcome != KeywordFamilyOutcome::NotMeasured);
    assert_eq!(known.count(), 0);
    assert_eq!(report.families[0].message.as_deref(), Some("HTTP 401: no"));
}

/// If the model does not honour even a plain schema, its calls say nothing about others.
#[tokio::test]
async fn calls_are_no_evidence_of_a_model_that_does_not_call_well() {
    let refused = |seen: &RecordedRequest| {
        let tools = seen.body["tools"].to_string();
        tools
            .contains("oneOf")
            .then(|| ProviderResponse::refusal(400, "no oneOf"))
    };
    let reply = |message: Value| ProviderResponse::json(&chat_completion(&message, &json!("stop")));
    let silent = reply(json!({"content": "no"}));
    let wrong = reply(json!({"tool_calls": [tool_call("call_0a1b2c3d4e", "probe", "{}")]}));
    let other = reply(json!({"tool_calls": [tool_call("call_0a1b2c3d4e", "else", "{}")]}));
    let not_called = "the model did not call the tool of a plain schema either";
    for (name, answer, reason) in [
        ("silent", silent, not_called),
        ("other", other, not_called),
        (
            "wrong",
            wrong,
            "a call went against a plain schema too: /: \"value\" is a required property",
        ),
    ] {
        let script = Script::by(move |seen, _| refused(seen).unwrap_or_else(|| answer.clone()));
        let provider = FakeProvider::start(script);
        let report = probe_dialect(target(&provider), &settings(), |_| {}).await;
        for family in &report.families {
            let found = (family.outcome, family.message.as_deref());
            let expected = match family.schema.to_string().contains("oneOf") {
                true => (KeywordFamilyOutcome::Rejected, Some("HTTP 400: no oneOf")),
                false => (KeywordFamilyOutcome::NotMeasured, Some(reason)),
            };
            assert_eq!(found, expected, "{name}: {}", family.id);
        }
    }
}

/// Whether a value occurs somewhere in another.
fn holds(whole: &Value, part: &Value) -> bool {
    whole == part
        || match whole {
            Value::Array(items) => items.iter().any(|it| holds(it, part)),
            Value::Object(members) => members.values().any(|it| holds(it, part)),
            _ => false,
        }
}

/// Every wire sends the schema of the family unchanged.
#[tokio::test]
async fn schemas_and_names_go_out_as_they_are() {
    for wire in WireApi::ALL {
        let provider = FakeProvider::start(Script::always(ProviderResponse::json(
            &json!({"odd": true}),
        )));
        // A reply without content still completes the request.
        let report = probe_dialect(target_on(wire, &provider), &settings(), |_| {}).await;
        assert_eq!(report.plain.outcome, KeywordFamilyOutcome::NotMeasured);
        let talking = toolwarden_testkit::provider::wire_replies();
        let talking = talking
            .into_iter()
            .find(|it| it.wire == wire.as_str())
            .unwrap();
        let provider = FakeProvider::start(Script::always(talking.nonstream));
        probe_dialect(target_on(wire, &provider), &settings(), |_| {}).await;
        let seen = provider.requests();
        for family in families() {
            let sent = seen
                .iter()
                .any(|it| holds(&it.body, &family.schema) && holds(&it.body, &json!(family.name)));
            assert!(sent, "{wire}: {}", family.id);
        }
    }
}
