//! Parameters that everybody reads the same way.

use std::collections::BTreeSet;

use serde_json::value::RawValue;
use toolwarden_mcp::Members;
use toolwarden_mcp::codes::INVALID_PARAMS;

use super::Reply;
use crate::blocking::run_unblocked;

/// Members by which a server knows what is meant.
const KNOWN: [&str; 16] = [
    "_meta",
    "argument",
    "arguments",
    "capabilities",
    "context",
    "cursor",
    "inputResponses",
    "level",
    "name",
    "notifications",
    "protocolVersion",
    "ref",
    "requestState",
    "task",
    "taskId",
    "uri",
];

/// How deep `_meta` may go: as deep as arguments may.
const DEEPEST: usize = 128;

/// The members of parameters. Those that are no object are refused, and those that others would read
/// differently: they would do something else than what was decided. Large ones are read without
/// blocking other work.
pub(super) fn readable(params: &RawValue) -> Result<Members<'_>, Reply> {
    run_unblocked(params.get().len(), || read(params))
}

fn read(params: &RawValue) -> Result<Members<'_>, Reply> {
    let invalid = |text: String| Reply::error(INVALID_PARAMS, text);
    let members = Members::of(params);
    let members = members.map_err(|error| invalid(format!("params is no object: {error}")))?;
    if let Some(twice) = members.twice() {
        return Err(invalid(format!("params has `{twice}` twice")));
    }
    if let Some(alike) = alike(&members) {
        let text = format!("params has `{alike}`, which some servers take for another member");
        return Err(invalid(text));
    }
    if let Some(meta) = members.get("_meta")
        && let Err(why) = check_meta(&members, meta)
    {
        return Err(invalid(format!("params._meta {why}")));
    }
    Ok(members)
}

/// Nothing of ours may go past whoever takes it out, for want of being found.
fn check_meta(members: &Members<'_>, text: &str) -> Result<(), String> {
    if text == "null" {
        return Ok(());
    }
    let meta = members.object("_meta").ok_or("is no object")?;
    if let Some(twice) = meta.twice() {
        return Err(format!("has `{twice}` twice"));
    }
    if is_deep(text) {
        return Err(format!("goes deeper than {DEEPEST}"));
    }
    Ok(())
}

fn is_deep(text: &str) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => depth += 1,
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return true;
        }
    }
    false
}

/// A member that is not one that is known, and is taken for it or for another one by those who do not
/// mind the case of letters or stop at a zero.
fn alike(members: &Members<'_>) -> Option<String> {
    // Ordered, not hashed: a caller who chooses the keys cannot make it slow.
    let mut others: BTreeSet<String> = BTreeSet::new();
    for (key, _) in members.iter() {
        if KNOWN.contains(&key) {
            continue;
        }
        let folded = folded(key);
        if KNOWN
            .iter()
            .any(|known| known.eq_ignore_ascii_case(&folded))
            || !others.insert(folded)
        {
            return Some(key.escape_debug().to_string());
        }
    }
    None
}

fn folded(key: &str) -> String {
    let letters = key.chars().filter(|letter| *letter != '\0');
    letters
        .map(|letter| match letter {
            'ſ' => 's',
            '\u{212a}' => 'k',
            letter => letter.to_ascii_lowercase(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> Option<String> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        match readable(&raw) {
            Ok(_) => None,
            Err(Reply::Error(error)) => Some(error.message),
            Err(_) => panic!("no error"),
        }
    }

    #[test]
    fn what_others_read_differently_is_refused() {
        for text in [
            r#"{"name":"a","name":"b"}"#,
            r#"{"name":"a","n\u0061me":"b"}"#,
            r#"{"name":"a","Name":"b"}"#,
            r#"{"Name":"b"}"#,
            r#"{"name":"a","argumentſ":{}}"#,
            r#"{"name":"a","name\u0000":"b"}"#,
            r#"{"taskid":"a"}"#,
            r#"{"x":1,"X":2}"#,
            r#"{"_meta":7}"#,
            r#"{"_meta":{"a":1,"a":2}}"#,
            r#"{"_meta":{"\ud800":1}}"#,
        ] {
            assert!(refusal(text).is_some(), "{text}");
        }
        let deep = |depth| {
            format!(
                r#"{{"_meta":{}1{}}}"#,
                "{\"a\":".repeat(depth),
                "}".repeat(depth)
            )
        };
        assert!(refusal(&deep(129)).unwrap().contains("deeper than 128"));
        assert_eq!(refusal(&deep(128)), None);
    }

    #[test]
    fn many_members_are_compared_in_little_time() {
        let members = |count: usize| {
            let members: Vec<String> = (0..count).map(|at| format!("\"Key{at}\":1")).collect();
            format!("{{{}}}", members.join(","))
        };
        // Compared pair by pair this would take hours.
        assert_eq!(refusal(&members(600_000)), None);
        let late = members(600_000).replace("\"Key599999\"", "\"kEY7\"");
        assert!(refusal(&late).unwrap().contains("`kEY7`"));
    }

    #[test]
    fn what_is_plain_passes() {
        for text in [
            r#"{"name":"a","arguments":{"Name":1,"name":2},"task":{"ttl":1},"x-Vendor":1}"#,
            r#"{"_meta":{"progressToken":"[{"},"taskId":"1"}"#,
            r#"{"_meta":null}"#,
        ] {
            assert_eq!(refusal(text), None, "{text}");
        }
    }
}
