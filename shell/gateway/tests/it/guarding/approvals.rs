//! One approval, one payment, over MCP.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::{agent_of, at_with, code, echoing, identity, rows, worked};
use crate::support::{PAIRS, TestGateway, shop_of};

fn policy() -> Value {
    json!({
        "tools": {
            "approve": {"state": "approved", "available_in_states": ["undefined"], "binds": ["invoice", "amount"]},
            "pay": {"state": "undefined", "available_in_states": ["approved"]},
        },
        "states": {"approved": {"single_use": true}},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn five_payments_at_once_are_one() {
    for (agents, servers) in PAIRS {
        let server = shop_of(servers);
        server.shop.set_tools(&echoing(&["approve", "pay"]));
        let gateway = TestGateway::start(&json!({
            "servers": {"bank": at_with(&server, json!({}))},
            "prefix": "never",
            "identity": identity(&["ada"]),
            "policy": policy(),
        }))
        .await;
        let ada = agent_of(agents, &gateway.url, "ada", &[]).await;
        let invoice = json!({"invoice": "INV-7", "amount": 12.5});
        assert!(worked(&ada.call("approve", invoice.clone()).await));
        let other = json!({"invoice": "INV-7", "amount": 1250});
        let answer = ada.call("pay", other).await;
        assert_eq!(code(&answer), Some("approval_mismatch"), "{answer}");
        let denial = &answer["result"]["_meta"]["toolwarden/denial"];
        assert!(
            denial["reason"].as_str().unwrap().contains("/amount"),
            "{denial}"
        );

        let pay = || ada.call("pay", json!({"amount": 12.50, "invoice": "INV-7"}));
        let (a, b, c, d, e) = tokio::join!(pay(), pay(), pay(), pay(), pay());
        let answers = [a, b, c, d, e];
        assert_eq!(
            answers.iter().filter(|it| worked(it)).count(),
            1,
            "{answers:?}"
        );
        for refused in answers.iter().filter(|it| !worked(it)) {
            // Once the first has succeeded the session is elsewhere.
            let code = code(refused).unwrap();
            assert!(
                ["state_used", "filtered_by_state"].contains(&code),
                "{refused}"
            );
        }
        assert_eq!(
            server.shop.seen().calls_of("pay"),
            1,
            "{agents:?} {servers:?}"
        );
        let records = rows(&gateway.gateway);
        let permits = records
            .iter()
            .filter(|row| row.word() == "decision allowed" && row.tool == "pay");
        assert_eq!(permits.count(), 1);
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_under_way_keeps_others_out_whatever_becomes_of_it() {
    let server = shop_of(toolwarden_mcp::Era::Handshake);
    server.shop.set_tools(&echoing(&["approve", "pay"]));
    let gateway = TestGateway::start(&json!({
        "servers": {"bank": at_with(&server, json!({"timeouts": {"request": "1s"}}))},
        "prefix": "never",
        "identity": identity(&["ada"]),
        "policy": policy(),
    }))
    .await;
    let ada = agent_of(toolwarden_mcp::Era::Handshake, &gateway.url, "ada", &[]).await;
    let invoice = json!({"invoice": "INV-7", "amount": 12.5});
    assert!(worked(&ada.call("approve", invoice.clone()).await));
    assert_eq!(ada.tools().await, ["pay"]);
    server.shop.stop_answering();
    let lost = ada.call("pay", invoice.clone()).await;
    assert!(!worked(&lost), "{lost}");
    server.shop.recover();
    let again = ada.call("pay", invoice).await;
    assert_eq!(code(&again), Some("state_used"), "{again}");
    assert_eq!(ada.tools().await, [""; 0], "it is not offered any more");
    let records = rows(&gateway.gateway);
    let denied = records
        .iter()
        .filter(|row| row.word() == "decision state_used");
    assert_eq!(denied.count(), 1);
    gateway.stop().await;
}

/// A server that pays and then reports that the session is unknown.
async fn forgetful() -> (String, Arc<AtomicUsize>) {
    let paid = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&paid);
    let answer = move |body: String| {
        let count = Arc::clone(&count);
        async move {
            let message: Value = serde_json::from_str(&body).unwrap_or_default();
            let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
            let result = match message["method"].as_str().unwrap_or_default() {
                "initialize" => {
                    json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "e", "version": "1"}})
                }
                "tools/list" => json!({"tools": [tool("approve"), tool("pay"), tool("tip")]}),
                "tools/call" if message["params"]["name"] != "approve" => {
                    count.fetch_add(1, Ordering::SeqCst);
                    return (StatusCode::NOT_FOUND, HeaderMap::new(), "gone".to_owned());
                }
                _ => json!({"content": []}),
            };
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            let mut headers = HeaderMap::new();
            headers.insert("content-type", "application/json".parse().unwrap());
            headers.insert("mcp-session-id", "s".parse().unwrap());
            (StatusCode::OK, headers, answer.to_string())
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = axum::Router::new().fallback(axum::routing::post(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, paid)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_a_server_denies_to_have_read_is_not_sent_again_and_again() {
    let (url, paid) = forgetful().await;
    let mut policy = policy();
    policy["tools"]["tip"] = json!({});
    let gateway = TestGateway::start(&json!({
        "servers": {"bank": {"url": url}},
        "prefix": "never",
        "identity": identity(&["ada"]),
        "policy": policy,
    }))
    .await;
    let ada = agent_of(toolwarden_mcp::Era::Handshake, &gateway.url, "ada", &[]).await;
    let invoice = json!({"invoice": "INV-7", "amount": 12.5});
    assert!(worked(&ada.call("approve", invoice.clone()).await));
    assert!(!worked(&ada.call("pay", invoice.clone()).await));
    assert_eq!(
        paid.load(Ordering::SeqCst),
        1,
        "an approval is for one call"
    );
    let answer = ada.call("pay", invoice).await;
    assert_eq!(code(&answer), Some("state_used"), "{answer}");
    // Another call is sent to the new session once.
    assert!(!worked(&ada.call("tip", json!({})).await));
    assert_eq!(paid.load(Ordering::SeqCst), 3);
    gateway.stop().await;
}
