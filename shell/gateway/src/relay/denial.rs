//! How refusals and failures are told to agents.

use serde_json::{Value, json};
use toolwarden_guard::Denial;
use toolwarden_mcp::RpcError;
use toolwarden_warden::settings::DenialForm;

use super::Reply;
use crate::upstream::UpstreamError;

/// The code of refusals, of those the protocol leaves to implementations.
const REFUSED: i64 = -32010;
/// The code of servers that cannot be asked.
const UNAVAILABLE: i64 = -32011;

/// Where a refusal stands in the `_meta` of a tool error.
const DENIAL_KEY: &str = "toolwarden/denial";

/// Tells an agent that a call is refused, why, and how to go on.
pub(super) fn denied(denial: &Denial, form: DenialForm) -> Reply {
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
    let text = format!("{} {advice}", sentence(&denial.reason));
    told(text.trim_end(), REFUSED, data, form)
}

/// Tells an agent that the use of anything but a tool is refused. There is no other form for it than an
/// error of the protocol.
pub(super) fn denied_feature(denial: &Denial) -> Reply {
    let advice = denial.advice_besides_tools();
    let data = json!({
        "code": denial.code.as_str(),
        "reason": denial.reason,
        "advice": advice,
        "retryAfter": denial.retry_after.map(seconds),
    });
    let text = format!("{} {advice}", sentence(&denial.reason));
    told(text.trim_end(), REFUSED, data, DenialForm::RpcError)
}

/// Tells an agent that a server did not answer.
pub(super) fn failed(error: &UpstreamError, form: DenialForm) -> Reply {
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
    let text = format!("{} {advice}", sentence(&error.to_string()));
    told(&text, UNAVAILABLE, data, form)
}

/// The error of a request that the gateway could not finish before its end.
pub(crate) fn shutting_down() -> RpcError {
    RpcError {
        code: UNAVAILABLE,
        message: "the gateway is shutting down; send the request again when it is back".to_owned(),
        data: serde_json::value::to_raw_value(&json!({"code": "shutting_down"})).ok(),
    }
}

/// An error of a server that could not be asked, for what is no tool.
pub(super) fn unavailable(error: &UpstreamError) -> Reply {
    failed(error, DenialForm::RpcError)
}

/// Tells an agent of something else that keeps a call from going on.
pub(super) fn hindered(text: &str, code: &str, form: DenialForm) -> Reply {
    told(text, UNAVAILABLE, json!({"code": code}), form)
}

/// A result of a tool that says it failed.
fn tool_error(text: &str, data: &Value) -> Reply {
    let mut data = data.clone();
    if let Value::Object(members) = &mut data {
        members.retain(|_, value| !value.is_null());
    }
    let result = json!({
        "content": [{"type": "text", "text": text}],
        "isError": true,
        "_meta": {DENIAL_KEY: data},
    });
    Reply::Result(result.to_string())
}

fn told(text: &str, code: i64, mut data: Value, form: DenialForm) -> Reply {
    match form {
        DenialForm::ToolError => tool_error(text, &data),
        DenialForm::RpcError => {
            if let Value::Object(members) = &mut data {
                members.retain(|_, value| !value.is_null());
            }
            Reply::Error(RpcError {
                code,
                message: text.to_owned(),
                data: serde_json::value::to_raw_value(&data).ok(),
            })
        }
    }
}

fn sentence(text: &str) -> String {
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
