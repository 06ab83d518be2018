//! Refuses parameters with duplicate or ambiguous members.

use std::collections::BTreeSet;

use serde_json::value::RawValue;
use toolwarden_live_guard::{CallParams, CallParamsError};
use toolwarden_mcp::RawObject;
use toolwarden_mcp::error_codes::INVALID_PARAMS;

use super::RpcReply;
use crate::blocking::run_unblocked;

/// Members by which a server knows what is meant.
const KNOWN_MEMBERS: [&str; 16] = [
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
const MAX_META_DEPTH: usize = 128;

/// The members of parameters. Those that are no object are refused, and those that others would read
/// differently: they would do something else than what was decided. Large ones are read without
/// blocking other work.
pub(super) fn parse_params(params: &RawValue) -> Result<RawObject<'_>, RpcReply> {
    run_unblocked(params.get().len(), || {
        let members = RawObject::parse(params);
        let members = members.map_err(|error| {
            RpcReply::error(INVALID_PARAMS, format!("params is not an object: {error}"))
        })?;
        let meta = members.received_object("_meta");
        check(&members, meta.as_ref())?;
        Ok(members)
    })
}

/// As [`parse_params`], for the parameters of a call.
pub(super) fn parse_call(params: &RawValue) -> Result<CallParams<'_>, RpcReply> {
    run_unblocked(params.get().len(), || {
        CallParams::read_checked(params, check)
    })
}

impl From<CallParamsError> for RpcReply {
    fn from(error: CallParamsError) -> Self {
        Self::error(INVALID_PARAMS, error.to_string())
    }
}

fn check(members: &RawObject<'_>, meta: Option<&RawObject<'_>>) -> Result<(), RpcReply> {
    let invalid = |text: String| RpcReply::error(INVALID_PARAMS, text);
    if let Some(twice) = members.duplicate_key() {
        return Err(invalid(format!("params has `{twice}` twice")));
    }
    if let Some(alike) = ambiguous_member(members) {
        let text = format!("params has `{alike}`, which some servers take for another member");
        return Err(invalid(text));
    }
    if let Some(text) = members.get("_meta")
        && let Err(why) = check_meta(text, meta)
    {
        return Err(invalid(format!("params._meta {why}")));
    }
    Ok(())
}

/// Checks that every private key of `_meta` can be found, so that none is forwarded.
fn check_meta(text: &str, meta: Option<&RawObject<'_>>) -> Result<(), String> {
    if text == "null" {
        return Ok(());
    }
    let meta = meta.ok_or("is not an object")?;
    if let Some(twice) = meta.duplicate_key() {
        return Err(format!("has `{twice}` twice"));
    }
    if exceeds_depth(text) {
        return Err(format!("goes deeper than {MAX_META_DEPTH}"));
    }
    Ok(())
}

fn exceeds_depth(text: &str) -> bool {
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
        if depth > MAX_META_DEPTH {
            return true;
        }
    }
    false
}

/// A member that is not one that is known, and is taken for it or for another one by those who do not
/// mind the case of letters or stop at a zero.
fn ambiguous_member(members: &RawObject<'_>) -> Option<String> {
    // Ordered, not hashed: a caller who chooses the keys cannot make it slow.
    let mut others: BTreeSet<String> = BTreeSet::new();
    for (key, _) in members.iter() {
        if KNOWN_MEMBERS.contains(&key) {
            continue;
        }
        let folded = fold_key(key);
        if KNOWN_MEMBERS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(&folded))
            || !others.insert(folded)
        {
            return Some(key.escape_debug().to_string());
        }
    }
    None
}

fn fold_key(key: &str) -> String {
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
        match parse_params(&raw) {
            Ok(_) => None,
            Err(RpcReply::Error(error)) => Some(error.message),
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

    /// A look-alike of a member that is missing explains more than that the member is missing.
    #[test]
    fn a_look_alike_is_reported_before_a_missing_name() {
        let message = |text: &str| {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            match parse_call(&raw) {
                Err(RpcReply::Error(error)) => error.message,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            message(r#"{"Name":"b"}"#),
            "params has `Name`, which some servers take for another member"
        );
        assert_eq!(message(r#"{"_meta":7}"#), "params._meta is not an object");
        assert_eq!(message("{}"), "params.name is not a string");
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
