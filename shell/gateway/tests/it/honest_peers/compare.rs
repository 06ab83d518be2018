//! Two documents of observations, and what may differ between them.

use serde_json::{Map, Value};

/// Steps of the plan whose answers may differ, by their member `differs`.
const DIFFERENCES: [(&str, &str); 3] = [
    (
        "invalid_input",
        "the gateway checks arguments against the input schema and refuses the call itself",
    ),
    (
        "unknown_tool",
        "the gateway refuses a call of a tool that no server lists",
    ),
    (
        "unlisted_resource",
        "an address that no server lists is asked of none; the gateway answers with the code of the era",
    ),
];

/// Members that results have in one era only.
const OF_ONE_ERA: [&str; 4] = ["cacheScope", "execution", "resultType", "ttlMs"];
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The lists of a connection, and the member that the gateway puts its prefix before.
const LISTS: [(&str, Option<&str>); 4] = [
    ("tools", Some("name")),
    ("prompts", Some("name")),
    ("resources", None),
    ("resourceTemplates", None),
];

/// A value without members that only name the era.
fn without_era(value: &Value) -> Value {
    match value {
        Value::Array(all) => all.iter().map(without_era).collect(),
        Value::Object(members) => {
            let kept = members.iter();
            let kept = kept.filter(|(key, _)| !OF_ONE_ERA.contains(&key.as_str()));
            let mut kept: Map<String, Value> = kept
                .map(|(key, value)| (key.clone(), without_era(value)))
                .collect();
            if let Some(Value::Object(meta)) = kept.get_mut("_meta") {
                meta.remove(SERVER_INFO);
                if meta.is_empty() {
                    kept.remove("_meta");
                }
            }
            Value::Object(kept)
        }
        other => other.clone(),
    }
}

/// What differs between what was seen of servers directly, one connection each, and what was seen through
/// the gateway, all on one connection.
pub(super) fn differences(names: &[&str], direct: &[Value], through: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (list, prefixed) in LISTS {
        let mut expected = Vec::new();
        for (name, connection) in names.iter().zip(direct) {
            for entry in connection["lists"][list].as_array().unwrap() {
                let mut entry = without_era(entry);
                if let Some(member) = prefixed {
                    let own = entry[member].as_str().unwrap();
                    entry[member] = format!("{name}__{own}").into();
                }
                expected.push(entry);
            }
        }
        let seen = through["lists"][list].as_array().unwrap();
        let seen: Vec<Value> = seen.iter().map(without_era).collect();
        found.extend(list_differences(list, &expected, &seen));
    }
    for (name, connection) in names.iter().zip(direct) {
        let (direct, through) = (&connection["servers"][name], &through["servers"][name]);
        let direct = direct.as_array().unwrap();
        let through = through.as_array().unwrap();
        assert_eq!(direct.len(), through.len(), "{name}");
        assert!(!direct.is_empty(), "{name}");
        for (direct, through) in direct.iter().zip(through) {
            let fault = step_difference(&without_era(direct), &without_era(through));
            found.extend(fault.map(|it| format!("{name} {}: {it}", direct["step"])));
        }
    }
    found
}

fn list_differences(list: &str, expected: &[Value], seen: &[Value]) -> Vec<String> {
    let of = |entries: &[Value]| -> Vec<String> {
        let names = entries.iter();
        let names = names.map(|it| it["name"].as_str().unwrap_or_default().to_owned());
        names.collect()
    };
    if of(expected) != of(seen) {
        let (expected, seen) = (of(expected), of(seen));
        return vec![format!("{list}: {expected:?} directly, {seen:?} through")];
    }
    let pairs = expected.iter().zip(seen);
    let differing = pairs.filter(|(expected, seen)| expected != seen);
    differing
        .map(|(expected, seen)| format!("{list}: {expected} directly, {seen} through"))
        .collect()
}

/// How the same step came to something else.
fn step_difference(direct: &Value, through: &Value) -> Option<String> {
    let known = direct["step"]["differs"].as_str();
    let shown = || format!("{} directly, {} through", short(direct), short(through));
    let Some(known) = known else {
        let is_answered = direct.get("result").or(direct.get("error")).is_some();
        assert!(
            is_answered,
            "a step that never works shows nothing: {direct}"
        );
        return (direct != through).then(shown);
    };
    let why = DIFFERENCES.iter().find(|(name, _)| *name == known);
    let (_, why) = why.unwrap_or_else(|| panic!("{known}"));
    if direct == through {
        return Some(format!("no longer differs because {why}"));
    }
    let fits = match known {
        // The same error in other words.
        "unlisted_resource" => {
            let code = through["error"]["code"].as_i64();
            direct["error"].is_object() && matches!(code, Some(-32002 | -32602))
        }
        // A result that a model can read, where the server answers with one as well.
        code => {
            let result = &through["result"];
            result["isError"] == true && result["_meta"]["toolwarden/denial"]["code"] == code
        }
    };
    (!fits).then(|| format!("differs otherwise than because {why}: {}", shown()))
}

/// Large results need not be shown whole.
fn short(observed: &Value) -> String {
    let mut observed = observed.clone();
    if let Value::Object(members) = &mut observed {
        members.remove("step");
    }
    observed.to_string().chars().take(1_500).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(text: &str) -> Value {
        json!({"lists": {"tools": [{"name": "t"}], "prompts": [], "resources": [], "resourceTemplates": []},
            "servers": {"s": [{"step": {"do": "call"}, "result": {"text": text}}]}})
    }

    fn behind(text: &str, tool: &str) -> Value {
        let mut behind = seen(text);
        behind["lists"]["tools"][0]["name"] = tool.into();
        behind["servers"]["s"][0]["result"]["resultType"] = "complete".into();
        behind
    }

    #[test]
    fn only_the_prefix_and_the_era_may_differ() {
        let direct = [seen("a")];
        let none: [&str; 0] = [];
        assert_eq!(differences(&["s"], &direct, &behind("a", "s__t")), none);
        assert_eq!(differences(&["s"], &direct, &behind("b", "s__t")).len(), 1);
        assert_eq!(differences(&["s"], &direct, &behind("a", "t")).len(), 1);
    }

    #[test]
    fn a_known_difference_must_be_there_and_be_readable() {
        let step = json!({"do": "call", "differs": "unknown_tool"});
        let direct = json!({"step": step, "error": {"code": -32602}});
        let denial =
            json!({"isError": true, "_meta": {"toolwarden/denial": {"code": "unknown_tool"}}});
        let through = json!({"step": step, "result": denial});
        assert_eq!(step_difference(&direct, &through), None);
        assert!(step_difference(&direct, &direct).is_some());
        let raised = json!({"step": step, "raised": "ValidationError"});
        assert!(step_difference(&direct, &raised).is_some());
    }
}
