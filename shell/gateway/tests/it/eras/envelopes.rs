//! The metadata of requests, and headers that repeat it.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use crate::support::{Agent, Exchange, TestGateway, shop_of};

#[tokio::test(flavor = "multi_thread")]
async fn headers_must_repeat_the_body() {
    let shop = shop_of(Era::Stateless);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::of(Era::Stateless, &gateway.url, "{}").await;
    let params =
        agent.params(json!({"name": "shop__search_orders", "arguments": {"region": "eu"}}));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let good = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "shop__search_orders"),
        ("mcp-param-region", "eu"),
    ];
    let send = async |changed: &str, value: &'static str| {
        let mut headers = good;
        for (name, held) in &mut headers {
            if *name == changed {
                *held = value;
            }
        }
        Exchange::new(agent.post_text(&body.to_string(), &headers).await)
    };
    for (header, value) in [
        ("mcp-method", "tools/list"),
        ("mcp-method", ""),
        ("mcp-name", "search_orders"),
        ("mcp-name", ""),
        ("mcp-param-region", "us"),
        ("mcp-param-region", ""),
    ] {
        let mut refused = send(header, value).await;
        let message = refused.message().await;
        assert_eq!(
            (refused.status, &message["error"]["code"]),
            (400, &json!(-32020)),
            "{header}: {value}: {message}"
        );
    }
    assert_eq!(shop.shop.seen().calls_of("search_orders"), 0);
    let mut answer = send("", "").await;
    let message = answer.message().await;
    assert_eq!(
        message["result"]["structuredContent"]["matches"], 2,
        "{message}"
    );
    let seen = shop.shop.seen();
    assert_eq!(seen.last_header("mcp-param-region"), Some("eu"));
    assert_eq!(seen.last_header("mcp-name"), Some("search_orders"));
    // A value that is not ASCII is encoded.
    let params = agent
        .params(json!({"name": "shop__search_orders", "arguments": {"region": "gr\u{f6}\u{df}e"}}));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let mut headers = good;
    headers[3].1 = "=?base64?Z3LDtsOfZQ==?=";
    let mut answer = Exchange::new(agent.post_text(&body.to_string(), &headers).await);
    let message = answer.message().await;
    assert_eq!(
        message["result"]["structuredContent"]["matches"], 0,
        "{message}"
    );
    let seen = shop.shop.seen();
    assert_eq!(
        seen.last_header("mcp-param-region"),
        Some("=?base64?Z3LDtsOfZQ==?=")
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn handshake_agents_need_no_headers_and_servers_get_them() {
    let shop = shop_of(Era::Stateless);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let found = agent
        .call(
            "shop__search_orders",
            json!({"region": "eu", "customer": "Ada"}),
        )
        .await;
    assert_eq!(
        found["result"]["structuredContent"]["matches"], 2,
        "{found}"
    );
    let seen = shop.shop.seen();
    assert_eq!(seen.last_header("mcp-param-region"), Some("eu"));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_versions_are_refused() {
    let shop = shop_of(Era::Stateless);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::of(Era::Stateless, &gateway.url, "{}").await;
    let mut params = agent.params(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2027-01-01");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params});
    let headers = [
        ("mcp-protocol-version", "2027-01-01"),
        ("mcp-method", "tools/list"),
    ];
    let mut refused = Exchange::new(agent.post_text(&body.to_string(), &headers).await);
    let message = refused.message().await;
    assert_eq!(refused.status, 400);
    assert_eq!(
        message,
        json!({"jsonrpc": "2.0", "id": 1, "error": {
            "code": -32022,
            "message": "Unsupported protocol version",
            "data": {"supported": ["2026-07-28"], "requested": "2027-01-01"},
        }})
    );
    // An agent that sends no metadata gets an error that names what is missing.
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    let mut refused = Exchange::new(agent.post_text(&body.to_string(), &headers).await);
    let message = refused.message().await;
    assert_eq!(
        (refused.status, &message["error"]["code"]),
        (400, &json!(-32602))
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_tells_what_there_is() {
    for of_server in [Era::Handshake, Era::Stateless] {
        let shop = shop_of(of_server);
        let gateway = TestGateway::before(&[("shop", &shop)]).await;
        let agent = Agent::of(Era::Stateless, &gateway.url, "{}").await;
        let found = agent.result("server/discover", json!({})).await;
        assert_eq!(
            found,
            json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
                "capabilities": capabilities(),
                "instructions": "# shop\n\nSearch for an order before you refund it.",
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo":
                    {"name": "toolwarden", "version": env!("CARGO_PKG_VERSION")}},
            }),
            "{of_server:?}"
        );
        let opened = Agent::of(Era::Handshake, &gateway.url, "{}").await;
        assert_eq!(
            opened.connect_request,
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities(),
                "instructions": "# shop\n\nSearch for an order before you refund it.",
                "serverInfo": {"name": "toolwarden", "version": env!("CARGO_PKG_VERSION")},
            }),
            "{of_server:?}"
        );
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server_without_prefix_is_shown_as_it_is() {
    for of_server in [Era::Handshake, Era::Stateless] {
        let shop = shop_of(of_server);
        let settings = json!({"prefix": "never"});
        let gateway = TestGateway::before_with(&[("shop", &shop)], settings).await;
        let opened = Agent::of(Era::Handshake, &gateway.url, "{}").await;
        assert_eq!(
            opened.connect_request["serverInfo"]["name"],
            "toolwarden-demo-shop"
        );
        assert_eq!(
            opened.connect_request["serverInfo"]["x-shop"],
            json!({"region": "eu"})
        );
        assert_eq!(
            opened.connect_request["instructions"],
            "Search for an order before you refund it."
        );
        assert!(opened.tools().await.contains(&"echo".to_owned()));
        gateway.stop().await;
    }
}

fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true},
        "completions": {},
        "logging": {},
        "experimental": {"shop.example/desk": {"since": 2}},
    })
}
