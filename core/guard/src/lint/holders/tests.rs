use proptest::prelude::*;
use proptest::sample::subsequence;
use toolwarden_model::GroupName;

use super::*;
use crate::lint::tests::read;
use crate::policy::DEFAULT_GROUP;

fn list(words: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    let quoted = |words: Vec<&str>| {
        let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        format!("[{}]", words.join(", "))
    };
    subsequence(words, 0..=most.min(words.len())).prop_map(quoted)
}

fn grants(roles: &'static [&'static str]) -> impl Strategy<Value = String> {
    let groups = prop_oneof![
        Just(String::new()),
        list(&["default", "x", "x/y", "z", "*"], 2).prop_map(|it| format!("groups: {it}, ")),
    ];
    let rights = || list(&["a:r", "a:w", "a:*", "*:r", "*"], 2);
    let denied = (
        list(&["x", "x/y", "z", "*"], 1),
        rights(),
        list(&["t0", "t1"], 1),
    );
    (list(roles, 2), groups, rights(), denied).prop_map(|(roles, groups, rights, denied)| {
        let (denied, refused, tools) = denied;
        format!(
            "{{roles: {roles}, {groups}permissions: {rights}, \
             deny: {{groups: {denied}, permissions: {refused}, tools: {tools}}}}}"
        )
    })
}

fn tool() -> impl Strategy<Value = String> {
    let groups = list(&["default", "x", "x/y", "z", "*"], 2);
    let rights = list(&["a:r", "a:w"], 2);
    (groups, rights)
        .prop_map(|(groups, rights)| format!("{{group: {groups}, required_permissions: {rights}}}"))
}

proptest! {
    #[test]
    fn the_index_finds_who_can_call_a_tool(
        tools in [tool(), tool(), tool()],
        roles in [grants(&[]), grants(&["r0"])],
        principals in [grants(&["r0", "r1"]), grants(&["r0", "r1"]), grants(&["r1"])],
    ) {
        let mut text = "groups: {x/y: null, z: null}\ntools:\n".to_owned();
        for (number, tool) in tools.iter().enumerate() {
            text.push_str(&format!("  t{number}: {tool}\n"));
        }
        text.push_str("roles:\n");
        for (number, role) in roles.iter().enumerate() {
            text.push_str(&format!("  r{number}: {role}\n"));
        }
        text.push_str("principals:\n");
        for (name, principal) in ["eve", "bob", "'*'"].iter().zip(&principals) {
            text.push_str(&format!("  {name}: {principal}\n"));
        }
        let policy = read(&text);
        let holders = Holders::of(&policy);
        let access = policy.tools.iter().map(|tool| holders.access(&holders.tool_query(tool)));
        let found: Vec<bool> = access.map(|it| it == ToolAccess::Callable).collect();
        prop_assert_eq!(found, asked_one_by_one(&policy), "{}", text);
    }
}

/// Whether a principal can call each tool, found by checking every principal for every tool.
fn asked_one_by_one(policy: &Policy) -> Vec<bool> {
    let holders: Vec<Vec<&Grants>> = principal_grants(policy)
        .map(|grants| {
            let roles = inherited_roles(policy, grants);
            roles
                .into_iter()
                .map(|(_, role)| role)
                .chain([grants])
                .collect()
        })
        .collect();
    let can = |sources: &[&Grants], tool: &ToolPolicy| {
        let around: Vec<&str> = tool
            .groups
            .iter()
            .flat_map(|it| group_and_parents(it.as_str()))
            .collect();
        let mut groups: Vec<&str> = Vec::new();
        for group in sources.iter().filter_map(|it| it.groups.as_ref()).flatten() {
            groups.push(group.as_str());
        }
        if sources.iter().all(|it| it.groups.is_none()) {
            groups.push(DEFAULT_GROUP.as_str());
        }
        let names = |list: &[GroupName]| {
            list.iter()
                .any(|it| *it == EVERY || around.contains(&it.as_str()))
        };
        let denied = sources
            .iter()
            .any(|it| names(&it.deny.groups) || it.deny.tools.contains(&tool.name));
        let granted = groups.iter().any(|it| *it == EVERY || around.contains(it));
        let holds = tool.permissions.iter().all(|right| {
            sources
                .iter()
                .any(|it| it.permissions.iter().any(|it| it.covers(right)))
                && !sources
                    .iter()
                    .any(|it| it.deny.permissions.iter().any(|it| it.covers(right)))
        });
        !denied && granted && holds
    };
    let tools = policy.tools.iter();
    tools
        .map(|tool| holders.iter().any(|sources| can(sources, tool)))
        .collect()
}
