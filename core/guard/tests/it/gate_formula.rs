//! Compares the compiled guard with an interpreter of the formula that looks everything up by name.

use std::collections::BTreeSet;
use toolwarden_model::StateName;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolwarden_guard::{Guard, ReasonCode, Request, RequestedGroups};

use super::{calm, guard};

/// A small set of names, so that they often coincide.
fn group() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "a/x", "a/x/y", "b/x", "default"]).prop_map(str::to_owned)
}

fn granted_group() -> impl Strategy<Value = String> {
    prop_oneof![5 => group(), 1 => Just("*".to_owned())]
}

fn state() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["undefined", "s", "t"]).prop_map(str::to_owned)
}

fn permission() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["db:read", "db:write", "db:read:rows", "pay"]).prop_map(str::to_owned)
}

fn pattern() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => permission(),
        1 => prop::sample::select(vec!["*", "db:*", "*:read", "db:*:rows"]).prop_map(str::to_owned),
    ]
}

fn tool() -> impl Strategy<Value = Value> {
    (
        prop::option::of(prop::collection::vec(group(), 0..3)),
        prop::option::of(prop::collection::vec(
            prop_oneof![4 => state(), 1 => Just("*".to_owned())],
            0..3,
        )),
        prop::collection::vec(permission(), 0..3),
    )
        .prop_map(|(groups, states, permissions)| {
            let mut tool = json!({"required_permissions": permissions});
            if let Some(groups) = groups {
                tool["group"] = groups.into();
            }
            if let Some(states) = states {
                tool["available_in_states"] = states.into();
            }
            tool
        })
}

fn grants(roles: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let some_roles = prop::sample::subsequence(roles, 0..=roles.len());
    (
        prop::option::of(prop::collection::vec(granted_group(), 0..3)),
        prop::collection::vec(pattern(), 0..3),
        prop::collection::vec(prop::sample::select(vec!["default", "a", "a/x"]), 0..2),
        prop::collection::vec(pattern(), 0..2),
        prop::collection::vec(prop::sample::select(vec!["t0", "t1"]), 0..2),
        some_roles,
    )
        .prop_map(
            |(groups, permissions, no_groups, no_permissions, no_tools, roles)| {
                let mut grants = json!({
                    "permissions": permissions,
                    "roles": roles,
                    "deny": {"groups": no_groups, "permissions": no_permissions, "tools": no_tools},
                });
                if let Some(groups) = groups {
                    grants["groups"] = groups.into();
                }
                grants
            },
        )
}

fn policy() -> impl Strategy<Value = Value> {
    (
        prop::collection::vec(tool(), 2..5),
        grants(&["r", "s"]),
        grants(&["s"]),
        grants(&[]),
        grants(&[]),
        prop::sample::subsequence(vec!["t0", "t1"], 0..=1),
        any::<bool>(),
    )
        .prop_map(|(tools, principal, r, s, anyone, quarantine, narrow)| {
            let tools: serde_json::Map<String, Value> = tools
                .into_iter()
                .enumerate()
                .map(|(at, tool)| (format!("t{at}"), tool))
                .collect();
            json!({
                "tools": tools,
                // Denied groups must exist.
                "groups": {"a/x/y": {}, "b/x": {}},
                "roles": {"r": r, "s": s},
                "principals": {"p": principal, "*": anyone},
                "quarantine": quarantine,
                "mode": if narrow { "narrow" } else { "reject" },
            })
        })
}

fn texts(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| it.as_str().unwrap())
        .collect()
}

/// All grants of a principal, directly from the policy.
#[derive(Default)]
struct PrincipalGrants<'p> {
    groups: Option<Vec<&'p str>>,
    permissions: Vec<&'p str>,
    no_groups: Vec<&'p str>,
    no_permissions: Vec<&'p str>,
    no_tools: Vec<&'p str>,
}

impl<'p> PrincipalGrants<'p> {
    fn of(policy: &'p Value, principal: &str) -> Self {
        let principals = &policy["principals"];
        let mut given = Self::default();
        given.take(
            policy,
            principals.get(principal).unwrap_or(&principals["*"]),
        );
        given
    }

    fn take(&mut self, policy: &'p Value, grants: &'p Value) {
        if let Some(groups) = grants.get("groups") {
            self.groups.get_or_insert_default().extend(texts(groups));
        }
        self.permissions.extend(texts(&grants["permissions"]));
        self.no_groups.extend(texts(&grants["deny"]["groups"]));
        self.no_permissions
            .extend(texts(&grants["deny"]["permissions"]));
        self.no_tools.extend(texts(&grants["deny"]["tools"]));
        for role in texts(&grants["roles"]) {
            self.take(policy, &policy["roles"][role]);
        }
    }

    fn may_request(&self, group: &str) -> bool {
        let granted = self.groups.clone().unwrap_or(vec!["default"]);
        granted.iter().any(|it| *it == "*" || within(group, it))
            && !self.no_groups.iter().any(|it| within(group, it))
    }

    fn holds(&self, permission: &str) -> bool {
        let any = |patterns: &[&str]| patterns.iter().any(|it| covers(it, permission));
        any(&self.permissions) && !any(&self.no_permissions)
    }
}

fn within(group: &str, around: &str) -> bool {
    group == around || group.starts_with(&format!("{around}/"))
}

/// `*` at the end matches the rest, elsewhere one part, like a regular expression.
fn covers(pattern: &str, permission: &str) -> bool {
    let parts: Vec<&str> = pattern.split(':').collect();
    let rights: Vec<&str> = permission.split(':').collect();
    let fits = |(pattern, right): (&&str, &&str)| *pattern == "*" || pattern == right;
    if parts.last() == Some(&"*") {
        rights.len() >= parts.len() && parts.iter().zip(&rights).all(fits)
    } else {
        rights.len() == parts.len() && parts.iter().zip(&rights).all(fits)
    }
}

/// The result of the formula for one tool.
fn expected(
    policy: &Value,
    principal: &str,
    asked: Option<&[String]>,
    state: &str,
    name: &str,
) -> ReasonCode {
    let given = PrincipalGrants::of(policy, principal);
    let Some(tool) = policy["tools"].get(name) else {
        return ReasonCode::UnknownTool;
    };
    if texts(&policy["quarantine"]).contains(&name) {
        return ReasonCode::Quarantined;
    }
    let asked: Vec<&str> = asked.map_or(vec!["default"], |it| {
        it.iter().map(String::as_str).collect()
    });
    let every_is_granted = given.groups.iter().flatten().any(|it| *it == "*");
    let narrow = policy["mode"] == "narrow";
    let mut reached: Vec<&str> = Vec::new();
    let mut everything = false;
    for group in asked {
        if group == "*" && every_is_granted {
            everything = true;
        } else if group == "*" && narrow {
            let granted = given.groups.clone().unwrap_or(vec!["default"]);
            reached.extend(granted.iter().filter(|it| **it != "*"));
        } else if group != "*" && given.may_request(group) {
            reached.push(group);
        } else if !narrow {
            return ReasonCode::GroupsNotGranted;
        }
    }
    let own = tool.get("group").map_or(vec!["default"], texts);
    let refused = given.no_tools.contains(&name)
        || own
            .iter()
            .any(|group| given.no_groups.iter().any(|it| within(group, it)));
    if refused {
        return ReasonCode::DeniedByRule;
    }
    let visible = everything
        || own
            .iter()
            .any(|group| reached.iter().any(|it| within(group, it)));
    if !visible {
        return ReasonCode::FilteredByGroup;
    }
    if let Some(states) = tool.get("available_in_states").map(texts)
        && !states.contains(&"*")
        && !states.contains(&state)
    {
        return ReasonCode::FilteredByState;
    }
    let required = texts(&tool["required_permissions"]);
    if !required.iter().all(|it| given.holds(it)) {
        return ReasonCode::MissingPermissions;
    }
    ReasonCode::Allowed
}

fn decided(
    guard: &Guard,
    principal: &str,
    asked: &RequestedGroups,
    state: &str,
    tool: &str,
) -> ReasonCode {
    let condition_inputs = calm();
    let request = Request {
        principal,
        groups: asked,
        state: &StateName::new(state),
        condition_inputs: &condition_inputs,
        variant: None,
    };
    match guard.admit(&request, tool) {
        Ok(_) => ReasonCode::Allowed,
        Err(denial) => denial.code,
    }
}

fn visible(
    guard: &Guard,
    principal: &str,
    asked: &RequestedGroups,
    state: &str,
) -> BTreeSet<String> {
    let condition_inputs = calm();
    let found = guard.available_tools(&Request {
        principal,
        groups: asked,
        state: &StateName::new(state),
        condition_inputs: &condition_inputs,
        variant: None,
    });
    let found = found.map_or(Vec::new(), |it| it.available);
    found.iter().map(|tool| tool.to_string()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_guard_says_what_the_formula_says(
        policy in policy(),
        asked in prop::option::of(prop::collection::vec(
            prop_oneof![4 => granted_group(), 1 => Just("nobody's".to_owned())], 0..3)),
        state in state(),
    ) {
        let guard = guard(&policy.to_string());
        let groups = asked.as_ref().map_or(RequestedGroups::Default, |it| it.iter().map(String::as_str).collect());
        for principal in ["p", "stranger"] {
            let mut offered = BTreeSet::new();
            for tool in ["t0", "t1", "t2", "t3", "t4"] {
                let code = expected(&policy, principal, asked.as_deref(), &state, tool);
                prop_assert_eq!(decided(&guard, principal, &groups, &state, tool), code, "{} {}", principal, tool);
                if code == ReasonCode::Allowed {
                    offered.insert(tool.to_owned());
                }
            }
            // A tool is listed if and only if it may be called.
            prop_assert_eq!(visible(&guard, principal, &groups, &state), offered);
        }
    }

    /// Regardless of other changes in a policy, a principal never sees a tool in a group that it is not
    /// granted, or that requires a permission it does not hold.
    #[test]
    fn nothing_shows_a_tool_to_a_principal_without_the_right_to_it(
        policy in policy(),
        asked in prop::collection::vec(granted_group(), 0..3),
        state in state(),
        others in grants(&["r", "s"]),
        by_group in any::<bool>(),
    ) {
        let mut policy = policy;
        let mine = &mut policy["principals"]["p"];
        mine["roles"] = json!([]);
        if by_group {
            // The secret's group is granted to every principal except p.
            mine["groups"] = json!(["a", "b", "default"]);
            policy["tools"]["t0"]["group"] = json!(["secret"]);
        } else {
            mine["permissions"] = json!(["db:read", "pay:*"]);
            policy["tools"]["t0"]["required_permissions"] = json!(["secret:use"]);
        }
        policy["principals"]["q"] = others;
        for holder in ["q", "*"] {
            policy["principals"][holder]["groups"] = json!(["*", "secret"]);
            policy["principals"][holder]["permissions"] = json!(["*", "secret:use"]);
        }
        let guard = guard(&policy.to_string());
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let greedy: Vec<&str> = asked.iter().copied().chain(["secret"]).collect();
        for groups in [
            asked.into_iter().collect(),
            greedy.into_iter().collect(),
            RequestedGroups::Default,
            ["*"].into_iter().collect(),
        ] {
            prop_assert_ne!(decided(&guard, "p", &groups, &state, "t0"), ReasonCode::Allowed);
            prop_assert!(!visible(&guard, "p", &groups, &state).contains("t0"));
        }
    }
}
