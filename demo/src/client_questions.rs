//! Tools that send a question to the client.

use serde_json::{Value, json};
use toolwarden_mcp::{Era, RawObject};

use super::messages::{DemoError, complete_result, input_required};
use super::orders::{error_result, text_result};
use super::request::value;

/// A question to the client.
#[derive(Debug)]
pub(super) struct ClientQuestion {
    pub(super) method: &'static str,
    pub(super) params: Value,
    /// The capability that the client needs.
    pub(super) capability: &'static str,
}

/// The key of the only question in an `input_required` result.
const KEY: &str = "question";

/// The tool's result for a reply.
pub(super) fn conclude(tool: &str, order: &str, reply: &Value) -> String {
    let text = |pointer: &str| reply.pointer(pointer).and_then(Value::as_str);
    match tool {
        "cancel_order" => match text("/action") {
            Some("accept") if reply.pointer("/content/confirm") == Some(&json!(true)) => {
                text_result(&format!("order {order} is cancelled"))
            }
            Some(action) => text_result(&format!("order {order} stays: {action}")),
            None => error_result("the reply has no action"),
        },
        "draft_reply" => match text("/content/text") {
            Some(letter) => text_result(letter),
            None => error_result("the reply has no text"),
        },
        _ => {
            let roots = reply.get("roots").and_then(Value::as_array);
            let uris = roots
                .into_iter()
                .flatten()
                .filter_map(|root| root.get("uri"));
            text_result(&Value::from_iter(uris.cloned()).to_string())
        }
    }
}

/// The question as a result, or the tool's result if the parameters have the reply.
pub(super) fn ask_in_rounds(
    tool: &str,
    order: &str,
    params: &RawObject<'_>,
    question: &ClientQuestion,
) -> Result<String, DemoError> {
    let request_state = format!("{tool}:{order}:asked");
    let replies = value(params, "inputResponses");
    if let Some(reply) = replies.get(KEY) {
        if params.text("requestState").as_deref() != Some(&*request_state) {
            return Err(DemoError::invalid("`requestState` is not the one given"));
        }
        let members = conclude(tool, order, reply);
        return Ok(complete_result(Era::Stateless, &members));
    }
    let able = value(params, "_meta");
    let able = able.get("io.modelcontextprotocol/clientCapabilities");
    if able
        .and_then(|able| able.get(question.capability))
        .is_none()
    {
        return Err(DemoError {
            code: -32021,
            message: "the client lacks a capability that this tool needs".to_owned(),
            data: Some(json!({"requiredCapabilities": {question.capability: {}}})),
        });
    }
    let ClientQuestion { method, params, .. } = question;
    let requests = json!({KEY: {"method": method, "params": params}});
    Ok(input_required(&requests, &request_state))
}

/// The question of a tool.
pub(super) fn question(tool: &str, order: &str) -> ClientQuestion {
    match tool {
        "cancel_order" => ClientQuestion {
            method: "elicitation/create",
            params: json!({
                "mode": "form",
                "message": format!("Cancel order {order}?"),
                "requestedSchema": {
                    "type": "object",
                    "properties": {"confirm": {"type": "boolean", "title": "Cancel it"}},
                    "required": ["confirm"]
                },
                "x-shop-desk": "cancellations"
            }),
            capability: "elicitation",
        },
        "draft_reply" => ClientQuestion {
            method: "sampling/createMessage",
            params: json!({
                "messages": [{"role": "user", "content": {
                    "type": "text",
                    "text": format!("Write a letter about order {order}.")
                }}],
                "maxTokens": 200
            }),
            capability: "sampling",
        },
        _ => ClientQuestion {
            method: "roots/list",
            params: json!({}),
            capability: "roots",
        },
    }
}
