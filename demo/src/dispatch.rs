//! The shop's answers to requests.

use serde_json::Value;
use toolwarden_mcp::{Era, RawObject};

use super::client_questions;
use super::deferred_work::DeferredWork;
use super::initialize;
use super::messages::{DemoError, cacheable_result, complete_result};
use super::orders;
use super::request::{DemoRequest, required, value};
use super::shop::Shop;

/// The handling of a request.
#[derive(Debug)]
pub(super) enum DemoResponse {
    /// An immediate result or refusal.
    Ready(Result<String, DemoError>),
    /// Work that takes time and may send messages meanwhile.
    Deferred(DeferredWork),
}

/// Answers a request, or returns the work to be done for it.
pub(super) fn dispatch(shop: &Shop, asked: &DemoRequest) -> DemoResponse {
    shop.record(|seen| seen.count(&asked.method));
    let params = RawObject::parse_optional(asked.params.as_deref());
    let era = asked.era;
    let handshake = era == Era::Handshake;
    DemoResponse::Ready(match asked.method.as_str() {
        "tools/call" => return call(shop, asked, &params),
        "tools/list" => list_tools(shop, era, &params),
        "initialize" => initialize::initialize(shop, asked),
        "server/discover" if !handshake => Ok(initialize::discover(shop)),
        "subscriptions/listen" if !handshake => {
            let wanted = value(&params, "notifications");
            return DemoResponse::Deferred(DeferredWork::Listen { wanted });
        }
        "ping" | "logging/setLevel" if handshake => Ok(complete_result(era, "")),
        "resources/subscribe" if handshake => required(&params, "uri").map(|uri| {
            shop.subscribe(&asked.session, &uri);
            complete_result(era, "")
        }),
        "resources/unsubscribe" if handshake => required(&params, "uri").map(|uri| {
            shop.unsubscribe(&asked.session, &uri);
            complete_result(era, "")
        }),
        "resources/list" => Ok(cacheable_result(era, orders::RESOURCES)),
        "resources/templates/list" => Ok(cacheable_result(era, orders::TEMPLATES)),
        "resources/read" => required(&params, "uri")
            .and_then(|uri| orders::read(&uri))
            .map(|members| cacheable_result(era, &members)),
        "prompts/list" => Ok(cacheable_result(era, orders::PROMPTS)),
        "prompts/get" => required(&params, "name")
            .and_then(|name| orders::prompt(&name, &value(&params, "arguments")))
            .map(|members| complete_result(era, &members)),
        "completion/complete" => {
            let argument = value(&params, "argument");
            Ok(complete_result(era, &orders::completion(&argument)))
        }
        other => Err(DemoError::unknown_method(other)),
    })
}

fn list_tools(shop: &Shop, era: Era, params: &RawObject<'_>) -> Result<String, DemoError> {
    let cursor = params.text("cursor");
    let offer = shop.tool_pages();
    let page = offer.page(cursor.as_deref());
    let page = page.ok_or_else(|| DemoError::invalid("the cursor was never given"))?;
    Ok(cacheable_result(era, page))
}

fn call(shop: &Shop, asked: &DemoRequest, params: &RawObject<'_>) -> DemoResponse {
    let era = asked.era;
    let name = match required(params, "name") {
        Ok(name) => name,
        Err(refusal) => return DemoResponse::Ready(Err(refusal)),
    };
    shop.record(|seen| seen.count_call(&name));
    if shop.tool_pages().header_arguments(&name).is_none() {
        let refusal = DemoError::invalid(format!("tool `{name}` is not offered"));
        return DemoResponse::Ready(Err(refusal));
    }
    let members = match &*name {
        "search_orders" => orders::search(&value(params, "arguments")),
        "refund_order" => orders::refund(&value(params, "arguments")),
        "export_report" => return DemoResponse::Deferred(DeferredWork::export(era, params)),
        "cancel_order" | "draft_reply" | "list_folders" => {
            return ask(era, &name, params);
        }
        _ => orders::echo(asked.params.as_deref()),
    };
    DemoResponse::Ready(Ok(complete_result(era, &members)))
}

/// Calls a tool that sends a question to the client. In the handshake era it sends a request; in the stateless era it
/// returns the question, and the client calls again with the reply.
fn ask(era: Era, tool: &str, params: &RawObject<'_>) -> DemoResponse {
    let arguments = value(params, "arguments");
    let order = arguments.get("order_id").and_then(Value::as_str);
    let order = order.unwrap_or("A-1001").to_owned();
    let question = client_questions::question(tool, &order);
    if era == Era::Handshake {
        let tool = tool.to_owned();
        return DemoResponse::Deferred(DeferredWork::Ask {
            tool,
            order,
            question,
        });
    }
    DemoResponse::Ready(client_questions::ask_in_rounds(
        tool, &order, params, &question,
    ))
}
