//! What the shop answers to a request.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolwarden_mcp::{Era, Members};

use super::asking;
use super::opening;
use super::orders;
use super::page::{Refusal, complete, listed};
use super::shop::Shop;
use super::work::Work;

/// One request, whichever way it came.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) era: Era,
    pub(super) id: Box<RawValue>,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
    /// The session of the handshake era; empty where there is none.
    pub(super) session: String,
}

/// What becomes of a request.
#[derive(Debug)]
pub(super) enum Answer {
    /// A result or a refusal at once.
    Now(Result<String, Refusal>),
    /// Something that takes time and may speak meanwhile.
    Later(Work),
}

/// Answers a request, or says what has to be done for it.
pub(super) fn answer(shop: &Shop, asked: &Asked) -> Answer {
    shop.note(|seen| seen.count(&asked.method));
    let params = Members::of_optional(asked.params.as_deref());
    let era = asked.era;
    let handshake = era == Era::Handshake;
    Answer::Now(match asked.method.as_str() {
        "tools/call" => return call(shop, asked, &params),
        "tools/list" => list_tools(shop, era, &params),
        "initialize" => opening::initialize(shop, asked),
        "server/discover" if !handshake => Ok(opening::discover(shop)),
        "subscriptions/listen" if !handshake => {
            let wanted = value(&params, "notifications");
            return Answer::Later(Work::Listen { wanted });
        }
        "ping" | "logging/setLevel" if handshake => Ok(complete(era, "")),
        "resources/subscribe" if handshake => required(&params, "uri").map(|uri| {
            shop.subscribe(&asked.session, &uri);
            complete(era, "")
        }),
        "resources/unsubscribe" if handshake => required(&params, "uri").map(|uri| {
            shop.unsubscribe(&asked.session, &uri);
            complete(era, "")
        }),
        "resources/list" => Ok(listed(era, orders::RESOURCES)),
        "resources/templates/list" => Ok(listed(era, orders::TEMPLATES)),
        "resources/read" => required(&params, "uri")
            .and_then(|uri| orders::read(&uri))
            .map(|members| listed(era, &members)),
        "prompts/list" => Ok(listed(era, orders::PROMPTS)),
        "prompts/get" => required(&params, "name")
            .and_then(|name| orders::prompt(&name, &value(&params, "arguments")))
            .map(|members| complete(era, &members)),
        "completion/complete" => {
            let argument = value(&params, "argument");
            Ok(complete(era, &orders::completion(&argument)))
        }
        other => Err(Refusal::unknown_method(other)),
    })
}

fn list_tools(shop: &Shop, era: Era, params: &Members<'_>) -> Result<String, Refusal> {
    let cursor = params.text("cursor");
    let offer = shop.offer();
    let page = offer.page(cursor.as_deref());
    let page = page.ok_or_else(|| Refusal::invalid("the cursor was never given"))?;
    Ok(listed(era, page))
}

fn call(shop: &Shop, asked: &Asked, params: &Members<'_>) -> Answer {
    let era = asked.era;
    let name = match required(params, "name") {
        Ok(name) => name,
        Err(refusal) => return Answer::Now(Err(refusal)),
    };
    shop.note(|seen| seen.count_call(&name));
    if shop.offer().marks(&name).is_none() {
        let refusal = Refusal::invalid(format!("tool `{name}` is not offered"));
        return Answer::Now(Err(refusal));
    }
    let members = match &*name {
        "search_orders" => orders::search(&value(params, "arguments")),
        "refund_order" => orders::refund(&value(params, "arguments")),
        "export_report" => return Answer::Later(Work::export(era, params)),
        "cancel_order" | "draft_reply" | "list_folders" => {
            return asking::call(asked, &name, params);
        }
        _ => orders::echo(asked.params.as_deref()),
    };
    Answer::Now(Ok(complete(era, &members)))
}

/// A member that must be a string.
pub(super) fn required<'p>(params: &'p Members<'_>, key: &str) -> Result<Cow<'p, str>, Refusal> {
    let text = params.text(key);
    text.ok_or_else(|| Refusal::invalid(format!("`{key}` is missing")))
}

/// A member, an empty object if it is absent.
pub(super) fn value(params: &Members<'_>, key: &str) -> Value {
    let text = params.get(key);
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_else(|| json!({}))
}
