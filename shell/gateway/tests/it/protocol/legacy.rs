//! The HTTP+SSE transport of 2024-11-05.

use serde_json::json;
use toolwarden_demo::tools;
use toolwarden_mcp::{ConnectionLimits, Endpoint, Era, McpClient};

use crate::support::{Exchange, TestGateway, http, shop_of, until};

#[tokio::test(flavor = "multi_thread")]
async fn an_old_client_is_served() {
    for of_server in [Era::Handshake, Era::Stateless] {
        let shop = shop_of(of_server);
        let gateway = TestGateway::before(&[("shop", &shop)]).await;
        let endpoint = Endpoint::url(&format!("{}/sse", gateway.root())).unwrap();
        let client = McpClient::connect(&endpoint, &ConnectionLimits::default())
            .await
            .unwrap();
        assert_eq!(client.server().era, Era::Handshake);
        let listing = client.list_tools().await.unwrap();
        assert_eq!(listing.tools.len(), tools().len());
        let echo = client
            .call_tool("shop__echo", &json!({"a": 1}))
            .await
            .unwrap();
        let echo: serde_json::Value = serde_json::from_str(echo.get()).unwrap();
        assert_eq!(
            echo["structuredContent"]["params"]["arguments"],
            json!({"a": 1})
        );
        let refused = client.request("no/such", json!({})).await.unwrap_err();
        assert!(refused.to_string().contains("-32601"), "{refused}");
        client.close().await;
        until("the conversation ends with the stream", || {
            gateway.gateway.conversations().is_empty()
        })
        .await;
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_go_to_the_address_of_the_stream() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let http = http(&gateway.url);
    let response = http.get(format!("{}/sse", gateway.root())).send().await;
    let mut stream = Exchange::new(response.unwrap());
    let address = stream.event().await.unwrap().text;
    let post = async |address: &str, body: serde_json::Value| {
        let url = format!("{}{address}", gateway.root());
        let sent = http.post(url).body(body.to_string()).send().await.unwrap();
        sent.status().as_u16()
    };
    let params = json!({"protocolVersion": "2024-11-05", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "t", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    assert_eq!(post(&address, body).await, 202);
    assert_eq!(
        stream.message().await["result"]["protocolVersion"],
        "2024-11-05"
    );
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "shop__cancel_order", "arguments": {"order_id": "A-1001"}}});
    assert_eq!(post(&address, call).await, 202);
    let question = stream.message().await;
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
    assert_eq!(post(&address, answer).await, 202);
    let done = stream.message().await;
    assert_eq!(
        done["result"]["content"][0]["text"], "order A-1001 stays: decline",
        "{done}"
    );
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    assert_eq!(post("/messages?sessionId=unknown", ping).await, 404);
    gateway.stop().await;
}
