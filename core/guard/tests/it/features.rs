//! Rules for resources, prompts, skills and methods: which one decides, and what a policy may contain.

use std::collections::BTreeMap;
use std::sync::Arc;
use toolwarden_guard::INITIAL_STATE;

use serde_json::json;
use toolwarden_guard::{
    ConditionInputs, Document, Feature, FeatureKind, Guard, LintRule, Policy, ReasonCode, Request,
    RequestedGroups, ToolPolicy, lint,
};

fn read(text: &str) -> Policy {
    Policy::read(&Document::read(text).unwrap()).unwrap().policy
}

fn guard(text: &str) -> Guard {
    let (guard, faults) = Guard::new(read(text));
    assert!(faults.is_empty());
    let defaults = |group: &str| {
        let defaults = json!({"group": group, "required_permissions": []});
        Arc::new(ToolPolicy::read_defaults(&defaults).unwrap())
    };
    let servers = [("a", "of-a"), ("b", "default")];
    let servers = servers.map(|(server, group)| (Arc::from(server), defaults(group)));
    guard.with_servers(&BTreeMap::from(servers))
}

/// The decision on a request for one feature with these groups.
fn decided(guard: &Guard, groups: &[&str], feature: Feature<'_>) -> ReasonCode {
    let condition_inputs = ConditionInputs {
        now: jiff::Timestamp::UNIX_EPOCH,
        zone: jiff::tz::TimeZone::UTC,
        load: None,
        attributes: BTreeMap::new(),
    };
    let groups: RequestedGroups = groups.iter().copied().collect();
    let request = Request {
        principal: "p",
        groups: &groups,
        state: &INITIAL_STATE,
        condition_inputs: &condition_inputs,
        variant: None,
    };
    let admitted = guard.admit(&request, feature).map(drop);
    let join_names = guard.reachable(&request, [feature]).map(|it| it.admitted);
    assert_eq!(
        join_names.unwrap_or(vec![false]),
        [admitted.is_ok()],
        "what is listed is what may be used: {feature:?}"
    );
    admitted
        .err()
        .map_or(ReasonCode::Allowed, |denial| denial.code)
}

fn resource<'f>(server: &'f str, name: &'f str) -> Feature<'f> {
    Feature {
        kind: FeatureKind::Resource,
        name,
        server: Some(server),
        ..Feature::default()
    }
}

const POLICY: &str = "
tools: {}
resources:
  'file:///*': {group: files}
  'file:///docs/*': {group: docs}
  'file:///docs/*.key': {group: keys}
  'file:///docs/one': {group: one}
  'note://x': {group: notes, server: a}
prompts:
  letter: {group: letters}
  a__letter: {group: letters-of-a}
skills:
  'skill://*': {group: skills}
principals:
  '*': {groups: ['*'], deny: {resources: ['file:///denied/*'], prompts: [rude]}}
";

#[test]
fn the_rule_that_says_most_of_a_name_decides() {
    let guard = guard(POLICY);
    let rule = |group: &str, feature| {
        assert_eq!(
            decided(&guard, &[group], feature),
            ReasonCode::Allowed,
            "{feature:?}"
        );
        let code = decided(&guard, &["none"], feature);
        assert_eq!(code, ReasonCode::FilteredByGroup, "{feature:?}");
    };
    for (group, name) in [
        ("files", "file:///x"),
        ("docs", "file:///docs/x"),
        ("keys", "file:///docs/x.key"),
        ("one", "file:///docs/one"),
        ("one", "FILE:///docs/./two/../one"),
        ("of-a", "other://x"),
        ("notes", "note://x"),
    ] {
        rule(group, resource("a", name));
    }
    rule("default", resource("b", "note://x"));
    let aliases = ["a__letter".to_owned(), "letter".to_owned()];
    let prompt = |server| Feature {
        kind: FeatureKind::Prompt,
        name: "letter",
        aliases: &aliases,
        server: Some(server),
        ..Feature::default()
    };
    rule("letters", prompt("a"));
    let shown = Feature {
        name: "a__letter",
        ..prompt("a")
    };
    rule("letters-of-a", shown);
    let skills = [Arc::from("skill://s/SKILL.md")];
    let file = Feature {
        skills: &skills,
        ..resource("b", "skill://s/notes.md")
    };
    assert_eq!(
        decided(&guard, &["default"], file),
        ReasonCode::FilteredByGroup
    );
    assert_eq!(
        decided(&guard, &["skills"], file),
        ReasonCode::FilteredByGroup
    );
    assert_eq!(
        decided(&guard, &["default", "skills"], file),
        ReasonCode::Allowed
    );
}

#[test]
fn deny_rules_and_unknown_servers() {
    let guard = guard(POLICY);
    for name in ["file:///denied/x", "file:///x/../denied/y"] {
        assert_eq!(
            decided(&guard, &["*"], resource("b", name)),
            ReasonCode::DeniedByRule
        );
    }
    let rude = Feature {
        kind: FeatureKind::Prompt,
        ..resource("b", "rude")
    };
    assert_eq!(decided(&guard, &["*"], rude), ReasonCode::DeniedByRule);
    assert_eq!(
        decided(&guard, &["*"], resource("b", "rude")),
        ReasonCode::Allowed
    );
    let unknown = resource("gone", "other://x");
    assert_eq!(decided(&guard, &["*"], unknown), ReasonCode::NotOffered);
    let nowhere = Feature {
        server: None,
        ..resource("a", "file:///x")
    };
    assert_eq!(decided(&guard, &["*"], nowhere), ReasonCode::NotOffered);
    let withheld = Feature {
        quarantine_reason: Some("it changed"),
        ..resource("a", "file:///x")
    };
    assert_eq!(decided(&guard, &["*"], withheld), ReasonCode::Quarantined);
    let hidden = self::guard(&format!("unlisted: hide\n{POLICY}"));
    assert_eq!(
        decided(&hidden, &["*"], resource("b", "other://x")),
        ReasonCode::NotOffered
    );
    assert_eq!(
        decided(&hidden, &["*"], resource("b", "file:///x")),
        ReasonCode::Allowed
    );
}

#[test]
fn mistakes_are_reported_with_their_locations() {
    let text = "tools: {}
resources:
  'file:///*': {state: read, grup: x}
  '': {}
prompts: {letter: {input_schema: {}}}
quarantine: ['file:///']
";
    let errors = Policy::read(&Document::read(text).unwrap()).unwrap_err();
    let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "/resources/file:~1~1~1*/state: `state` is for tools only: using a resource does not move a \
             workflow; remove it, or name the states the resource is available in with `available_in_states`",
            "/resources/file:~1~1~1*/grup: unknown key `grup`, did you mean `group`?",
            "/resources/: an address or a pattern must not be blank",
            "/prompts/letter/input_schema: unknown key `input_schema`; known are group, \
             available_in_states, rate_limit, required_permissions, server, description, state",
            "/quarantine: there is no tool `file:///`",
        ]
    );
}

#[test]
fn lint_knows_what_is_no_tool() {
    let found = |text: &str| {
        let findings = lint(&read(text)).into_iter();
        let findings = findings.map(|it| (it.rule, it.pointer.to_string()));
        findings.collect::<Vec<_>>()
    };
    let used = "{tools: {}, resources: {'file:///*': {group: files, required_permissions: ['files:read']}}, \
        principals: {p: {groups: [files], permissions: ['files:read']}, '*': {groups: []}}}";
    assert_eq!(found(used), []);
    let unused = "{tools: {}, resources: {'file:///*': {group: files, required_permissions: ['files:read']}}, \
        principals: {p: {groups: [fils], permissions: ['files:write']}, '*': {groups: []}}}";
    let place = "/resources/file:~1~1~1*";
    assert_eq!(
        found(unused),
        [
            (LintRule::UnusedGroup, "/principals/p/groups/0".to_owned()),
            (
                LintRule::UnusedPermission,
                "/principals/p/permissions/0".to_owned()
            ),
            (LintRule::UnreachableTool, format!("{place}/group")),
            (LintRule::UnrequestableGroup, format!("{place}/group")),
            (
                LintRule::UnheldPermission,
                format!("{place}/required_permissions")
            ),
        ]
    );
    let lost = "{tools: {go: {state: there}}, prompts: {letter: {available_in_states: [their]}}, \
        principals: {'*': {groups: [default]}}}";
    assert!(found(lost).contains(&(
        LintRule::UnreachableTool,
        "/prompts/letter/available_in_states".to_owned()
    )));
}

/// If a credential has several roles, the denials of each one apply.
#[test]
fn denies_of_all_roles_count() {
    let guard = guard(
        "tools: {}\nroles:\n  one: {groups: [default], deny: {resources: ['file:///one/*']}}\n  two: {groups: [default], deny: {resources: ['file:///two/*']}}\n",
    );
    let guard = guard.with_roles(["one", "two"]);
    for (name, code) in [
        ("file:///one/x", ReasonCode::DeniedByRule),
        ("file:///two/x", ReasonCode::DeniedByRule),
        ("file:///three/x", ReasonCode::Allowed),
    ] {
        assert_eq!(
            decided(&guard, &["default"], resource("b", name)),
            code,
            "{name}"
        );
    }
}

#[test]
fn two_rules_for_one_address_are_refused() {
    let text =
        "tools: {}\nresources:\n  'file:///a/plan': {group: staff}\n  'FILE:///a/./plan': {}\n";
    let errors = Policy::read(&Document::read(text).unwrap()).unwrap_err();
    let [error] = errors.as_slice() else {
        panic!("{errors:?}");
    };
    let told = error.to_string();
    assert!(
        told.contains("rule `file:///a/plan` is for the same resource"),
        "{told}"
    );
    let apart = "tools: {}\nresources: {'file:///a': {}}\nskills: {'file:///a': {}}\nprompts: {a: {}, A: {}}";
    assert_eq!(read(apart).features.len(), 4);
}
