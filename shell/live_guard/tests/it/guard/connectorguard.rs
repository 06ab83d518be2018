//! The behaviour that the connectorguard document specifies.

use std::num::NonZeroUsize;

use serde_json::{Value, json};
use toolwarden_guard::{Document, Guard, Policy, ReasonCode, parse_duration};
use toolwarden_live_guard::{OnDuplicate, RecentLog};
use toolwarden_testkit::read_vectors;

use super::{fixture, fixture_for};

/// The code and the pointer that each case must have; the vectors give the reason.
const TOLD: &[(&str, ReasonCode, &str)] = &[
    ("unknown_connector", ReasonCode::UnknownTool, ""),
    ("missing_all_perms", ReasonCode::MissingPermissions, ""),
    ("missing_one_perm", ReasonCode::MissingPermissions, ""),
    ("schema_fail_consumes_budget", ReasonCode::InvalidInput, ""),
    ("rate_limited", ReasonCode::RateLimited, ""),
    ("rate_limited_even_if_invalid", ReasonCode::RateLimited, ""),
    ("bad_schema_def", ReasonCode::BrokenSchema, ""),
    ("bad_ref", ReasonCode::BrokenSchema, ""),
    ("anyof", ReasonCode::InvalidInput, ""),
    ("float_as_int_bad", ReasonCode::InvalidInput, "/i"),
    ("msg_required", ReasonCode::InvalidInput, ""),
    ("msg_type", ReasonCode::InvalidInput, "/prompt"),
    ("msg_minimum", ReasonCode::InvalidInput, "/max_tokens"),
    ("msg_enum", ReasonCode::InvalidInput, "/mode"),
    ("msg_additional", ReasonCode::InvalidInput, ""),
    ("msg_additional2", ReasonCode::InvalidInput, ""),
    ("msg_maxItems", ReasonCode::InvalidInput, "/tags"),
    ("msg_items", ReasonCode::InvalidInput, "/tags/0"),
    ("msg_exclusiveMaximum", ReasonCode::InvalidInput, "/n"),
    ("msg_const", ReasonCode::InvalidInput, "/k"),
    ("msg_minLength", ReasonCode::InvalidInput, "/s"),
    ("msg_pattern", ReasonCode::InvalidInput, "/s"),
    ("msg_two_errors", ReasonCode::InvalidInput, ""),
    ("msg_bool_as_int", ReasonCode::InvalidInput, "/max_tokens"),
    ("msg_null", ReasonCode::InvalidInput, "/prompt"),
];

/// The reason without the validator's message.
fn prefix(reason: &str) -> &str {
    let prefixes = [
        "input validation failed: invalid connector schema definition: ",
        "input validation failed: schema validation error: ",
        "input validation failed: ",
    ];
    let found = prefixes.iter().find(|it| reason.starts_with(**it));
    found.copied().unwrap_or(reason)
}

#[test]
fn calls_are_decided_with_the_reasons_of_the_original() {
    let Some(vectors) = read_vectors("guard.json") else {
        return;
    };
    let mut tools = vectors["connectors"].clone();
    for tool in tools.as_object_mut().unwrap().values_mut() {
        if tool.get("input_schema") == Some(&json!("S")) {
            tool["input_schema"] = vectors["S"].clone();
        }
    }
    let mut principals = serde_json::Map::new();
    for (name, permissions) in vectors["initial_permissions"].as_object().unwrap() {
        principals.insert(name.clone(), json!({"permissions": permissions}));
    }
    let policy = json!({"tools": tools, "principals": principals}).to_string();
    let read = Policy::read(&Document::read(&policy).unwrap()).unwrap();
    let (guard, faults) = Guard::new(read.policy);
    let broken: Vec<&str> = faults.iter().map(|fault| fault.tool.as_str()).collect();
    assert_eq!(
        broken,
        ["badschema", "badref"],
        "told when the policy is loaded"
    );

    let bench = fixture_for(guard);
    let (_, cases) = vectors
        .as_object()
        .unwrap()
        .iter()
        .find(|(key, _)| key.starts_with("sequential_label_connector"))
        .unwrap();
    let cases = cases.as_array().unwrap();
    assert_eq!(cases.len(), 31);
    for case in cases {
        let text = |at: usize| case[at].as_str().unwrap();
        if text(0) == "other_agent_own_window" {
            bench.guard.grant_permission("a2", "db:read").unwrap();
        }
        let decision = bench.decide(text(1), text(2), case[3].clone());
        assert_eq!(decision.allowed, case[4], "{case}");
        assert_eq!(prefix(&decision.reason), prefix(text(5)), "{case}");
        let told = TOLD.iter().find(|(label, ..)| *label == text(0));
        assert_eq!(told.is_none(), decision.allowed, "{case}");
        if let Some((_, code, pointer)) = told {
            assert_eq!(decision.code, *code, "{case}");
            let first = decision.pointers.first().map_or("", |it| it.as_str());
            assert_eq!(first, *pointer, "{case}");
        }
    }
    let decisions = bench.log.all().iter().filter(|it| it.is_decision()).count();
    assert_eq!(decisions, cases.len(), "each is recorded once");
}

#[test]
fn permissions_are_given_and_taken_at_run_time() {
    let bench = fixture(
        "
tools: {t: {required_permissions: [db:read]}, u: {required_permissions: [db:write]}}
principals: {p: {permissions: ['db:*'], deny: {permissions: [db:write]}}}
",
    );
    let allowed = |tool| bench.decide(tool, "p", json!({})).allowed;
    assert!(allowed("t") && !allowed("u"));
    bench.guard.revoke_permission("p", "db:read").unwrap();
    bench.guard.revoke_permission("p", "db:read").unwrap();
    assert!(!allowed("t"), "also where a pattern covers it");
    bench.guard.grant_permission("p", "db:read").unwrap();
    assert!(allowed("t"));
    bench.guard.grant_permission("p", "db:write").unwrap();
    assert!(!allowed("u"), "a deny rule wins");
    bench.guard.grant_permission("stranger", "db:read").unwrap();
    assert!(bench.decide("t", "stranger", json!({})).allowed);
    assert!(!bench.decide("t", "other", json!({})).allowed);
}

#[test]
fn the_log_in_memory_forgets_the_oldest() {
    let Some(vectors) = read_vectors("guard.json") else {
        return;
    };
    let log = RecentLog::with_capacity(NonZeroUsize::new(3).unwrap());
    let bench = fixture("tools: {t: {}}");
    for name in ["c0", "c1", "c2", "c3", "c4"] {
        bench.decide(name, "p", json!({}));
    }
    for entry in bench.log.all() {
        log.append(entry);
    }
    let names: Vec<Value> = log.all().iter().map(|it| Value::from(it.tool())).collect();
    assert_eq!(Value::from(names), vectors["audit_max3_after_c0_to_c4"]);
    assert_eq!(log.len(), 3);
    log.clear();
    assert!(log.is_empty());
}

#[test]
fn the_log_in_memory_answers_the_questions_of_the_document() {
    let bench = fixture("tools: {t: {}, u: {required_permissions: [x]}}");
    bench.decide("t", "a", json!({}));
    bench.at(1.0);
    bench.decide("u", "a", json!({}));
    bench.decide("t", "b", json!({}));
    let log = &bench.log;
    let second = "2026-01-05T08:00:01Z".parse().unwrap();
    assert_eq!(log.since(second).len(), 2, "one of that very time counts");
    assert_eq!(log.for_tool("t").len(), 2);
    assert_eq!(log.for_principal("a").len(), 2);
    let denied = log.denied();
    assert_eq!(denied.len(), 1);
    assert_eq!(denied[0].tool(), "u");
}

#[test]
fn durations_are_read_as_the_original_does() {
    let Some(vectors) = read_vectors("guard.json") else {
        return;
    };
    for case in vectors["duration"].as_array().unwrap() {
        let time = parse_duration(case[0].as_str().unwrap()).unwrap();
        assert_eq!(time.as_secs_f64(), case[1].as_f64().unwrap(), "{case}");
    }
}

#[test]
fn tools_are_registered_replaced_and_taken_away() {
    let bench = fixture("tools: {b: {}, a: {}}\nprincipals: {p: {deny: {tools: [b]}}}");
    let code = |tool| bench.decide(tool, "p", json!({})).code;
    let mut tool = toolwarden_guard::ToolPolicy::new("c");
    assert_eq!(bench.guard.register(&tool, OnDuplicate::Keep), Ok(vec![]));
    assert_eq!(bench.guard.tool_names(), ["a", "b", "c"]);
    assert_eq!(code("c"), ReasonCode::Allowed);
    tool.input_schema = json!({"required": ["q"]});
    let taken = bench.guard.register(&tool, OnDuplicate::Keep).unwrap_err();
    assert_eq!(taken.to_string(), "connector 'c' is already registered");
    assert_eq!(code("c"), ReasonCode::Allowed, "the old one stays");
    bench.guard.register(&tool, OnDuplicate::Replace).unwrap();
    assert_eq!(code("c"), ReasonCode::InvalidInput, "the new one counts");
    tool.input_schema = json!({"type": "nonsense"});
    let faults = bench.guard.register(&tool, OnDuplicate::Replace);
    assert_eq!(faults.unwrap().len(), 1);
    assert_eq!(code("c"), ReasonCode::BrokenSchema);
    assert!(bench.guard.is_registered("c"));
    bench.guard.unregister("c");
    bench.guard.unregister("c");
    assert!(!bench.guard.is_registered("c"));
    assert_eq!(code("c"), ReasonCode::UnknownTool);
    bench.guard.unregister("a");
    let tool = toolwarden_guard::ToolPolicy::new("d");
    bench.guard.register(&tool, OnDuplicate::Keep).unwrap();
    assert_eq!(
        code("b"),
        ReasonCode::DeniedByRule,
        "deny rules still mean the same tool"
    );
    assert_eq!(code("d"), ReasonCode::Allowed);
    assert_eq!(bench.guard.tool_names(), ["b", "d"]);
}
