use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_guard::{ReasonCode, ToolPolicy};

use crate::{AuditLog, Call, Clock, LiveGuard, LoadedPolicy, OnDuplicate, RecentLog};

fn load_policy(policy: &str) -> LoadedPolicy {
    LoadedPolicy::of_text(policy.as_bytes(), Path::new("p"), Path::new("")).unwrap()
}

fn setup(policy: LoadedPolicy) -> (LiveGuard, Arc<RecentLog>) {
    let log = Arc::new(RecentLog::default());
    let guard = LiveGuard::new(
        policy.guard,
        AuditLog::Recent(Arc::clone(&log)),
        Clock::default(),
    );
    (guard.unwrap(), log)
}

fn tool(name: &str, schema: Value) -> Arc<ToolPolicy> {
    Arc::new(ToolPolicy::discovered(name, None, Some(schema), None, None))
}

fn requires(key: &str) -> Value {
    json!({"required": [key]})
}

fn none() -> BTreeMap<String, String> {
    BTreeMap::new()
}

fn decide(guard: &LiveGuard, tool: &str, arguments: Value) -> String {
    let call = Call {
        tool,
        principal: "p",
        arguments: Arc::new(arguments),
        ..Call::default()
    };
    let decision = guard.intercept(&call);
    if decision.allowed {
        return "allowed".to_owned();
    }
    format!("{}: {}", decision.code, decision.reason)
}

fn policy_records(log: &RecentLog) -> Vec<(String, Value)> {
    let contents = log.all().into_iter().map(|entry| entry.content());
    let policies = contents.filter(|it| it.kind == "policy");
    policies
        .map(|it| {
            let mut body: Value = serde_json::from_str(&it.body).unwrap();
            body.as_object_mut().unwrap().remove("id");
            (it.code.into_owned(), body)
        })
        .collect()
}

#[test]
fn policy_rules_override_discovered_definitions() {
    let (guard, _) = setup(load_policy(
        "tools:\n  bare: {group: [default]}\n  strict: {input_schema: {required: [a]}}\n  shut: {group: [other]}",
    ));
    let faults = guard.discover(
        [
            tool("bare", requires("b")),
            tool("strict", requires("b")),
            tool("shut", json!({})),
            tool("new", requires("n")),
            tool("new", json!({})),
            tool("broken", json!({"type": "nonsense"})),
        ],
        none(),
    );
    let told: Vec<(&str, String)> = faults
        .iter()
        .map(|it| (it.tool.as_str(), it.pointer.to_string()))
        .collect();
    assert_eq!(
        told,
        [("broken", "/tools/broken/input_schema/type".to_owned())]
    );
    for (tool, arguments, told) in [
        (
            "bare",
            json!({}),
            "invalid_input: input validation failed: \"b\" is a required property",
        ),
        ("bare", json!({"b": 1}), "allowed"),
        ("strict", json!({"a": 1}), "allowed"),
        (
            "strict",
            json!({"b": 1}),
            "invalid_input: input validation failed: \"a\" is a required property",
        ),
        (
            "shut",
            json!({}),
            "filtered_by_group: tool 'shut' is not in the requested groups (requested: default; tool: other)",
        ),
        ("new", json!({"n": 1}), "allowed"),
        (
            "new",
            json!({}),
            "invalid_input: input validation failed: \"n\" is a required property",
        ),
    ] {
        assert_eq!(decide(&guard, tool, arguments), told, "{tool}");
    }
    assert!(decide(&guard, "broken", json!({})).starts_with("broken_schema: "));
    let names = guard.tool_names();
    assert_eq!(names, ["bare", "broken", "new", "shut", "strict"]);
}

#[test]
fn a_policy_can_hide_what_it_does_not_name() {
    let (guard, _) = setup(load_policy("tools: {named: ~}\nunlisted: hide"));
    guard.discover([tool("named", json!({})), tool("new", json!({}))], none());
    assert_eq!(decide(&guard, "named", json!({})), "allowed");
    assert_eq!(
        decide(&guard, "new", json!({})),
        "unknown_tool: connector 'new' is not registered"
    );
    guard.exchange(load_policy("tools: {named: ~}\nunlisted: serve"));
    assert_eq!(decide(&guard, "new", json!({})), "allowed");
}

#[test]
fn quarantine_of_either_side_counts_and_says_why() {
    let (guard, _) = setup(load_policy("tools: {a: ~, b: ~}\nquarantine: [a]"));
    let quarantine = [
        ("b".to_owned(), "its description changed".to_owned()),
        ("c".to_owned(), String::new()),
        ("nowhere".to_owned(), "gone".to_owned()),
    ];
    guard.discover([tool("c", json!({}))], quarantine.into());
    for (name, told) in [
        ("a", "quarantined: tool 'a' is quarantined"),
        (
            "b",
            "quarantined: tool 'b' is quarantined: its description changed",
        ),
        ("c", "quarantined: tool 'c' is quarantined"),
    ] {
        assert_eq!(decide(&guard, name, json!({})), told);
    }
    guard.discover([tool("c", json!({}))], none());
    assert_eq!(decide(&guard, "b", json!({})), "allowed");
    assert_eq!(
        decide(&guard, "a", json!({})),
        "quarantined: tool 'a' is quarantined"
    );
}

#[test]
fn discovered_tools_survive_policy_changes() {
    let (guard, _) = setup(load_policy("tools: {old: {required_permissions: [x:y]}}"));
    let needy = ToolPolicy::read_defaults(&json!({"required_permissions": ["x:y"]})).unwrap();
    let needy = ToolPolicy::discovered("needy", None, None, None, None).with_defaults(&needy);
    let tools = || [tool("new", requires("n")), Arc::new(needy.clone())];
    guard.discover(tools(), none());
    guard.grant_permission("p", "x:*").unwrap();
    assert_eq!(decide(&guard, "needy", json!({})), "allowed");
    guard.exchange(load_policy("tools: {other: ~}"));
    assert_eq!(decide(&guard, "needy", json!({})), "allowed");
    assert_eq!(decide(&guard, "new", json!({"n": 1})), "allowed");
    guard.discover([tool("new", requires("m"))], none());
    assert_eq!(decide(&guard, "new", json!({"m": 1})), "allowed");
    assert!(decide(&guard, "needy", json!({})).starts_with("unknown_tool"));

    let twice = guard.register(&ToolPolicy::new("new"), OnDuplicate::Keep);
    assert_eq!(twice.unwrap_err().tool, "new");
    guard.unregister("new");
    assert!(decide(&guard, "new", json!({"m": 1})).starts_with("unknown_tool"));
    guard.discover([tool("new", requires("m"))], none());
    assert_eq!(decide(&guard, "new", json!({"m": 1})), "allowed");
}

#[test]
fn records_contain_only_names_and_quarantine() {
    let (guard, log) = setup(load_policy("tools: {}"));
    let many = || (0..60).map(|at| tool(&format!("t{at:02}"), json!({})));
    guard.discover(many(), none());
    guard.discover(many(), none());
    guard.discover(many().map(|it| tool(&it.name, requires("a"))), none());
    guard.discover(many().rev(), none());
    guard.discover(
        many().skip(1),
        [("t05".to_owned(), "why".to_owned())].into(),
    );
    let names: Vec<String> = (0..50).map(|at| format!("t{at:02}")).collect();
    assert_eq!(
        policy_records(&log),
        [
            (
                "discovered".to_owned(),
                json!({"added": {"count": 60, "names": names}, "in_quarantine": 0, "tools": 60})
            ),
            (
                "discovered".to_owned(),
                json!({
                    "in_quarantine": 1,
                    "quarantined": {"count": 1, "names": ["t05"]},
                    "removed": {"count": 1, "names": ["t00"]},
                    "tools": 59,
                })
            ),
        ]
    );
}

#[test]
fn without_a_policy_any_caller_may_call_any_tool() {
    let (guard, _) = setup(LoadedPolicy::open().unwrap());
    let defaults = ToolPolicy::read_defaults(&json!({"groups": ["files"]})).unwrap();
    let grouped =
        ToolPolicy::discovered("grouped", None, None, None, None).with_defaults(&defaults);
    guard.discover([tool("plain", json!({})), Arc::new(grouped)], none());
    assert_eq!(decide(&guard, "plain", json!({})), "allowed");
    for groups in [["files"], ["*"]] {
        let call = Call {
            tool: "grouped",
            principal: "anybody",
            groups: Some(groups.into_iter().collect()),
            ..Call::default()
        };
        assert_eq!(
            guard.intercept(&call).code,
            ReasonCode::Allowed,
            "{groups:?}"
        );
    }
}
