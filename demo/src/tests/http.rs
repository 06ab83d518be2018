use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::time::timeout;
use toolwarden_mcp::{ConnectionLimits, Endpoint, ServerUrl};

use super::super::{DemoServer, SessionMode, SupportedEras};
use super::{connect, start};

const SOON: Duration = Duration::from_secs(10);

async fn send(
    server: &DemoServer,
    verb: Method,
    headers: &[(&str, &str)],
    body: &Value,
) -> Response {
    let url = server.url.parse().unwrap();
    let client = toolwarden_http::client(&url).unwrap().build().unwrap();
    let mut request = client.request(verb.clone(), url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if verb == Method::POST {
        request = request
            .header("content-type", "application/json")
            .body(body.to_string());
    }
    timeout(SOON, request.send()).await.unwrap().unwrap()
}

/// Reads events until one is an answer or contains the text.
async fn read_until(response: &mut Response, text: &str) -> String {
    let mut all = String::new();
    while !all.contains(text) {
        let chunk = timeout(SOON, response.chunk()).await.unwrap().unwrap();
        let Some(chunk) = chunk else { break };
        all.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    all
}

async fn initialize(server: &DemoServer, capabilities: Value) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": capabilities,
        "clientInfo": {"name": "t", "version": "1"}
    }});
    let response = send(server, Method::POST, &[], &body).await;
    let id = response.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let body = response.text().await.unwrap();
    assert!(body.contains(r#""protocolVersion":"2025-06-18""#), "{body}");
    id
}

fn stateless(method: &str, mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "progressToken": "p",
    });
    json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params})
}

#[tokio::test]
async fn a_client_of_the_handshake_is_asked_back() {
    let server = start(SupportedEras::Both, SessionMode::Required);
    let session = initialize(&server, json!({"elicitation": {}})).await;
    let headers = [("mcp-session-id", session.as_str())];
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "cancel_order", "arguments": {"order_id": "A-1002"}
    }});
    let mut stream = send(&server, Method::POST, &headers, &call).await;
    let question = read_until(&mut stream, "elicitation/create").await;
    assert!(
        question.contains(r#""message":"Cancel order A-1002?""#),
        "{question}"
    );
    let reply = json!({"jsonrpc": "2.0", "id": 1, "result": {
        "action": "accept", "content": {"confirm": true}
    }});
    let taken = send(&server, Method::POST, &headers, &reply).await;
    assert_eq!(taken.status(), 202);
    let end = read_until(&mut stream, "result").await;
    assert!(end.contains("order A-1002 is cancelled"), "{end}");
    let without = initialize(&server, json!({})).await;
    let call = send(
        &server,
        Method::POST,
        &[("mcp-session-id", &without)],
        &call,
    )
    .await;
    let text = call.text().await.unwrap();
    assert!(text.contains("the client has no elicitation"), "{text}");
}

#[tokio::test]
async fn a_client_without_sessions_is_asked_in_rounds() {
    let server = start(SupportedEras::Both, SessionMode::Required);
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "cancel_order"),
    ];
    let params = json!({"name": "cancel_order", "arguments": {"order_id": "A-1002"}});
    let call = stateless("tools/call", params.clone(), &json!({}));
    let refused = send(&server, Method::POST, &headers, &call).await;
    assert_eq!(refused.status(), 400);
    let refused: Value = serde_json::from_str(&refused.text().await.unwrap()).unwrap();
    assert_eq!(
        refused["error"]["data"],
        json!({"requiredCapabilities": {"elicitation": {}}})
    );
    let able = json!({"elicitation": {}});
    let call = stateless("tools/call", params.clone(), &able);
    let asked = send(&server, Method::POST, &headers, &call).await;
    let asked: Value = serde_json::from_str(&asked.text().await.unwrap()).unwrap();
    let asked = &asked["result"];
    assert_eq!(asked["resultType"], "input_required");
    assert_eq!(
        asked["inputRequests"]["question"]["params"]["message"],
        "Cancel order A-1002?"
    );
    for (given, expected) in [
        (asked["requestState"].clone(), "stays: decline"),
        (json!("forged"), "is not the one given"),
    ] {
        let mut params = params.clone();
        params["requestState"] = given;
        params["inputResponses"] = json!({"question": {"action": "decline"}});
        let call = stateless("tools/call", params, &able);
        let done = send(&server, Method::POST, &headers, &call).await;
        let done = done.text().await.unwrap();
        assert!(done.contains(expected), "{done}");
    }
}

#[tokio::test]
async fn headers_that_lie_are_refused() {
    let server = start(SupportedEras::Both, SessionMode::Required);
    let call = |region: &str| {
        let params = json!({"name": "search_orders", "arguments": {"region": region}});
        stateless("tools/call", params, &json!({}))
    };
    let good = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "search_orders"),
        ("mcp-param-region", "eu"),
    ];
    let answer = send(&server, Method::POST, &good, &call("eu")).await;
    assert_eq!(answer.status(), 200);
    for (at, lie) in [(1, "tools/list"), (2, "=?base64?eA==?="), (3, "us")] {
        let mut headers = good;
        headers[at].1 = lie;
        let refused = send(&server, Method::POST, &headers, &call("eu")).await;
        assert_eq!(refused.status(), 400);
        let text = refused.text().await.unwrap();
        assert!(text.contains("-32020"), "{text}");
    }
    let refused = send(&server, Method::POST, &good[..3], &call("eu")).await;
    assert_eq!(refused.status(), 400);
}

#[tokio::test]
async fn news_reach_who_listens() {
    let server = start(SupportedEras::Both, SessionMode::Required);
    let session = initialize(&server, json!({})).await;
    let headers = [("mcp-session-id", session.as_str())];
    let subscribe = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "orders://today"}});
    let subscribed = send(&server, Method::POST, &headers, &subscribe).await;
    assert_eq!(subscribed.status(), 200);
    let mut old = send(&server, Method::GET, &headers, &Value::Null).await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let listen = stateless("subscriptions/listen", wanted, &json!({}));
    let listening = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
    ];
    let mut new = send(&server, Method::POST, &listening, &listen).await;
    let agreed = read_until(&mut new, "acknowledged").await;
    assert!(
        agreed.contains(r#""io.modelcontextprotocol/subscriptionId":"q""#),
        "{agreed}"
    );
    assert_eq!(server.shop.listeners(), 2);
    server.shop.notify_resource_updated("orders://other");
    server.shop.notify_resource_updated("orders://today");
    server.shop.notify_list_changed();
    let heard = read_until(&mut old, "tools/list_changed").await;
    assert_eq!(heard.matches("resources/updated").count(), 1, "{heard}");
    let heard = read_until(&mut new, "tools/list_changed").await;
    assert_eq!(heard.matches("resources/updated").count(), 0, "{heard}");
    server.shop.expire_sessions();
    assert_eq!(read_until(&mut old, "never").await, "");
    server.shop.close_streams();
    let end = read_until(&mut new, "never").await;
    assert!(end.contains(r#""resultType":"complete""#), "{end}");
}

#[tokio::test]
async fn progress_is_told_and_work_can_be_given_up() {
    let server = start(SupportedEras::Both, SessionMode::Required);
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "export_report"),
    ];
    let call = |pause| {
        let params = json!({"name": "export_report", "arguments": {"steps": 2, "pause_ms": pause}});
        stateless("tools/call", params, &json!({}))
    };
    let mut stream = send(&server, Method::POST, &headers, &call(1)).await;
    let all = read_until(&mut stream, "the report is written").await;
    assert_eq!(all.matches(r#""progressToken":"p""#).count(), 2, "{all}");
    assert_eq!(server.shop.seen().cancelled, 0);
    drop(send(&server, Method::POST, &headers, &call(60_000)).await);
    timeout(SOON, async {
        while server.shop.seen().cancelled == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn sessions_expire_and_servers_die() {
    let server = start(SupportedEras::Handshake, SessionMode::Required);
    let session = initialize(&server, json!({})).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let mut statuses = Vec::new();
    for id in [&session, "other", ""] {
        let headers = [("mcp-session-id", id)];
        statuses.push(
            send(&server, Method::POST, &headers, &ping)
                .await
                .status()
                .as_u16(),
        );
    }
    server.shop.expire_sessions();
    let headers = [("mcp-session-id", session.as_str())];
    statuses.push(
        send(&server, Method::POST, &headers, &ping)
            .await
            .status()
            .as_u16(),
    );
    assert_eq!(statuses, [200, 404, 400, 404]);
    let client = connect(&server).await;
    assert_eq!(server.shop.open_sessions(), 1);
    client.close().await;
    assert_eq!(server.shop.open_sessions(), 0);
    server.kill();
    let endpoint = Endpoint::url(&server.url).unwrap();
    let limits = ConnectionLimits::default();
    let gone = toolwarden_mcp::McpClient::connect(&endpoint, &limits).await;
    assert!(gone.unwrap_err().to_string().contains("Connection refused"));
    server.restart().unwrap();
    let client = connect(&server).await;
    server.shop.stop_answering();
    let waiting = client.request("ping", Value::Null);
    assert!(timeout(Duration::from_millis(100), waiting).await.is_err());
    server.shop.recover();
    assert!(client.request("ping", Value::Null).await.is_ok());
}

#[tokio::test]
async fn what_a_client_sends_is_kept() {
    let server = start(SupportedEras::Stateless, SessionMode::Required);
    let endpoint = Endpoint::Url(ServerUrl {
        url: server.url.clone(),
        headers: vec![("authorization".to_owned(), "Bearer secret".to_owned())],
    });
    let client = toolwarden_mcp::McpClient::connect(&endpoint, &ConnectionLimits::default())
        .await
        .unwrap();
    client.request("prompts/list", Value::Null).await.unwrap();
    let seen = server.shop.seen();
    assert_eq!(seen.last_header("authorization"), Some("Bearer secret"));
    assert_eq!(seen.last_header("mcp-method"), Some("prompts/list"));
    assert_eq!(seen.headers().len(), 2);
    let face = super::parsed(&seen.last_client_info.clone().unwrap());
    assert_eq!(
        face["io.modelcontextprotocol/clientInfo"]["name"],
        "toolwarden"
    );
    assert_eq!((seen.discovers, seen.methods["prompts/list"]), (1, 1));
}
