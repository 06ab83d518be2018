use serde_json::json;
use tempfile::tempdir;
use toolwarden_guard::ReasonCode;
use toolwarden_live_guard::{LoadedPolicy, PolicyFileError};

use super::{fixture, fixture_for};

#[test]
fn an_invalid_policy_changes_nothing_and_is_reported() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("toolwarden.yaml");
    std::fs::write(
        &path,
        "tools: {t: {rate_limit: 1, required_permissions: [a]}}",
    )
    .unwrap();
    let bench = fixture_for(LoadedPolicy::read(&path).unwrap().guard);
    bench.guard.grant_permission("p", "a").unwrap();
    assert!(bench.decide("t", "p", json!({})).allowed);

    std::fs::write(&path, "tools: {t: {rate_limitt: 1}}").unwrap();
    let error = bench.guard.reload(&path).unwrap_err();
    assert!(matches!(error, PolicyFileError::Invalid { .. }));
    assert!(
        error.to_string().contains("did you mean `rate_limit`?"),
        "{error}"
    );
    assert_eq!(
        bench.decide("t", "p", json!({})).code,
        ReasonCode::RateLimited
    );

    std::fs::write(
        &path,
        "tools: {t: {rate_limit: 2, required_permissions: [a]}, u: {}}",
    )
    .unwrap();
    bench.guard.reload(&path).unwrap();
    assert!(
        bench.decide("t", "p", json!({})).allowed,
        "what was granted stays"
    );
    assert_eq!(
        bench.decide("t", "p", json!({})).code,
        ReasonCode::RateLimited,
        "what was counted stays"
    );
    assert!(bench.decide("u", "p", json!({})).allowed);
    assert_eq!(
        bench.kinds(),
        [
            "policy granted",
            "decision allowed",
            "policy refused",
            "decision rate_limited",
            "policy exchanged",
            "decision allowed",
            "decision rate_limited",
            "decision allowed",
        ]
    );
}

#[test]
fn schemas_come_from_definitions_in_any_format() {
    let folder = tempdir().unwrap();
    let schema =
        json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]});
    let definitions = json!([
        {"type": "function", "function": {"name": "search", "parameters": schema}},
        {"name": "find", "input_schema": schema},
    ]);
    std::fs::write(folder.path().join("tools.json"), definitions.to_string()).unwrap();
    let path = folder.path().join("toolwarden.yaml");
    let policy = "tools: {search: {definition: tools.json}, other: {definition: {file: tools.json, tool: find}}}";
    std::fs::write(&path, policy).unwrap();
    let bench = fixture_for(LoadedPolicy::read(&path).unwrap().guard);
    for tool in ["search", "other"] {
        assert_eq!(
            bench.decide(tool, "p", json!({})).code,
            ReasonCode::InvalidInput
        );
        assert!(bench.decide(tool, "p", json!({"q": "x"})).allowed);
    }

    std::fs::write(
        &path,
        "tools:\n  a: {definition: tools.json#serch}\n  b: {definition: none.json}",
    )
    .unwrap();
    let error = LoadedPolicy::read(&path).unwrap_err().to_string();
    assert!(
        error.contains(
            ":2:7: /tools/a/definition: tools.json has no tool `serch`, did you mean `search`?"
        ),
        "{error}"
    );
    assert!(
        error.contains(":3:7: /tools/b/definition: cannot read"),
        "{error}"
    );
}

#[test]
fn a_bad_schema_is_found_when_the_policy_is_loaded() {
    let text = "tools:\n  t:\n    input_schema: {type: nonsense}\n  u:\n    output_schema: {$ref: '#/$defs/none'}\n  v:\n    input_schema: {pattern: '(?=x)'}\n";
    let place = std::path::Path::new("p.yaml");
    let error = LoadedPolicy::of_text(text.as_bytes(), place, place)
        .unwrap_err()
        .to_string();
    for start in [
        "p.yaml:3:20: /tools/t/input_schema/type: invalid schema: ",
        "p.yaml:5:5: /tools/u/output_schema: invalid schema: ",
        "p.yaml:7:20: /tools/v/input_schema/pattern: invalid schema: \"(?=x)\" cannot be matched in linear time",
    ] {
        assert!(error.lines().any(|line| line.starts_with(start)), "{error}");
    }
}

#[test]
fn secrets_stay_out_of_the_log() {
    let bench = fixture(
        "
tools: {t: {input_schema: {properties: {card: {type: integer}, token: {maxLength: 3}}}}}
audit: {redact: {pointers: [/card], keys: [pin]}}
",
    );
    bench.decide(
        "t",
        "p",
        json!({"card": "4111", "token": "hunter2", "pin": 9, "note": "n"}),
    );
    let body = bench.log.all()[0].content().body;
    for secret in ["4111", "hunter2", "9"] {
        assert!(
            !body.contains(&format!("{secret}\"")) && !body.contains(&format!(":{secret}")),
            "{body}"
        );
    }
    assert!(
        body.contains("\"note\":\"n\"") && body.contains("\"/card\""),
        "{body}"
    );
}
