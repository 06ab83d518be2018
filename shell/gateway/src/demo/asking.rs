//! Tools that ask the client back.

use serde_json::{Value, json};
use toolwarden_mcp::{Era, Members};

use super::answer::{Answer, Asked, value};
use super::orders::{failure, said};
use super::page::{Refusal, complete, input_required};
use super::work::Work;

/// A question to the client.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) method: &'static str,
    pub(super) params: Value,
    /// What the client must be able to do.
    pub(super) capability: &'static str,
}

/// The key of the one question of a result that asks.
const KEY: &str = "question";

/// Calls such a tool. The handshake era sends a request; the stateless era answers with the
/// question, and the client calls again with the reply.
pub(super) fn call(asked: &Asked, tool: &str, params: &Members<'_>) -> Answer {
    let arguments = value(params, "arguments");
    let order = arguments.get("order_id").and_then(Value::as_str);
    let order = order.unwrap_or("A-1001").to_owned();
    let question = question(tool, &order);
    if asked.era == Era::Handshake {
        let tool = tool.to_owned();
        return Answer::Later(Work::Ask {
            tool,
            order,
            question,
        });
    }
    Answer::Now(in_rounds(tool, &order, params, &question))
}

/// What the tool makes of the reply.
pub(super) fn conclude(tool: &str, order: &str, reply: &Value) -> String {
    let text = |pointer: &str| reply.pointer(pointer).and_then(Value::as_str);
    match tool {
        "cancel_order" => match text("/action") {
            Some("accept") if reply.pointer("/content/confirm") == Some(&json!(true)) => {
                said(&format!("order {order} is cancelled"))
            }
            Some(action) => said(&format!("order {order} stays: {action}")),
            None => failure("the reply has no action"),
        },
        "draft_reply" => match text("/content/text") {
            Some(letter) => said(letter),
            None => failure("the reply has no text"),
        },
        _ => {
            let roots = reply.get("roots").and_then(Value::as_array);
            let uris = roots
                .into_iter()
                .flatten()
                .filter_map(|root| root.get("uri"));
            said(&Value::from_iter(uris.cloned()).to_string())
        }
    }
}

fn in_rounds(
    tool: &str,
    order: &str,
    params: &Members<'_>,
    question: &Question,
) -> Result<String, Refusal> {
    let request_state = format!("{tool}:{order}:asked");
    let replies = value(params, "inputResponses");
    if let Some(reply) = replies.get(KEY) {
        if params.text("requestState").as_deref() != Some(&*request_state) {
            return Err(Refusal::invalid("`requestState` is not the one given"));
        }
        let members = conclude(tool, order, reply);
        return Ok(complete(Era::Stateless, &members));
    }
    let able = value(params, "_meta");
    let able = able.get("io.modelcontextprotocol/clientCapabilities");
    if able
        .and_then(|able| able.get(question.capability))
        .is_none()
    {
        return Err(Refusal {
            code: -32021,
            message: "the client lacks a capability that this tool needs".to_owned(),
            data: Some(json!({"requiredCapabilities": {question.capability: {}}})),
        });
    }
    let Question { method, params, .. } = question;
    let requests = json!({KEY: {"method": method, "params": params}});
    Ok(input_required(&requests, &request_state))
}

fn question(tool: &str, order: &str) -> Question {
    match tool {
        "cancel_order" => Question {
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
        "draft_reply" => Question {
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
        _ => Question {
            method: "roots/list",
            params: json!({}),
            capability: "roots",
        },
    }
}
