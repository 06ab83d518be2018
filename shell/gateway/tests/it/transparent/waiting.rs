//! A server that does not respond delays no list of other servers.

use std::time::{Duration, Instant};

use serde_json::json;
use toolwarden_mcp::Era;

use crate::support::{Agent, TestGateway, at, shop_of, until_async};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_waited_for_once() {
    const LIMIT: Duration = Duration::from_secs(3);
    let (well, hanging) = (shop_of(Era::Handshake), shop_of(Era::Handshake));
    let gateway = TestGateway::start(&json!({
        "timeouts": {"list": "3s"},
        "servers": {"well": at(&well), "hanging": at(&hanging)},
    }))
    .await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    assert_eq!(agent.tools().await.len(), 14);
    hanging.shop.stop_answering();
    for shop in [&well, &hanging] {
        shop.shop.notify_list_changed();
    }
    // The first list may wait for it.
    until_async("the list is known to be stale", async || {
        let began = Instant::now();
        assert_eq!(agent.tools().await.len(), 14, "as it was last");
        began.elapsed() >= LIMIT
    })
    .await;
    let began = Instant::now();
    for _ in 0..11 {
        assert_eq!(agent.tools().await.len(), 14, "as it was last");
        agent.names("resources/list", "resources", "uri").await;
    }
    let another = Agent::of(Era::Stateless, &gateway.url, "{}").await;
    assert!(another.tools().await.len() >= 7);
    assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());
    hanging.shop.recover();
    let mut fewer = toolwarden_demo::tools();
    fewer.pop();
    hanging.shop.set_tools(&fewer);
    until_async(
        "it is asked in the background until it answers",
        async || agent.tools().await.len() == 13,
    )
    .await;
    gateway.stop().await;
}

/// Without progress the call would run out of time.
#[tokio::test(flavor = "multi_thread")]
async fn the_progress_of_a_call_extends_its_time() {
    for of_server in [Era::Handshake, Era::Stateless] {
        let shop = shop_of(of_server);
        let gateway = TestGateway::start(&json!({
            "timeouts": {"request": "1s"},
            "servers": {"shop": at(&shop)},
        }))
        .await;
        let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
        let arguments = json!({"format": "csv", "steps": 6, "pause_ms": 400});
        let call = json!({"name": "shop__export_report", "arguments": arguments,
            "_meta": {"progressToken": 1}});
        let result = agent.result("tools/call", call.clone()).await;
        assert_eq!(
            result["content"][0]["text"], "the report is written",
            "{of_server:?}"
        );
        gateway.stop().await;
    }
}
