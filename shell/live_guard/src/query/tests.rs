use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolwarden_guard::{ReasonCode, ToolPolicy};
use toolwarden_model::{GroupName, StateName};

use crate::{AuditLog, Call, Clock, LiveGuard, LoadedPolicy, ManualClock, SessionSummary};

const POLICY: &str = "
tools:
  query: {group: [work], state: analysis, available_in_states: [undefined], input_schema: {required: [q]}}
  analyse: {group: [work], available_in_states: [analysis]}
  secret: {group: [work], required_permissions: [secret:read]}
  vault: {group: [vault]}
principals:
  p: {groups: [work]}
quarantine: []
";

fn setup() -> (LiveGuard, Arc<ManualClock>) {
    let policy = LoadedPolicy::of_text(POLICY.as_bytes(), Path::new("p"), Path::new("")).unwrap();
    let clock = ManualClock::at("2026-01-05T08:00:00Z".parse().unwrap());
    let guard = LiveGuard::new(
        policy.guard,
        AuditLog::recent(),
        Clock::Manual(Arc::clone(&clock)),
    );
    (guard.unwrap(), clock)
}

fn work<'c>(tool: &'c str, session: &'c str) -> Call<'c> {
    Call {
        tool,
        principal: "p",
        session: Some(session),
        groups: Some(["work"].into_iter().collect()),
        arguments: Arc::new(json!({"q": 1})),
        ..Call::default()
    }
}

#[test]
fn sessions_are_listed_with_their_state() {
    let (guard, clock) = setup();
    for (principal, session) in [("p", "b"), ("p", "a"), ("o", "")] {
        let call = Call {
            principal,
            session: Some(session),
            groups: Some(
                [if principal == "p" { "work" } else { "default" }]
                    .into_iter()
                    .collect(),
            ),
            ..Call::default()
        };
        guard.open_session(&call).unwrap();
    }
    clock.set_elapsed(Duration::from_secs(60));
    guard
        .decide(&work("query", "b"))
        .unwrap()
        .report_success_unchecked();
    let summary = |principal: &str, session: &str, group: &str| SessionSummary {
        principal: principal.to_owned(),
        session: session.to_owned(),
        state: StateName::new("undefined"),
        groups: vec![GroupName::new(group)],
        opened: "2026-01-05T08:00:00Z".parse().unwrap(),
        last_used: "2026-01-05T08:00:00Z".parse().unwrap(),
    };
    let moved = SessionSummary {
        state: StateName::new("analysis"),
        last_used: "2026-01-05T08:01:00Z".parse().unwrap(),
        ..summary("p", "b", "work")
    };
    assert_eq!(
        guard.sessions(),
        [
            summary("o", "", "default"),
            summary("p", "a", "work"),
            moved
        ]
    );
    clock.set_elapsed(Duration::from_secs(24 * 3600 + 30));
    assert_eq!(guard.sessions().len(), 1, "the others are forgotten");
    assert_eq!(
        guard.sessions()[0].document(),
        json!({
            "principal": "p", "session": "b", "state": "analysis", "groups": ["work"],
            "opened": "2026-01-05T08:00:00.000Z", "last_used": "2026-01-05T08:01:00.000Z",
        })
    );
}

#[test]
fn explanations_name_the_first_denying_gate_and_the_remedy() {
    let (guard, _) = setup();
    let groups = || Some(["work"].into_iter().collect());
    let cases = [
        (
            "query",
            true,
            true,
            "'p' sees 'query' and may call it",
            "Nothing needs to change.",
        ),
        (
            "analyse",
            false,
            false,
            "tool 'analyse' is not available in state 'undefined' (available in: analysis)",
            "Call `query` successfully first in this session; or start the session in state 'analysis': \
             set `principals.p.initial_state: analysis` in the policy; or add 'undefined' to \
             `tools.analyse.available_in_states`.",
        ),
        (
            "secret",
            false,
            false,
            "agent 'p' is missing required permissions: secret:read",
            "Add secret:read to `principals.p.permissions`, or to one of its roles.",
        ),
        (
            "vault",
            false,
            false,
            "tool 'vault' is not in the requested groups (requested: work; tool: vault)",
            "Grant group 'vault': set `principals.p.groups: [work, vault]` in the policy. Let the client \
             ask for it: by the header `Toolwarden-Groups: work, vault`, by \
             `_meta[\"toolwarden/groups\"]: [\"work\", \"vault\"]`, or by the path \
             `/mcp/g/work,vault`.",
        ),
        (
            "nothing",
            false,
            false,
            "connector 'nothing' is not registered",
            "Check the name and that the tool's server is up and lists it; under `unlisted: hide`, name \
             the tool in the policy.",
        ),
    ];
    for (tool, visible, callable, reason, remedy) in cases {
        let told = guard.explain_visibility("p", None, tool, groups());
        assert_eq!((told.visible, told.callable), (visible, callable), "{tool}");
        assert_eq!(
            (told.reason.as_str(), told.remedy.as_str()),
            (reason, remedy)
        );
    }
    let broken = ToolPolicy::discovered("broken", None, Some(json!({"type": 1})), None, None);
    guard.discover([broken], std::collections::BTreeMap::new());
    let told = guard.explain_visibility("p", None, "broken", Some(["*"].into_iter().collect()));
    assert!(!told.visible, "`*` is not granted");
    let told = guard.explain_visibility("anybody", None, "broken", None);
    assert_eq!((told.visible, told.callable), (true, false));
    let steps = told.document();
    assert_eq!(steps["steps"][6]["gate"], "input");
    assert_eq!(steps["steps"][6]["code"], "broken_schema");
    assert_eq!(steps["steps"][0]["passes"], true);
}

#[test]
fn a_refused_step_of_a_workflow_names_the_step_before_it() {
    let (guard, _) = setup();
    let denial = guard.decide(&work("analyse", "s")).unwrap_err();
    assert_eq!(denial.code, ReasonCode::FilteredByState);
    assert_eq!(
        denial.advice(),
        "Call `query` successfully first, then call this tool again."
    );
    let hidden = Call {
        groups: Some(["default"].into_iter().collect()),
        ..work("analyse", "s")
    };
    let denial = guard.decide(&hidden).unwrap_err();
    assert_eq!(
        denial.next_tools,
        [],
        "what the caller does not see is not named"
    );
}

#[test]
fn groups_and_states_are_those_in_use() {
    let (guard, _) = setup();
    let defaults = ToolPolicy::read_defaults(&json!({"groups": ["found"], "state": "end"}));
    let found =
        ToolPolicy::discovered("found", None, None, None, None).with_defaults(&defaults.unwrap());
    guard.discover([found], std::collections::BTreeMap::new());
    let groups = guard.groups("p");
    let told: Vec<(&str, bool, usize)> = groups
        .iter()
        .map(|it| (it.name.as_str(), it.granted, it.tools.len()))
        .collect();
    assert_eq!(
        told,
        [
            ("default", false, 0),
            ("found", false, 1),
            ("vault", false, 1),
            ("work", true, 3)
        ]
    );
    let graph = guard.states();
    let names: Vec<&str> = graph.states.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["analysis", "end", "undefined"]);
}
