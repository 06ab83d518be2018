//! Errors that come as a success.

use serde_json::Value;
use toolwarden_model::json::Object;
use toolwarden_model::reply::{Failure, NotMeasured};

use super::body::{excerpt, failed};

/// Refuses a document that tells of an error, on whatever wire.
pub(super) fn check(document: &Value) -> Result<(), NotMeasured> {
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
    if let Some(error) = members.get("error").filter(|it| says_something(it)) {
        return Err(error_body(error));
    }
    let is_error = members.get("type").and_then(Value::as_str) == Some("error");
    if is_error || members.get("success") == Some(&Value::Bool(false)) {
        return Err(error_body(&Value::Object(members.clone())));
    }
    // MiniMax tells its own status beside the choices.
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
        return Err(failed(Failure::ErrorBody, detail));
    }
    Ok(())
}

/// What an error says, in one line.
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
    failed(Failure::ErrorBody, detail)
}

/// Refuses a document without the member that a reply stands in.
pub(super) fn wrong_envelope(document: &Value, expected: &str) -> NotMeasured {
    let Value::Object(members) = document else {
        let found = toolwarden_model::json::type_name(document);
        return failed(
            Failure::WrongEnvelope,
            format!("the body is {found}, expected an object with `{expected}`"),
        );
    };
    // DashScope's own errors have no member `error`.
    if members.contains_key("code") && members.contains_key("message") {
        return error_body(document);
    }
    let keys: Vec<&str> = members.keys().map(String::as_str).collect();
    let keys = excerpt(keys.join(", ").as_bytes());
    failed(
        Failure::WrongEnvelope,
        format!("there is no `{expected}`; the members are: {keys}"),
    )
}

fn says_something(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}
