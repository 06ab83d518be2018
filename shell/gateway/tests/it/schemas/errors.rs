//! Errors that the gateway answers with itself.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use super::{Revision, Sheet, assert_valid};
use crate::guarding::identity;
use crate::support::{Agent, Exchange, TestGateway, shop_of};

/// A request, and the code of the error that it is answered with.
struct Mistake {
    method: &'static str,
    params: Value,
    code: i64,
}

fn mistake(method: &'static str, params: Value, code: i64) -> Mistake {
    Mistake {
        method,
        params,
        code,
    }
}

fn mistakes() -> Vec<Mistake> {
    let unknown_prompt = json!({"ref": {"type": "ref/prompt", "name": "none"},
        "argument": {"name": "a", "value": "b"}});
    vec![
        mistake("tools/call", json!({}), -32602),
        mistake(
            "tools/call",
            json!({"name": "shop__echo", "NAME": "x"}),
            -32602,
        ),
        mistake("tools/list", json!({"cursor": "x"}), -32602),
        mistake("prompts/list", json!({"cursor": "x"}), -32602),
        mistake("prompts/get", json!({"name": "none"}), -32602),
        mistake("completion/complete", unknown_prompt, -32602),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_valid_in_every_revision() {
    let mut faults = Vec::new();
    for of_server in [Era::Handshake, Era::Stateless] {
        let shop = shop_of(of_server);
        let gateway = TestGateway::before(&[("shop", &shop)]).await;
        for revision in Revision::all() {
            let agent = revision.agent(&gateway.url, &[]).await;
            let mut sheet = Sheet::new(&revision);
            for it in mistakes() {
                let what = format!("{} {}", it.method, it.params);
                let answer = sheet.ask(&agent, &what, it.method, it.params).await;
                assert_eq!(answer["error"]["code"], it.code, "{what}: {answer}");
            }
            for method in ["none/such", "tasks/get", "tasks/cancel"] {
                let params = json!({"taskId": "none"});
                let answer = sheet.ask(&agent, method, method, params).await;
                assert!(answer["error"]["code"].is_i64(), "{method}: {answer}");
            }
            let missing = json!({"uri": "none://such"});
            let method = "resources/read";
            let answer = sheet.ask(&agent, method, method, missing).await;
            assert!(answer["error"]["code"].is_i64(), "{answer}");
            faults.extend(sheet.faults);
        }
        gateway.stop().await;
    }
    assert_valid(&faults);
}

/// Servers that are down, for requests other than tool calls.
#[tokio::test(flavor = "multi_thread")]
async fn servers_that_are_away_are_valid_errors() {
    let mut faults = Vec::new();
    for of_server in [Era::Handshake, Era::Stateless] {
        for revision in Revision::all() {
            let shop = shop_of(of_server);
            let gateway = TestGateway::before(&[("shop", &shop)]).await;
            let agent = revision.agent(&gateway.url, &[]).await;
            let mut sheet = Sheet::new(&revision);
            for method in ["tools/list", "prompts/list", "resources/list"] {
                sheet.ask(&agent, method, method, json!({})).await;
            }
            shop.kill();
            let prompt =
                json!({"name": "shop__refund_letter", "arguments": {"order_id": "A-1001"}});
            let reference = json!({"ref": {"type": "ref/prompt", "name": "shop__refund_letter"},
                "argument": {"name": "tone", "value": "f"}});
            for (method, params) in [
                ("prompts/get", prompt),
                ("resources/read", json!({"uri": "orders://today"})),
                ("completion/complete", reference),
            ] {
                let answer = sheet.ask(&agent, method, method, params).await;
                assert_eq!(answer["error"]["code"], -32011, "{method}: {answer}");
            }
            faults.extend(sheet.faults);
            gateway.stop().await;
        }
    }
    assert_valid(&faults);
}

/// Headers of a stateless request of a method.
fn headers<'h>(method: &'h str, name: &'h str) -> Vec<(&'h str, &'h str)> {
    vec![
        ("mcp-protocol-version", super::STATELESS),
        ("mcp-method", method),
        ("mcp-name", name),
    ]
}

/// What the transport itself refuses in the stateless era.
#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_stateless_envelopes_are_valid() {
    let Some(revision) = Revision::stateless() else {
        return;
    };
    let shop = shop_of(Era::Stateless);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = revision.agent(&gateway.url, &[]).await;
    let mut sheet = Sheet::new(&revision);
    let request = |params: Value| {
        let params = agent.params(params);
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    };
    let search = request(json!({"name": "shop__search_orders", "arguments": {"region": "eu"}}));
    let mut bare = search.clone();
    bare["params"]["_meta"].take();
    let mut future = search.clone();
    future["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2027-01-01");
    let mut newer = headers("tools/call", "shop__search_orders");
    newer[0].1 = "2027-01-01";
    let fitting = || headers("tools/call", "shop__search_orders");
    for (what, body, headers, code) in [
        ("other method", &search, headers("tools/list", ""), -32020),
        (
            "other name",
            &search,
            headers("tools/call", "other"),
            -32020,
        ),
        ("no parameter header", &search, fitting(), -32020),
        ("unknown version", &future, newer, -32022),
        ("no envelope", &bare, fitting(), -32602),
    ] {
        let response = agent.post_text(&body.to_string(), &headers).await;
        let answer = Exchange::new(response).message().await;
        assert_eq!(answer["error"]["code"], code, "{what}: {answer}");
        sheet.answer(what, "tools/call", &answer);
    }
    for method in ["initialize", "ping", "logging/setLevel", "tasks/list"] {
        let answer = sheet.ask(&agent, method, method, json!({})).await;
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
    assert_valid(&sheet.faults);
    gateway.stop().await;
}

/// Sends a text as it is, and returns the error that comes back.
async fn sent(agent: &Agent, text: &str, headers: &[(&str, &str)]) -> Value {
    let mut exchange = Exchange::new(agent.post_text(text, headers).await);
    let body = exchange.text().await.unwrap_or_default();
    serde_json::from_str(&body).unwrap_or_else(|_| panic!("{}: {body}", exchange.status))
}

/// A message that cannot be read has no id that could be repeated. The schemas know `id: null` in no
/// revision; since 2025-11-25 the member is optional.
#[tokio::test(flavor = "multi_thread")]
async fn errors_without_an_id_are_valid() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let mut faults = Vec::new();
    for revision in Revision::all() {
        let agent = revision.agent(&gateway.url, &[]).await;
        let mut sheet = Sheet::new(&revision);
        let headers = match revision.era() {
            Era::Handshake => Vec::new(),
            Era::Stateless => headers("tools/list", ""),
        };
        for (what, text, code) in [
            ("no JSON", "{", -32700),
            ("no message", "1", -32600),
            ("no method", r#"{"jsonrpc": "2.0"}"#, -32600),
        ] {
            let mut answer = sent(&agent, text, &headers).await;
            assert_eq!(answer["error"]["code"], code, "{what}: {answer}");
            if revision.demands_ids() && answer.get("id").is_none() {
                // No answer to such a message could be valid otherwise.
                answer["id"] = json!("unknown");
            }
            sheet.answer(what, "tools/list", &answer);
        }
        faults.extend(sheet.faults);
    }
    gateway.stop().await;
    assert_valid(&faults);
}

/// Refusals of the HTTP layer: unauthenticated callers, and sessions that ended.
#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_http_are_valid() {
    let shop = shop_of(Era::Handshake);
    let open = TestGateway::before(&[("shop", &shop)]).await;
    let closed = json!({"identity": identity(&["ada"])});
    let closed = TestGateway::before_with(&[("shop", &shop)], closed).await;
    let mut faults = Vec::new();
    for revision in Revision::all() {
        let mut sheet = Sheet::new(&revision);
        let mut agent = Agent::silent(revision.era(), &closed.url, &json!({}), &[]);
        let mut refused = agent.begin("tools/list", json!({})).await;
        assert_eq!(refused.status, 401);
        check_body(&mut sheet, "no credential", &mut refused).await;
        if revision.era() == Era::Handshake {
            agent = revision.agent(&open.url, &[]).await;
            agent.session = Some("none".to_owned());
            let mut refused = agent.begin("tools/list", json!({})).await;
            assert_eq!(refused.status, 404);
            check_body(&mut sheet, "unknown session", &mut refused).await;
            agent.session = None;
            let mut refused = agent.begin("tools/list", json!({})).await;
            assert_eq!(refused.status, 400);
            check_body(&mut sheet, "no session", &mut refused).await;
        }
        faults.extend(sheet.faults);
    }
    open.stop().await;
    closed.stop().await;
    assert_valid(&faults);
}

/// A body is optional; one that calls itself JSON-RPC must be.
async fn check_body(sheet: &mut Sheet<'_>, what: &str, exchange: &mut Exchange) {
    let text = exchange.text().await.unwrap_or_default();
    let body: Option<Value> = serde_json::from_str(&text).ok();
    if let Some(mut body) = body.filter(|it| it.get("jsonrpc").is_some()) {
        if sheet.revision.demands_ids() && body.get("id").is_none() {
            body["id"] = json!("unknown");
        }
        sheet.answer(what, "tools/list", &body);
    }
}
