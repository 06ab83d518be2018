//! Agents that choose the same ids and tokens.

use serde_json::json;
use toolwarden_mcp::Era;

use crate::support::{Agent, EVERYTHING, TestGateway, shop_of};

#[tokio::test(flavor = "multi_thread")]
async fn progress_of_two_agents_is_not_mixed_up() {
    for of_server in [Era::Handshake, Era::Stateless] {
        let shop = shop_of(of_server);
        let mut entry = crate::support::at(&shop);
        entry["sessions"] = json!("shared");
        let gateway = TestGateway::start(&json!({"servers": {"shop": entry}})).await;
        let mut running = Vec::new();
        for (era, steps) in [
            (Era::Handshake, 3_u64),
            (Era::Stateless, 5),
            (Era::Handshake, 7),
        ] {
            let agent = Agent::of(era, &gateway.url, "{}").await;
            running.push(tokio::spawn(async move {
                let params = json!({
                    "name": "shop__export_report",
                    "arguments": {"steps": steps, "pause_ms": 30},
                    "_meta": {"progressToken": 1},
                });
                let mut exchange = agent.begin_as(&json!(1), "tools/call", params).await;
                (steps, exchange.rest().await)
            }));
        }
        for one in running {
            let (steps, all) = one.await.unwrap();
            let progress = all
                .iter()
                .filter(|it| it["method"] == "notifications/progress");
            let told: Vec<_> = progress
                .map(|it| {
                    (
                        it["params"]["progressToken"].clone(),
                        it["params"]["total"].clone(),
                    )
                })
                .collect();
            let expected = vec![(json!(1), json!(steps)); usize::try_from(steps).unwrap()];
            assert_eq!(told, expected, "{of_server:?}");
            assert_eq!(all.last().unwrap()["id"], 1);
        }
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_of_two_servers_are_not_mixed_up() {
    let (a, b) = (shop_of(Era::Handshake), shop_of(Era::Handshake));
    let gateway = TestGateway::before(&[("a", &a), ("b", &b)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, EVERYTHING).await;
    let mut open = Vec::new();
    for (server, order) in [("a", "A-1001"), ("b", "A-1002"), ("a", "A-1003")] {
        let params =
            json!({"name": format!("{server}__cancel_order"), "arguments": {"order_id": order}});
        let mut exchange = agent.begin("tools/call", params).await;
        let question = exchange.message().await;
        assert_eq!(
            question["params"]["message"],
            format!("Cancel order {order}?")
        );
        open.push((order, question, exchange));
    }
    let ids: std::collections::BTreeSet<String> = open
        .iter()
        .map(|(_, question, _)| question["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 3, "the ids of server requests differ");
    open.reverse();
    for (order, question, mut exchange) in open {
        let action = format!("of {order}");
        agent.respond(&question, json!({"action": action})).await;
        let done = exchange.message().await;
        let text = &done["result"]["content"][0]["text"];
        assert_eq!(text, &json!(format!("order {order} stays: {action}")));
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_cannot_answer_for_each_other() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, EVERYTHING).await;
    let other = Agent::of(Era::Handshake, &gateway.url, EVERYTHING).await;
    let params = json!({"name": "shop__cancel_order", "arguments": {"order_id": "A-1001"}});
    let mut exchange = agent.begin("tools/call", params).await;
    let question = exchange.message().await;
    let accept = json!({"action": "accept", "content": {"confirm": true}});
    other.respond(&question, accept).await;
    agent.respond(&question, json!({"action": "decline"})).await;
    let done = exchange.message().await;
    assert_eq!(
        done["result"]["content"][0]["text"], "order A-1001 stays: decline",
        "{done}"
    );
    gateway.stop().await;
}
