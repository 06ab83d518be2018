use std::collections::BTreeSet;
use toolwarden_model::{GroupName, StateName};

use super::*;
use crate::Document;
use crate::policy::{Permission, PermissionPattern, PrincipalPolicy, StateSet, ToolPolicy};

/// A rule, a policy in which it finds something, and a similar policy in which it does not.
struct Case {
    rule: LintRule,
    fires: &'static str,
    /// The pointer of the finding, and a part of its message.
    expected: (&'static str, &'static str),
    silent: &'static str,
}

const CASES: &[Case] = &[
    Case {
        rule: LintRule::SchemaWord,
        fires: "tools: {a: {input_schema: {properties: {n: {maximun: 5}}}}}",
        expected: ("/tools/a/input_schema/properties/n/maximun", "did you mean `maximum`?"),
        silent: "tools: {a: {input_schema: {properties: {maximun: {maximum: 5, x-unit: EUR}}}}}",
    },
    Case {
        rule: LintRule::UnreachableState,
        fires: "tools: {a: {available_in_states: [undefined, lost]}}",
        expected: ("/tools/a/available_in_states", "state `lost` is never reached: no tool leads to it"),
        silent: "tools: {a: {available_in_states: [undefined, lost]}, b: {state: lost}}",
    },
    Case {
        rule: LintRule::UnreachableState,
        fires: "tools: {a: {available_in_states: [lost], state: found}}",
        expected: ("/tools/a/state", "only `lost` leads to it"),
        silent: "{tools: {a: {available_in_states: [lost], state: found}}, sessions: {initial_states: '*'}}",
    },
    Case {
        rule: LintRule::UnreachableTool,
        fires: "tools: {a: null, b: {available_in_states: [lost]}}",
        expected: ("/tools/b/available_in_states", "available only in `lost`"),
        silent: "{tools: {b: {available_in_states: [lost]}}, sessions: {initial_states: [lost]}}",
    },
    Case {
        rule: LintRule::UnreachableTool,
        fires: "tools: {a: null, b: {available_in_states: []}}",
        expected: ("/tools/b/available_in_states", "available in no state"),
        silent: "tools: {a: null, b: {available_in_states: ['*']}}",
    },
    Case {
        rule: LintRule::UnreachableTool,
        fires: "{tools: {a: {group: []}}, principals: {eve: {groups: [default]}}}",
        expected: ("/tools/a/group", "it is in no group"),
        silent: "{tools: {a: {group: []}}, principals: {eve: {groups: ['*']}}}",
    },
    Case {
        rule: LintRule::UnreachableTool,
        fires: "{tools: {a: {group: x/y}}, principals: {eve: {groups: [x], deny: {tools: [a]}}}}",
        expected: ("/tools/a/group", "no principal may request `x/y`"),
        silent: "{tools: {a: {group: x/y}}, principals: {eve: {groups: [x]}}}",
    },
    Case {
        rule: LintRule::UnreachableTool,
        fires: "{tools: {a: {required_permissions: [db:read]}},
                 principals: {eve: {groups: [], permissions: [db:read]}}}",
        expected: ("/tools/a/required_permissions", "no principal that may request it holds `db:read`"),
        silent: "{tools: {a: {required_permissions: [db:read]}}, principals: {eve: {permissions: ['*']}}}",
    },
    Case {
        rule: LintRule::UnreachableTool,
        fires: "{tools: {a: {required_permissions: [db:read, db:write]}},
                 principals: {eve: {permissions: [db:read]}, bob: {permissions: [db:write]}}}",
        expected: ("/tools/a/required_permissions", "holds all of `db:read`, `db:write`"),
        silent: "{tools: {a: {required_permissions: [db:read, db:write]}}, roles: {r: {permissions: [db:read]}},
                 principals: {bob: {roles: [r], permissions: [db:write]}}}",
    },
    Case {
        rule: LintRule::DeadEnd,
        fires: "tools: {a: {available_in_states: [undefined], state: done}}",
        expected: ("/tools/a/state", "tool `a` leads to state `done`, where no tool is available"),
        silent: "tools: {a: {available_in_states: [undefined], state: done}, b: null}",
    },
    Case {
        rule: LintRule::DeadEnd,
        fires: "tools: {a: {available_in_states: [ready]}}",
        expected: ("/sessions/initial_states", "sessions start in state `undefined`"),
        silent: "tools: {}",
    },
    Case {
        rule: LintRule::TerminalState,
        fires: "tools: {a: {available_in_states: [undefined], state: done}, b: {available_in_states: [done]}}",
        expected: ("/tools/a/state", "a session in state `done` stays there"),
        silent: "tools: {a: {available_in_states: [undefined], state: done},
                 b: {available_in_states: [done], state: undefined}}",
    },
    Case {
        rule: LintRule::SilentReset,
        fires: "tools: {a: {state: undefined}, b: {available_in_states: [undefined], state: c}}",
        expected: ("/tools/a/state", "any call of it starts the workflow over"),
        silent: "tools: {a: {state: undefined}, b: {available_in_states: [undefined]}}",
    },
    Case {
        rule: LintRule::StateJump,
        fires: "tools: {a: {available_in_states: [undefined], state: draft}, b: {state: sent}}",
        expected: ("/tools/b/state", "it skips the steps before `sent`"),
        silent: "tools: {login: {state: in}, a: {available_in_states: [in]}}",
    },
    Case {
        rule: LintRule::ReusableTransition,
        fires: "tools: {ok: {state: approved}, pay: {state: paid, available_in_states: [approved]}}",
        expected: (
            "/tools/pay/available_in_states",
            "set `states: {approved: {single_use: true}}`",
        ),
        silent: "{tools: {ok: {state: approved}, pay: {state: paid, available_in_states: [approved]}}, \
                 states: {approved: {single_use: true}}}",
    },
    Case {
        rule: LintRule::UnrequestableGroup,
        fires: "{tools: {a: {group: [default, reader]}}, principals: {eve: {groups: [readers]}}}",
        expected: ("/tools/a/group", "group `reader` of `a`, did you mean `readers`?"),
        silent: "{tools: {a: {group: [default, reader]}}, principals: {eve: {groups: ['*']}}}",
    },
    Case {
        rule: LintRule::UnrequestableGroup,
        fires: "{tools: {a: {group: x/y}}, principals: {eve: {groups: ['*'], deny: {groups: [x]}}}}",
        expected: ("/tools/a/group", "no principal may request group `x/y`"),
        silent: "{tools: {a: {group: x/y}}, principals: {eve: {groups: [x], deny: {groups: [x/z]}},
                 bob: {deny: {groups: ['*']}}}, groups: {x/z: null}}",
    },
    Case {
        rule: LintRule::UnheldPermission,
        fires: "{tools: {a: {required_permissions: [db:read]}}, principals: {eve: {permissions: [bd:read]}}}",
        expected: ("/tools/a/required_permissions", "`a` requires, did you mean `bd:read`?"),
        silent: "{tools: {a: {required_permissions: [db:read]}}, principals: {eve: {permissions: [db:*]}}}",
    },
    Case {
        rule: LintRule::UnheldPermission,
        fires: "{tools: {a: {required_permissions: [db:read]}}, roles: {no: {deny: {permissions: [db:*]}}},
                 principals: {eve: {roles: [no], permissions: ['*']}}}",
        expected: ("/tools/a/required_permissions", "no principal holds permission `db:read`"),
        silent: "{tools: {a: {required_permissions: [db:read]}}, roles: {r: {permissions: ['*:read']}},
                 principals: {eve: {roles: [r]}}}",
    },
    Case {
        rule: LintRule::NoPrincipals,
        fires: "tools: {a: {group: x}, b: null}",
        expected: ("/principals", "no principal can call `a`:"),
        silent: "tools: {a: null, b: null}",
    },
    Case {
        rule: LintRule::ShadowedRule,
        fires: "{tools: {a: {group: x/y}}, roles: {no: {deny: {groups: [x]}}},
                 principals: {eve: {roles: [no], groups: [x/y]}}}",
        expected: ("/principals/eve/groups/0", "granted and denied by `x`"),
        silent: "{tools: {a: {group: x/y}}, roles: {r: {groups: [x]}},
                 principals: {eve: {roles: [r], deny: {groups: [x/y]}}}}",
    },
    Case {
        rule: LintRule::ShadowedRule,
        fires: "{tools: {a: {required_permissions: [db:read]}},
                 principals: {eve: {permissions: [db:read, 'db:*']}}}",
        expected: ("/principals/eve/permissions/0", "covered by `db:*`"),
        silent: "{tools: {a: {required_permissions: [db:read]}},
                 principals: {eve: {permissions: [db:read, '*:write']}}}",
    },
    Case {
        rule: LintRule::ShadowedRule,
        fires: "{tools: {a: null}, principals: {eve: {groups: [default, default/x]}}}",
        expected: ("/principals/eve/groups/1", "`default/x` is within `default`"),
        silent: "{tools: {a: null}, principals: {eve: {groups: [default, defaults]}}}",
    },
    Case {
        rule: LintRule::ShadowedRule,
        fires: "{tools: {a: null}, principals: {eve: {deny: {tools: [a, a]}}}}",
        expected: ("/principals/eve/deny/tools/1", "`a` is written twice"),
        silent: "{tools: {a: null}, principals: {eve: {deny: {tools: [a]}}}}",
    },
    Case {
        rule: LintRule::IdleDeny,
        fires: "{tools: {a: null, b: {group: x}}, principals: {eve: {deny: {groups: [x]}}}}",
        expected: ("/principals/eve/deny/groups/0", "no tool that is granted is in group `x`"),
        silent: "{tools: {a: null, b: {group: [x, default]}}, principals: {eve: {deny: {groups: [x]}}}}",
    },
    Case {
        rule: LintRule::IdleDeny,
        fires: "{tools: {a: {group: x}}, principals: {eve: {deny: {tools: [a]}}}}",
        expected: ("/principals/eve/deny/tools/0", "no group of tool `a` is granted"),
        silent: "{tools: {a: {group: x/y}}, principals: {eve: {groups: [x], deny: {tools: [a]}}}}",
    },
    Case {
        rule: LintRule::IdleDeny,
        fires: "{tools: {a: null}, principals: {eve: {permissions: [db:read], deny: {permissions: ['db:*:*']}}}}",
        expected: ("/principals/eve/deny/permissions/0", "nothing of permission `db:*:*` is granted"),
        silent: "{tools: {a: null}, principals: {eve: {permissions: ['*'], deny: {permissions: ['db:*:*']}}}}",
    },
    Case {
        rule: LintRule::UnusedRole,
        fires: "{tools: {a: null}, roles: {r: null, s: {roles: [r]}}}",
        expected: ("/roles/r", "no principal has role `r`"),
        silent: "{tools: {a: null}, roles: {r: null, s: {roles: [r]}}, principals: {'*': {roles: [s]}}}",
    },
    Case {
        rule: LintRule::UnusedGroup,
        fires: "{tools: {a: {group: read}}, principals: {eve: {groups: [read]}, bob: {groups: [raed]}}}",
        expected: ("/principals/bob/groups/0", "`raed` is granted, and no tool is in it, did you mean `read`?"),
        silent: "{tools: {a: {group: read/rows}}, principals: {eve: {groups: [read]}, bob: {groups: [default]}}}",
    },
    Case {
        rule: LintRule::UnusedGroup,
        fires: "{tools: {a: null}, groups: {x: {description: y}}}",
        expected: ("/groups/x", "no tool is in group `x`"),
        silent: "{tools: {a: {group: x/y}}, groups: {x: {description: y}}}",
    },
    Case {
        rule: LintRule::UnusedPermission,
        fires: "{tools: {a: {required_permissions: [db:write]}},
                 principals: {bob: {permissions: ['*'], deny: {permissions: [db:wirte]}},
                 eve: {permissions: [db:wirte]}}}",
        expected: (
            "/principals/bob/deny/permissions/0",
            "`db:wirte` (here and in one other place), did you mean `db:write`?",
        ),
        silent: "{tools: {a: {required_permissions: [db:write]}}, principals: {eve: {permissions: ['*:write']}}}",
    },
    Case {
        rule: LintRule::OpenToAnyone,
        fires: "{tools: {a: null, b: {required_permissions: [x:y]}}, principals: {eve: {permissions: [x:y]}}}",
        expected: ("/principals", "may call `a`, which"),
        silent: "{tools: {a: null}, principals: {'*': null}}",
    },
];

pub(super) fn read(text: &str) -> Policy {
    Policy::read(&Document::read(text).unwrap())
        .unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
        .policy
}

fn found(text: &str) -> Vec<LintFinding> {
    lint(&read(text))
}

#[test]
fn every_rule_fires_and_is_silent() {
    for case in CASES {
        let fired = found(case.fires);
        let (pointer, words) = case.expected;
        let told = |it: &LintFinding| {
            it.rule == case.rule && it.pointer.as_str() == pointer && it.message.contains(words)
        };
        assert!(fired.iter().any(told), "{}: {fired:#?}", case.fires);
        let silent = found(case.silent);
        assert!(
            silent.iter().all(|it| it.rule != case.rule),
            "{}: {silent:#?}",
            case.silent
        );
    }
    let tested: BTreeSet<LintRule> = CASES.iter().map(|case| case.rule).collect();
    assert_eq!(tested, BTreeSet::from(LintRule::ALL));
}

#[test]
fn ids_are_kebab_case_and_descriptions_are_one_line() {
    let ids: BTreeSet<&str> = LintRule::ALL.iter().map(|rule| rule.as_str()).collect();
    assert_eq!(ids.len(), LintRule::ALL.len());
    for rule in LintRule::ALL {
        let kebab = rule
            .as_str()
            .chars()
            .all(|c| c.is_ascii_lowercase() || c == '-');
        assert!(kebab && !rule.description().contains('\n'), "{rule}");
    }
}

/// The example of the tool group document, with a principal that may call every tool.
const EXAMPLE: &str = r#"
tool:
  knowledge-query:
    type: knowledge-query
    group: ["read-only", "knowledge", "basic"]
    state: "analysis"
    available_in_states: ["undefined", "research"]
  graph-update:
    type: graph-update
    group: ["write", "knowledge", "admin"]
    available_in_states: ["analysis", "modification"]
  text-completion:
    type: text-completion
    group: ["read-only", "text", "basic"]
    state: "undefined"
  complex-analysis:
    type: mcp-tool
    group: ["advanced", "compute", "expensive"]
    state: "results"
    available_in_states: ["analysis"]
    mcp_tool_id: "analysis-server"
  reset-workflow:
    type: mcp-tool
    group: ["admin"]
    state: "undefined"
    available_in_states: ["analysis", "results"]
"#;

fn summarize(findings: &[LintFinding]) -> Vec<(&str, &str)> {
    let told = findings
        .iter()
        .map(|it| (it.rule.as_str(), it.pointer.as_str()));
    told.collect()
}

#[test]
fn the_example_of_the_document() {
    assert_eq!(
        summarize(&found(EXAMPLE)),
        [
            ("no-principals", "/principals"),
            (
                "unreachable-state",
                "/tool/graph-update/available_in_states"
            ),
            (
                "unreachable-state",
                "/tool/knowledge-query/available_in_states"
            ),
            ("silent-reset", "/tool/text-completion/state"),
        ]
    );
    let granted = format!("{EXAMPLE}principals: {{eve: {{groups: ['*']}}}}\n");
    assert_eq!(
        summarize(&found(&granted)),
        [
            (
                "unreachable-state",
                "/tool/graph-update/available_in_states"
            ),
            (
                "unreachable-state",
                "/tool/knowledge-query/available_in_states"
            ),
            ("silent-reset", "/tool/text-completion/state"),
        ]
    );
}

#[test]
fn a_tidy_policy_gives_nothing() {
    let policy = "
tools:
  search: {group: docs/read}
  edit: {group: docs/write, required_permissions: [docs:edit]}
  open: {group: flow, available_in_states: [undefined], state: ticket}
  close: {group: flow, available_in_states: [ticket], state: undefined}
roles:
  reader: {groups: [docs/read]}
  writer: {roles: [reader], groups: [docs, flow], permissions: ['docs:*']}
principals:
  eve: {roles: [writer], deny: {tools: [close]}}
  bob: {roles: [reader, writer]}
  '*': {groups: []}
";
    assert_eq!(found(policy), []);
}

/// Ten thousand of each, all different: a quadratic algorithm would not finish in time.
#[test]
fn large_policies_take_linear_time() {
    let mut policy = Policy::default();
    for number in 0..10_000 {
        let mut tool = ToolPolicy::new(&format!("tool-{number}"));
        tool.groups = ["shared".to_owned(), format!("area/g{number}")]
            .map(GroupName::new)
            .into();
        tool.permissions = vec![Permission::parse(&format!("db:p{number}")).unwrap()];
        tool.next_state = Some(StateName::new(format!("s{}", number + 1)));
        tool.states = StateSet::Only(BTreeSet::from([StateName::new(format!("s{number}"))]));
        policy.tools.push(tool);
        let mut principal = PrincipalPolicy::default();
        principal.grants.pointer = Pointer::of(["principals", &format!("p{number}")]);
        let groups = ["shared".to_owned(), format!("misspelled{number}")];
        principal.grants.groups = Some(groups.map(GroupName::new).into());
        let pattern = format!("db:p{}", number + 1);
        principal.grants.permissions = vec![PermissionPattern::parse(&pattern).unwrap()];
        principal.grants.deny.groups = vec![GroupName::new(format!("area/g{number}"))];
        policy.principals.insert(format!("p{number}"), principal);
    }
    let findings = lint(&policy);
    let of = |rule| findings.iter().filter(|it| it.rule == rule).count();
    assert_eq!(of(LintRule::UnheldPermission), 1);
    assert_eq!(of(LintRule::UnreachableTool), 10_001);
    assert_eq!(of(LintRule::UnusedGroup), 10_000);
}
