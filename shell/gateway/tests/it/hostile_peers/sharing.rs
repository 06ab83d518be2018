use std::time::{Duration, Instant};

use serde_json::json;
use toolwarden_mcp::Era;

use super::{hostile, upstream};
use crate::guarding::{agent_of, code, identity, worked};
use crate::support::{TestGateway, until_async};

/// Calls of one principal that take too long block the server for that principal, not for others.
#[tokio::test(flavor = "multi_thread")]
async fn one_principal_opens_the_breaker_for_itself_alone() {
    let mut server = hostile();
    server["sessions"] = json!("isolated");
    server["timeouts"] = json!({"request": "1s", "list": "20s", "start": "20s"});
    server["breaker"] = json!({"failures": 2, "pause": "10m"});
    let settings = json!({"servers": {"bad": server}, "identity": identity(&["ada", "eve"])});
    let gateway = TestGateway::start(&settings).await;
    let eve = agent_of(Era::Handshake, &gateway.url, "eve", &[]).await;
    let ada = agent_of(Era::Handshake, &gateway.url, "ada", &[]).await;
    until_async("it is listed", async || !ada.tools().await.is_empty()).await;
    until_async("eve is refused", async || {
        let answer = eve.call("bad__hang", json!({})).await;
        code(&answer) == Some("open_for_principal")
    })
    .await;
    let answer = ada.call("bad__calm", json!({})).await;
    assert!(worked(&answer), "{answer}");
    assert_eq!(
        code(&eve.call("bad__calm", json!({})).await),
        Some("open_for_principal")
    );
    gateway.stop().await;
}

/// A principal that fills its share of the requests in flight leaves room for others.
#[tokio::test(flavor = "multi_thread")]
async fn one_principal_has_a_share_of_the_requests_in_flight() {
    let mut server = hostile();
    server["sessions"] = json!("isolated");
    server["concurrency"] = json!(4);
    let settings = json!({"servers": {"bad": server}, "identity": identity(&["ada", "eve"])});
    let gateway = TestGateway::start(&settings).await;
    let eve = agent_of(Era::Handshake, &gateway.url, "eve", &[]).await;
    let ada = agent_of(Era::Handshake, &gateway.url, "ada", &[]).await;
    until_async("it is listed", async || !ada.tools().await.is_empty()).await;
    assert!(worked(&eve.call("bad__calm", json!({})).await));
    let eve = std::sync::Arc::new(eve);
    let hanging: Vec<_> = (0..8)
        .map(|_| {
            let eve = std::sync::Arc::clone(&eve);
            tokio::spawn(async move { eve.call("bad__hang", json!({})).await })
        })
        .collect();
    let upstream = upstream(&gateway, "bad");
    until_async("eve's calls are in flight", async || {
        upstream.status().in_flight >= 3
    })
    .await;
    let began = Instant::now();
    for _ in 0..3 {
        let answer = ada.call("bad__calm", json!({})).await;
        assert!(worked(&answer), "{answer}");
    }
    assert!(began.elapsed() < Duration::from_secs(8));
    for call in hanging {
        call.abort();
    }
    gateway.stop().await;
}
