use std::collections::BTreeSet;
use toolwarden_guard::INITIAL_STATE;
use toolwarden_model::StateName;

use serde_json::{Value, json};
use toolwarden_guard::{Guard, ReasonCode, Request, RequestedGroups};
use toolwarden_testkit::read_vectors;

use super::{calm, guard};

/// Groups as a request writes them. A text is not a list: the original splits it into characters, of which
/// only `*` has a meaning.
fn requested(groups: &Value) -> RequestedGroups {
    match groups {
        Value::Null => RequestedGroups::Default,
        Value::String(text) => text.chars().map(String::from).collect(),
        groups => groups
            .as_array()
            .unwrap()
            .iter()
            .map(|group| group.as_str().unwrap())
            .collect(),
    }
}

fn available(guard: &Guard, groups: &Value, state: &Value) -> Vec<String> {
    let state = state.as_str().filter(|state| !state.is_empty());
    let found = guard.available_tools(&Request {
        principal: "anybody",
        groups: &requested(groups),
        state: &StateName::new(state.unwrap_or("undefined")),
        condition_inputs: &calm(),
        variant: None,
    });
    let found: BTreeSet<String> = found
        .unwrap()
        .available
        .iter()
        .map(|tool| tool.to_string())
        .collect();
    found.into_iter().collect()
}

/// A policy in which every principal may request everything.
fn open_to_all(tools: &Value) -> Guard {
    guard(&json!({"tools": tools, "principals": {"*": {"groups": ["*"]}}}).to_string())
}

fn check_cases(guard: &Guard, cases: &Value, differing: &str) {
    for case in cases.as_array().unwrap() {
        let mut expected: Vec<&str> = case[3]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap())
            .collect();
        // The original ignores `available_in_states`, which is an alias of the same key here.
        if case[2] != "analysis" {
            expected.retain(|tool| *tool != differing);
        }
        assert_eq!(available(guard, &case[1], &case[2]), expected, "{case}");
    }
}

#[test]
fn tools_are_filtered_as_the_original_does() {
    let Some(vectors) = read_vectors("groups.json") else {
        return;
    };
    let cases = &vectors["cases_label_group_state_available"];
    assert_eq!(cases.as_array().unwrap().len(), 20);
    check_cases(&open_to_all(&vectors["tools"]), cases, "");
    let cases = &vectors["edge_cases_label_group_state_available"];
    assert_eq!(cases.as_array().unwrap().len(), 4);
    check_cases(&open_to_all(&vectors["edge_tools"]), cases, "snake_ignored");
}

#[test]
fn requests_stay_within_what_is_granted() {
    let Some(vectors) = read_vectors("groups.json") else {
        return;
    };
    let cases = vectors["gateway_recommended_allowed_requested_verdict"]
        .as_array()
        .unwrap();
    assert_eq!(cases.len(), 8);
    for case in cases {
        let policy = json!({
            "tools": {"t": {"group": ["read-only", "write", "default"]}},
            "principals": {"p": {"groups": case[0]}},
        });
        let found = guard(&policy.to_string()).available_tools(&Request {
            principal: "p",
            groups: &requested(&case[1]),
            state: &INITIAL_STATE,
            condition_inputs: &calm(),
            variant: None,
        });
        match case[2].as_str().unwrap() {
            "ok" => assert!(found.is_ok(), "{case}"),
            _ => {
                let denial = found.unwrap_err();
                assert_eq!(denial.code, ReasonCode::GroupsNotGranted, "{case}");
                let prefix = "Insufficient permissions for requested tool groups";
                assert!(denial.reason.starts_with(prefix), "{denial:?}");
            }
        }
    }
}

#[test]
fn a_successful_call_leads_to_the_state_of_the_tool() {
    let Some(vectors) = read_vectors("groups.json") else {
        return;
    };
    for case in vectors["next_state_tool_current_next"].as_array().unwrap() {
        let guard = open_to_all(&json!({"t": case[0]}));
        let current = case[1].as_str().unwrap();
        let permit = guard
            .admit(
                &Request {
                    principal: "p",
                    groups: &RequestedGroups::Default,
                    state: &StateName::new(current),
                    condition_inputs: &calm(),
                    variant: None,
                },
                "t",
            )
            .and_then(|admitted| admitted.meter(Ok(())))
            .and_then(|metered| metered.validate(&json!({})))
            .unwrap();
        let next = permit.next_state().map_or(current, StateName::as_str);
        assert_eq!(next, case[2].as_str().unwrap(), "{case}");
    }
}

#[test]
fn the_first_check_that_fails_says_why_a_tool_is_left_out() {
    let guard = guard(
        "
tools:
  query: {group: [knowledge/read]}
  update: {group: [knowledge/write], available_in_states: [analysis]}
  purge: {group: [admin], available_in_states: [analysis]}
  paid: {group: [knowledge], required_permissions: [pay]}
  held: {group: [knowledge]}
principals:
  p: {groups: [knowledge]}
quarantine: [held]
",
    );
    let found = guard
        .available_tools(&Request {
            principal: "p",
            groups: &["knowledge"].into_iter().collect(),
            state: &INITIAL_STATE,
            condition_inputs: &calm(),
            variant: None,
        })
        .unwrap();
    assert_eq!(
        found.available.iter().map(|it| &**it).collect::<Vec<_>>(),
        ["query"]
    );
    let left_out: Vec<(&str, &str, &str)> = found
        .unavailable
        .iter()
        .map(|it| (&*it.tool, it.code.as_str(), it.reason.as_str()))
        .collect();
    assert_eq!(
        left_out,
        [
            (
                "update",
                "filtered_by_state",
                "tool 'update' is not available in state 'undefined' (available in: analysis)"
            ),
            (
                "purge",
                "filtered_by_group",
                "tool 'purge' is not in the requested groups (requested: knowledge; tool: admin)"
            ),
            (
                "paid",
                "missing_permissions",
                "agent 'p' is missing required permissions: pay"
            ),
            ("held", "quarantined", "tool 'held' is quarantined"),
        ]
    );
}

/// The groups that a request without groups asks for, and the tools it sees.
fn plain(policy: &str, principal: &str) -> (Vec<String>, Vec<String>) {
    let guard = guard(policy);
    let groups = guard.asked(principal, &RequestedGroups::Default);
    let asked = groups.names().map(ToString::to_string).collect();
    let condition_inputs = calm();
    let found = guard.available_tools(&Request {
        principal,
        groups: &groups,
        state: &INITIAL_STATE,
        condition_inputs: &condition_inputs,
        variant: None,
    });
    let found = found.unwrap();
    assert!(found.unknown_groups.is_empty() && found.dropped_groups.is_empty());
    let tools = found.available.iter().map(|it| it.to_string()).collect();
    (asked, tools)
}

#[test]
fn a_request_without_groups_asks_for_the_default_groups_of_its_principal() {
    let policy = r#"
strict_groups: true
tools:
  plain: {}
  look: {group: [read-only]}
  change: {group: [write]}
roles:
  reader: {groups: [read-only], default_groups: [read-only]}
  writer: {groups: [write], default_groups: [write]}
  both: {roles: [reader, writer]}
principals:
  only-reads: {groups: [read-only]}
  also-default: {groups: [default, read-only]}
  all: {groups: ["*"]}
  all-but-default: {groups: ["*"], deny: {groups: [default]}}
  said: {groups: ["*"], default_groups: ["*"]}
  own: {roles: [reader, writer], default_groups: [write]}
  by-roles: {roles: [reader, writer]}
  by-nested-roles: {roles: [both]}
  none-by-default: {groups: [read-only], default_groups: []}
  nothing: {groups: []}
  empty-group: {groups: [read-only, nowhere]}
  denied: {groups: [read-only, write], deny: {groups: [write]}}
"#;
    let cases: [(&str, &[&str], &[&str]); 13] = [
        ("unnamed", &["default"], &["plain"]),
        ("only-reads", &["read-only"], &["look"]),
        ("also-default", &["default"], &["plain"]),
        ("all", &["default"], &["plain"]),
        ("all-but-default", &["*"], &["look", "change"]),
        ("said", &["*"], &["plain", "look", "change"]),
        ("own", &["write"], &["change"]),
        ("by-roles", &["read-only", "write"], &["look", "change"]),
        (
            "by-nested-roles",
            &["read-only", "write"],
            &["look", "change"],
        ),
        ("none-by-default", &[], &[]),
        ("nothing", &[], &[]),
        ("empty-group", &["read-only"], &["look"]),
        ("denied", &["read-only"], &["look"]),
    ];
    for (principal, asked, tools) in cases {
        let (found_asked, found_tools) = plain(policy, principal);
        assert_eq!(found_asked, asked, "{principal}");
        assert_eq!(found_tools, tools, "{principal}");
    }
}

#[test]
fn default_groups_have_to_be_granted() {
    let read = |principals: Value, roles: Value| {
        let policy =
            json!({"tools": {"t": {"group": ["a/b"]}}, "principals": principals, "roles": roles});
        let document = toolwarden_guard::Document::read(&policy.to_string()).unwrap();
        match toolwarden_guard::Policy::read(&document) {
            Ok(_) => String::new(),
            Err(mistakes) => mistakes.iter().map(|it| format!("{it}\n")).collect(),
        }
    };
    assert_eq!(
        read(
            json!({"p": {"groups": ["a"], "default_groups": ["a/b"]}}),
            json!({})
        ),
        ""
    );
    assert_eq!(
        read(
            json!({"p": {"groups": ["a"], "default_groups": ["c"]}}),
            json!({})
        ),
        "/principals/p/default_groups: `default_groups` names group `c`, which principal `p` is not \
         granted; add it to `groups`, or remove it here\n"
    );
    assert_eq!(
        read(
            json!({"*": {"roles": ["r"]}}),
            json!({"r": {"groups": [], "default_groups": ["*"]}})
        ),
        "/principals/*/roles: `default_groups` names group `*`, which principal `*` is not granted; \
         add it to `groups`, or remove it here\n"
    );
}

#[test]
fn sessions_start_in_the_initial_state_of_their_principal() {
    let guard = guard(
        "
tools: {t: {available_in_states: [review], state: done}}
roles:
  a: {initial_state: review}
  b: {initial_state: other}
principals:
  own: {roles: [b], initial_state: review}
  first: {roles: [a, b]}
  unsaid: {}
",
    );
    let state = |principal| guard.initial_state(principal).map(|it| it.to_string());
    assert_eq!(state("own").as_deref(), Some("review"));
    assert_eq!(state("first").as_deref(), Some("review"));
    assert_eq!(state("unsaid"), None);
    assert_eq!(state("unnamed"), None);
    let graph = guard.graph();
    let review = graph.states.iter().find(|it| it.name == "review").unwrap();
    assert!(review.initial && review.reachable, "{review:?}");
}
