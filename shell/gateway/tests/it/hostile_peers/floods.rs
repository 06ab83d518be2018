use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use super::{hostile, peak, upstream};
use crate::guarding::{code, worked};
use crate::support::{Agent, EVERYTHING, TestGateway, at, shop_of, until_async};

/// How much memory a flood may take in addition to the test at rest.
const OF_FLOOD: u64 = 200 << 20;

async fn started(mut server: Value) -> (TestGateway, toolwarden_demo::DemoServer) {
    server["restart"] = json!({"first": "10ms", "most": "50ms"});
    let shop = shop_of(Era::Handshake);
    let servers = json!({"bad": server, "good": at(&shop)});
    let gateway = TestGateway::start(&json!({"servers": servers})).await;
    (gateway, shop)
}

fn last_error(gateway: &TestGateway, server: &str) -> String {
    let error = upstream(gateway, server).status().last_error;
    error.map(|it| it.text).unwrap_or_default()
}

/// A server that floods the gateway is disconnected with a reason; others go on meanwhile.
async fn disconnected(tool: &str) {
    let (gateway, _shop) = started(hostile()).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, EVERYTHING).await;
    until_async("both are listed", async || agent.tools().await.len() > 7).await;
    let before = peak();
    let name = format!("bad__{tool}");
    let flood = agent.call(&name, json!({}));
    let beside = async {
        for _ in 0..10 {
            assert!(worked(&agent.call("good__echo", json!({})).await));
        }
    };
    let (answer, ()) = tokio::join!(flood, beside);
    assert_eq!(code(&answer), Some("lost"), "{answer}");
    until_async("its health says why", async || {
        last_error(&gateway, "bad").contains("notifications and requests in a minute")
    })
    .await;
    let taken = peak().saturating_sub(before);
    assert!(taken < OF_FLOOD, "{taken}");
    until_async("it is well again", async || {
        worked(&agent.call("bad__calm", json!({})).await)
    })
    .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_million_changes_of_a_list() {
    disconnected("changes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_thousand_questions() {
    disconnected("questions").await;
}

/// Lists have limits, and the error names the limit.
#[tokio::test(flavor = "multi_thread")]
async fn endless_pages() {
    let mut server = hostile();
    server["args"].as_array_mut().unwrap().push(json!("pages"));
    server["limits"] = json!({"list_size": "8MiB"});
    let before = peak();
    let (gateway, _shop) = started(server).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    until_async("the other is listed", async || {
        !agent.tools().await.is_empty()
    })
    .await;
    let answer = agent.call("bad__t1", json!({})).await;
    assert!(code(&answer).is_some(), "{answer}");
    until_async("its health says why", async || {
        last_error(&gateway, "bad").contains("`limits.list_size`")
    })
    .await;
    let taken = peak().saturating_sub(before);
    assert!(taken < OF_FLOOD, "{taken}");
    gateway.stop().await;
}

/// A batch has a bound, and one within it is answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_very_many_pings() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::open_at(&gateway.url, "2025-03-26", &json!({}), &[]).await;
    let batch = |count: usize| {
        let pings = (1..=count).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        Value::Array(pings.collect()).to_string()
    };
    let (before, began) = (peak(), Instant::now());
    let large = batch(120_000);
    let refused = agent.post_text(&large, &[]).await;
    assert_eq!(refused.status().as_u16(), 400);
    let text = refused.text().await.unwrap();
    assert!(text.contains("more than 100 messages"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(20));
    let taken = peak().saturating_sub(before);
    assert!(taken < OF_FLOOD, "{taken}");
    let answered = agent.post_text(&batch(100), &[]).await;
    let answers: Value = serde_json::from_str(&answered.text().await.unwrap()).unwrap();
    assert_eq!(answers.as_array().unwrap().len(), 100);
    gateway.stop().await;
}
