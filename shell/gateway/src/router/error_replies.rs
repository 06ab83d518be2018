//! How denials and failures are reported to agents.

use serde_json::{Value, json};
use toolwarden_guard::Denial;
use toolwarden_mcp::RpcError;
use toolwarden_settings::DenialForm;

use super::RpcReply;
use crate::upstream::UpstreamError;

/// The error code of denials, from the range that the protocol leaves to implementations.
const REFUSED_CODE: i64 = -32010;
/// The error code of servers that cannot be reached.
const UNAVAILABLE_CODE: i64 = -32011;

/// The key of a denial in the `_meta` of a tool error.
const DENIAL_KEY: &str = "toolwarden/denial";

/// The reply for a denied call: the reason and the remedy.
pub(super) fn denied_reply(denial: &Denial, form: DenialForm) -> RpcReply {
    let advice = denial.advice();
    let faults = denial.faults.iter().map(|it| it.pointer.as_str());
    let pointers: Vec<&str> = faults.collect();
    let data = json!({
        "code": denial.code.as_str(),
        "reason": denial.reason,
        "advice": advice,
        "pointers": (!pointers.is_empty()).then_some(pointers),
        "retryAfter": denial.retry_after.map(seconds),
    });
    let text = format!("{} {advice}", to_sentence(&denial.reason));
    error_reply(text.trim_end(), REFUSED_CODE, data, form)
}

/// The reply for a denied feature other than a tool. It is always a protocol error, because there is no other
/// form.
pub(super) fn denied_feature_reply(denial: &Denial) -> RpcReply {
    let advice = denial.feature_advice();
    let data = json!({
        "code": denial.code.as_str(),
        "reason": denial.reason,
        "advice": advice,
        "retryAfter": denial.retry_after.map(seconds),
    });
    let text = format!("{} {advice}", to_sentence(&denial.reason));
    error_reply(text.trim_end(), REFUSED_CODE, data, DenialForm::RpcError)
}

/// The reply for a server that gave no answer.
pub(super) fn upstream_failure_reply(error: &UpstreamError, form: DenialForm) -> RpcReply {
    let retry_after = error.retry_after();
    let data = json!({
        "code": error.code(),
        "reason": error.to_string(),
        "retryAfter": retry_after.map(seconds),
    });
    let advice = match retry_after {
        Some(wait) => format!("Try again in {} s.", seconds(wait)),
        None => "Go on without this tool, or tell the person you work for.".to_owned(),
    };
    let text = format!("{} {advice}", to_sentence(&error.to_string()));
    error_reply(&text, UNAVAILABLE_CODE, data, form)
}

/// The error for a request that the gateway could not finish before it shut down.
pub(crate) fn shutdown_error() -> RpcError {
    RpcError {
        code: UNAVAILABLE_CODE,
        message: "the gateway is shutting down; send the request again when it is back".to_owned(),
        data: serde_json::value::to_raw_value(&json!({"code": "shutting_down"})).ok(),
    }
}

/// The reply for a server that could not be reached, for requests other than tool calls.
pub(super) fn unavailable_reply(error: &UpstreamError) -> RpcReply {
    upstream_failure_reply(error, DenialForm::RpcError)
}

/// The reply for any other obstacle to a call.
pub(super) fn call_error_reply(text: &str, code: &str, form: DenialForm) -> RpcReply {
    error_reply(text, UNAVAILABLE_CODE, json!({"code": code}), form)
}

/// A tool result that reports a failure.
fn tool_error_reply(text: &str, data: &Value) -> RpcReply {
    let mut data = data.clone();
    if let Value::Object(members) = &mut data {
        members.retain(|_, value| !value.is_null());
    }
    let result = json!({
        "content": [{"type": "text", "text": text}],
        "isError": true,
        "_meta": {DENIAL_KEY: data},
    });
    RpcReply::Result(result.to_string())
}

fn error_reply(text: &str, code: i64, mut data: Value, form: DenialForm) -> RpcReply {
    match form {
        DenialForm::ToolError => tool_error_reply(text, &data),
        DenialForm::RpcError => {
            if let Value::Object(members) = &mut data {
                members.retain(|_, value| !value.is_null());
            }
            RpcReply::Error(RpcError {
                code,
                message: text.to_owned(),
                data: serde_json::value::to_raw_value(&data).ok(),
            })
        }
    }
}

fn to_sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|it| it.to_uppercase().to_string());
    let text = format!("{}{}", first.unwrap_or_default(), letters.as_str());
    if text.ends_with(['.', '!', '?']) {
        text
    } else {
        format!("{text}.")
    }
}

fn seconds(wait: std::time::Duration) -> f64 {
    (wait.as_secs_f64() * 1_000.0).ceil() / 1_000.0
}
