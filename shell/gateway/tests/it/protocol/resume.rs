//! Agents that lose a connection resume where they stopped.

use serde_json::json;
use toolwarden_mcp::Era;

use crate::support::{Agent, EVERYTHING, TestGateway, shop_of, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_stream_of_a_request_goes_on() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let report = json!({
        "name": "shop__export_report",
        "arguments": {"steps": 4, "pause_ms": 100},
        "_meta": {"progressToken": "p"},
    });
    let mut stream = agent.begin_as(&json!("r"), "tools/call", report).await;
    // The first event carries only the position of the stream.
    let first = stream.event().await.unwrap();
    assert_eq!(first.text, "");
    assert!(first.id.is_some());
    assert_eq!(stream.message().await["method"], "notifications/message");
    assert_eq!(stream.message().await["params"]["progress"], 1);
    let last = stream.last_id.clone().unwrap();
    drop(stream);
    let mut resumed = agent.listen(Some(&last)).await;
    let rest = resumed.rest().await;
    let progress = rest
        .iter()
        .filter_map(|it| it["params"]["progress"].as_u64());
    assert_eq!(progress.collect::<Vec<_>>(), [2, 3, 4]);
    assert_eq!(rest.last().unwrap()["id"], "r");
    assert_eq!(
        rest.last().unwrap()["result"]["content"][0]["text"],
        "the report is written"
    );
    assert_eq!(shop.shop.seen().cancelled, 0);
    // A stream that was read to its end is gone.
    assert_eq!(agent.listen(Some(&last)).await.status, 404);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_waits_for_a_resuming_agent() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, EVERYTHING).await;
    let mut stream = agent
        .begin(
            "tools/call",
            json!({"name": "shop__cancel_order", "arguments": {"order_id": "A-1002"}}),
        )
        .await;
    let question = stream.message().await;
    let last = stream.last_id.clone().unwrap();
    drop(stream);
    let answer = json!({"action": "accept", "content": {"confirm": true}});
    agent.respond(&question, answer).await;
    let mut resumed = agent.listen(Some(&last)).await;
    let rest = resumed.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(
        rest[0]["result"]["content"][0]["text"],
        "order A-1002 is cancelled"
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_standing_stream_goes_on() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    until("the gateway listens", || shop.shop.listeners() == 1).await;
    let uri = "orders://today";
    agent
        .result("resources/subscribe", json!({"uri": uri}))
        .await;
    // The gateway's own stream, the one for lists, and the one of the session.
    until("the link listens", || shop.shop.listeners() == 3).await;
    let mut stream = agent.listen(None).await;
    shop.shop.notify_resource_updated(uri);
    assert_eq!(stream.message().await["params"]["uri"], uri);
    let last = stream.last_id.clone().unwrap();
    drop(stream);
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    // Events are kept while there is no reader.
    shop.shop.notify_resource_updated(uri);
    let mut resumed = agent.listen(Some(&last)).await;
    assert_eq!(resumed.message().await["params"]["uri"], uri);
    drop(resumed);
    let mut again = agent.listen(Some(&last)).await;
    assert_eq!(
        again.message().await["params"]["uri"],
        uri,
        "it can be read again"
    );
    // A newer reader replaces the older one.
    let mut newer = agent.listen(None).await;
    shop.shop.notify_resource_updated(uri);
    assert_eq!(
        newer.message().await["method"],
        "notifications/resources/updated"
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn older_versions_get_no_empty_event() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::open_at(&gateway.url, "2025-06-18", &json!({}), &[]).await;
    let report = json!({"name": "shop__export_report", "arguments": {"steps": 1, "pause_ms": 1}});
    let mut stream = agent.begin("tools/call", report).await;
    let first = stream.event().await.unwrap();
    assert!(first.text.contains("notifications/message"), "{first:?}");
    assert!(first.id.is_some());
    gateway.stop().await;
}
