//! The shortest path through the whole gateway.

use serde_json::json;
use toolwarden_demo::{DemoServer, ShopOptions};

use crate::support::{Agent, TestGateway, at};

#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_through_and_a_drift_is_caught() {
    let server = DemoServer::start(ShopOptions::default()).unwrap();
    let gateway = TestGateway::start(&json!({"servers": {"shop": at(&server)}})).await;
    let agent = Agent::open(&gateway.url, &json!({})).await;
    let tools = agent.tools().await;
    assert!(tools.contains(&"shop__echo".to_owned()), "{tools:?}");
    let answer = agent.call("shop__echo", json!({"text": "hi"})).await;
    assert!(answer["result"]["content"].is_array(), "{answer}");
    let refused = agent.call("shop__nothing", json!({})).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    server.shop.drift();
    server.shop.notify_list_changed();
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let tools = agent.tools().await;
    assert!(
        !tools.contains(&"shop__refund_order".to_owned()),
        "{tools:?}"
    );
    let refused = agent
        .call("shop__refund_order", json!({"order_id": "o-1"}))
        .await;
    assert_eq!(
        refused["result"]["_meta"]["toolwarden/denial"]["code"], "quarantined",
        "{refused}"
    );
    gateway.stop().await;
}
