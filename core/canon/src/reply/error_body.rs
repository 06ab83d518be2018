//! Errors in the body of a response with a success status.

use serde_json::Value;
use toolwarden_model::json::Object;
use toolwarden_model::reply::{NotMeasured, TrialFailure};

use super::body::{excerpt, not_measured};

/// Refuses a document that reports an error, for every wire API.
pub(super) fn reject_error_body(document: &Value) -> Result<(), NotMeasured> {
    match document {
        Value::Object(members) => check_object(members),
        Value::Array(items) => match items.first() {
            Some(Value::Object(members)) => check_object(members),
            _ => Ok(()),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn check_object(members: &Object) -> Result<(), NotMeasured> {
    if let Some(error) = members.get("error").filter(|it| is_error_value(it)) {
        return Err(error_body(error));
    }
    let is_error = members.get("type").and_then(Value::as_str) == Some("error");
    if is_error || members.get("success") == Some(&Value::Bool(false)) {
        return Err(error_body(&Value::Object(members.clone())));
    }
    // MiniMax reports its own status beside the choices.
    if let Some(status) = members
        .get("base_resp")
        .and_then(|it| it.get("status_code"))
        && !matches!(status.to_string().as_str(), "0" | "null" | "\"0\"")
    {
        let message = members.get("base_resp").and_then(|it| it.get("status_msg"));
        let message = message.and_then(Value::as_str).unwrap_or_default();
        let detail = format!(
            "base_resp.status_code is {status}: {}",
            excerpt(message.as_bytes())
        );
        return Err(not_measured(TrialFailure::ErrorBody, detail));
    }
    Ok(())
}

/// The text of an error, in one line.
pub(super) fn error_body(error: &Value) -> NotMeasured {
    let text = |key: &str| {
        let value = error.get(key)?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    };
    let message = text("message").or_else(|| error.as_str().map(str::to_owned));
    let kind = text("type").or_else(|| text("status"));
    let code = text("code");
    let named: Vec<String> = [kind, code, message].into_iter().flatten().collect();
    let detail = if named.is_empty() {
        excerpt(error.to_string().as_bytes())
    } else {
        excerpt(named.join(": ").as_bytes())
    };
    not_measured(TrialFailure::ErrorBody, detail)
}

/// Refuses a document without the member that holds the reply.
pub(super) fn wrong_envelope(document: &Value, expected: &str) -> NotMeasured {
    let Value::Object(members) = document else {
        let found = toolwarden_model::json::type_name(document);
        return not_measured(
            TrialFailure::WrongEnvelope,
            format!("the body is {found}, expected an object with `{expected}`"),
        );
    };
    // DashScope's own errors have no member `error`.
    if members.contains_key("code") && members.contains_key("message") {
        return error_body(document);
    }
    let keys: Vec<&str> = members.keys().map(String::as_str).collect();
    let keys = excerpt(keys.join(", ").as_bytes());
    not_measured(
        TrialFailure::WrongEnvelope,
        format!("there is no `{expected}`; the members are: {keys}"),
    )
}

fn is_error_value(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}
