//! Streamable HTTP from the agent's side.

use serde_json::json;
use toolwarden_mcp::Era;

use crate::support::{Agent, Exchange, TestGateway, http, shop_of};

#[tokio::test(flavor = "multi_thread")]
async fn invalid_messages_are_refused() {
    let shop = shop_of(Era::Handshake);
    let settings = json!({"listen": {"address": "127.0.0.1:0", "max_body": "64KiB"}});
    let gateway = TestGateway::before_with(&[("shop", &shop)], settings).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":"{}"}}}}"#,
        "x".repeat(70_000)
    );
    type Headers<'h> = &'h [(&'h str, &'h str)];
    let cases: [(&str, Headers<'_>, u16); 11] = [
        (ping, &[], 200),
        (ping, &[("content-type", "text/plain")], 415),
        (ping, &[("accept", "text/html")], 406),
        (ping, &[("accept", "*/*")], 200),
        (ping, &[("mcp-session-id", "")], 400),
        (ping, &[("mcp-session-id", "unknown")], 404),
        (ping, &[("mcp-protocol-version", "1999-01-01")], 400),
        (r#"{"jsonrpc":"2.0""#, &[], 400),
        (r#"{"id":1}"#, &[], 400),
        ("", &[], 400),
        (&long, &[], 413),
    ];
    for (body, headers, status) in cases {
        let response = agent.post_text(body, headers).await;
        assert_eq!(response.status(), status, "{headers:?} {}", body.len());
    }
    let http = http(&gateway.url);
    let response = http.put(&gateway.url).send().await.unwrap();
    assert_eq!(response.status(), 405);
    assert_eq!(response.headers()["allow"], "GET, POST, DELETE");
    // The stateless era has no standing stream.
    let get = http
        .get(&gateway.url)
        .header("mcp-protocol-version", "2026-07-28");
    assert_eq!(get.send().await.unwrap().status(), 405);
    assert_eq!(http.get(&gateway.url).send().await.unwrap().status(), 400);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_json_unless_something_comes_first() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let plain = agent.begin("tools/list", json!({})).await;
    assert_eq!(
        (plain.is_stream, plain.header("content-type")),
        (false, Some("application/json"))
    );
    let report = json!({"name": "shop__export_report", "arguments": {"steps": 1, "pause_ms": 1}});
    let mut stream = agent.begin("tools/call", report.clone()).await;
    assert!(stream.is_stream);
    assert_eq!(stream.rest().await.len(), 2);
    // An agent that accepts no stream gets only the response.
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": report});
    let headers = [("accept", "application/json")];
    let mut alone = Exchange::new(agent.post_text(&body.to_string(), &headers).await);
    assert!(!alone.is_stream);
    let answer = alone.message().await;
    assert_eq!(
        answer["result"]["content"][0]["text"],
        "the report is written"
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_end() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let mut stream = agent.listen(None).await;
    assert_eq!(agent.end().await, 200);
    while stream.event().await.is_some() {}
    assert_eq!(agent.begin("ping", json!({})).await.status, 404);
    assert_eq!(agent.listen(None).await.status, 404);
    assert_eq!(agent.end().await, 404);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_belong_to_their_principal() {
    let shop = shop_of(Era::Handshake);
    let settings = json!({"identity": {"api_keys": [
        {"principal": "a", "key": "a-0123456789abcdef0123456789abcdef"},
        {"principal": "b", "key": "b-0123456789abcdef0123456789abcdef"},
    ]}});
    let gateway = TestGateway::before_with(&[("shop", &shop)], settings).await;
    let key = [("authorization", "Bearer a-0123456789abcdef0123456789abcdef")];
    let mut agent = Agent::open_with(&gateway.url, &json!({}), &key).await;
    let key = [("authorization", "Bearer b-0123456789abcdef0123456789abcdef")];
    let mut other = Agent::silent(Era::Handshake, &gateway.url, &json!({}), &key);
    other.session.clone_from(&agent.session);
    assert_eq!(other.begin("ping", json!({})).await.status, 404);
    assert_eq!(other.listen(None).await.status, 404);
    assert_eq!(other.end().await, 404);
    assert_eq!(agent.begin("ping", json!({})).await.status, 200);
    agent.session = None;
    assert_eq!(agent.begin("ping", json!({})).await.status, 400);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_oldest_versions_have_batches() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let batch = json!([
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "shop__echo"}},
    ]);
    let agent = Agent::open_at(&gateway.url, "2025-03-26", &json!({}), &[]).await;
    assert_eq!(agent.connect_request["protocolVersion"], "2025-03-26");
    let answers: serde_json::Value = {
        let text = agent.post(&batch).await.text().await.unwrap();
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(
        (
            &answers[0],
            &answers[1]["id"],
            &answers[1]["result"]["content"][0]["text"]
        ),
        (
            &json!({"jsonrpc": "2.0", "id": "a", "result": {}}),
            &json!(2),
            &json!("echo")
        ),
    );
    let told = json!([{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}]);
    assert_eq!(agent.post(&told).await.status(), 202);
    let newer = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    assert_eq!(newer.post(&batch).await.status(), 400);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_versions_get_the_newest() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2031-01-01", "2025-11-25"),
    ] {
        let silent = Agent::silent(Era::Handshake, &gateway.url, &json!({}), &[]);
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let opened = silent.result("initialize", params).await;
        assert_eq!(opened["protocolVersion"], answered);
    }
    gateway.stop().await;
}
