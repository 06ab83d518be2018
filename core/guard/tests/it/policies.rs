use serde_json::json;
use toolwarden_guard::{Document, Policy, ReasonCode, StateSet};
use toolwarden_model::StateName;

/// The mistakes of a policy, one per line, with their places.
fn mistakes(text: &str) -> Vec<String> {
    let document = Document::read(text).unwrap();
    let errors = Policy::read(&document).unwrap_err();
    errors
        .iter()
        .map(|error| {
            let position = error.position.unwrap();
            format!("{}:{} {error}", position.line, position.column)
        })
        .collect()
}

#[test]
fn every_mistake_is_reported_with_its_location() {
    assert_eq!(
        mistakes(
            "tools:
  search:
    grup: [a]
    rate_limit: 0
    required_permissions: ['db:*', 'db::x']
    available_in_states: [a]
    applicable-states: [b]
    output: loud
  '': {}
principals:
  p: {roles: [raeder], deny: {tools: [serach], groups: [nowhere]}, permissions: [db*]}
roles:
  reader: {roles: [writer]}
  writer: {roles: [reader], kind: agent}
groups:
  hours: {when: 'tiem.hour > 9'}
quarantine: [serch]
zone: Europe/Nowhere
rate: {window: 0s, scope: everybody}
"
        ),
        [
            "3:5 /tools/search/grup: unknown key `grup`, did you mean `group`?",
            "4:5 /tools/search/rate_limit: expected a whole number from 1 to 4294967295, found 0",
            "5:28 /tools/search/required_permissions/0: `db:*` is a pattern; a tool requires exact permissions, such as `db:read`",
            "5:36 /tools/search/required_permissions/1: `db::x` has an empty part; write `area:verb`",
            "7:5 /tools/search/applicable-states: `available_in_states` and `applicable-states` are the same key with different values",
            "8:5 /tools/search/output: unknown word `loud`; known are off, warn, enforce",
            "9:3 /tools/: a tool's name must not be blank",
            "11:7 /principals/p/roles: there is no role `raeder`, did you mean `reader`?",
            "11:31 /principals/p/deny/tools: there is no tool `serach`, did you mean `search`?",
            "11:48 /principals/p/deny/groups: there is no group `nowhere`",
            "11:82 /principals/p/permissions/0: `db*`: `*` stands for whole parts only, as in `db:*`",
            "13:3 /roles/reader: role `reader` includes itself",
            "14:3 /roles/writer: role `writer` includes itself",
            "14:29 /roles/writer/kind: unknown key `kind`; known are roles, groups, default_groups, initial_state, permissions, deny",
            "16:11 /groups/hours/when: unknown variable `tiem`, did you mean `time`?",
            "17:1 /quarantine: there is no tool `serch`, did you mean `search`?",
            "18:1 /zone: unknown time zone `Europe/Nowhere`",
            "19:8 /rate/window: `0s` is not a duration; write 90, 30s, 5m, 1.5h, 7d or 2w",
            "19:20 /rate/scope: unknown word `everybody`; known are agent, tool, connector, both",
        ]
    );
}

#[test]
fn spellings_of_one_key_may_be_mixed_where_they_agree() {
    let text = json!({
        "tool": {"t": {"availableInStates": ["a"], "applicable-states": ["a"], "rate-limit": 3, "requiredPermissions": "x:y"}},
    });
    let document = Document::read(&text.to_string()).unwrap();
    let policy = Policy::read(&document).unwrap().policy;
    let tool = &policy.tools[0];
    assert_eq!(tool.states, StateSet::Only([StateName::new("a")].into()));
    assert_eq!(tool.limits.agent.unwrap().max.get(), 3);
    assert_eq!(tool.permissions[0].as_str(), "x:y");

    let text = "tools:
  one: {available_in_states: [a], applicable-states: a}
  order: {available_in_states: [a, b], applicable-states: [b, a]}
  nothing: {group: [], groups: }
";
    let document = Document::read(text).unwrap();
    let policy = Policy::read(&document).unwrap().policy;
    let states: Vec<&StateSet> = policy.tools.iter().map(|tool| &tool.states).collect();
    let only =
        |names: &[&str]| StateSet::Only(names.iter().map(|&it| StateName::new(it)).collect());
    assert_eq!(
        states,
        [&only(&["a"]), &only(&["a", "b"]), &StateSet::Every]
    );
    assert_eq!(
        mistakes(
            "tools: {t: {group: [a], groups: [a, a], mcp_tool: x, mcp_tool_id: [x], state: , input-schema: }}"
        ),
        [
            "1:25 /tools/t/groups: `group` and `groups` are the same key with different values",
            "1:54 /tools/t/mcp_tool_id: `mcp_tool` and `mcp_tool_id` are the same key with different values",
            "1:81 /tools/t/input-schema: `input-schema` has no value; write one, or leave the key out",
        ]
    );
}

#[test]
fn empty_lists_are_reported() {
    let document =
        Document::read("tools: {a: {group: []}, b: {available_in_states: []}, c: {group: '*'}}")
            .unwrap();
    let warnings = Policy::read(&document).unwrap().warnings;
    let told: Vec<String> = warnings
        .iter()
        .map(|it| format!("{}: {}", it.pointer, it.message))
        .collect();
    assert_eq!(
        told,
        [
            "/tools/a/group: the list of groups is empty: only a request for `*` reaches the tool",
            "/tools/b/available_in_states: the list of states is empty: the tool is never available",
            "/tools/c/group: `*` is not a wildcard in a tool's groups: only a request for `*` reaches it",
        ]
    );
}

#[test]
fn the_documentation_lists_every_code_with_its_gate() {
    let page = include_str!("../../../../docs/guard.md");
    let (_, table) = page.split_once("| code | gate |").unwrap();
    let written: Vec<(&str, &str)> = table
        .lines()
        .skip(2)
        .map_while(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            Some((cells.next()?.trim_end_matches('`'), cells.next()?))
        })
        .collect();
    let mut known: Vec<(&str, &str)> = ReasonCode::ALL
        .iter()
        .filter_map(|code| Some((code.as_str(), code.gate()?.as_str())))
        .collect();
    known.sort_by_key(|(code, _)| written.iter().position(|(it, _)| it == code));
    assert_eq!(written, known);
}
