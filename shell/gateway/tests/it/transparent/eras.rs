//! The era of a server follows what the agent needs.

use serde_json::json;
use toolwarden_demo::{DemoServer, ShopOptions, SupportedEras};
use toolwarden_mcp::Era;

use crate::support::{Agent, EVERYTHING, TestGateway, at};

fn shop(eras: SupportedEras) -> DemoServer {
    DemoServer::start(ShopOptions {
        eras,
        ..ShopOptions::default()
    })
    .unwrap()
}

/// Calls a tool that asks the agent back, in whatever way its era has.
async fn asks_back(agent: &Agent) -> String {
    let call = json!({"name": "cancel_order", "arguments": {"order_id": "A-1002"}});
    match agent.era {
        Era::Handshake => {
            let mut exchange = agent.begin("tools/call", call).await;
            let question = exchange.message().await;
            assert_eq!(question["method"], "elicitation/create", "{question}");
            let accept = json!({"action": "accept", "content": {"confirm": true}});
            agent.respond(&question, accept).await;
            let answer = exchange.rest().await.pop().unwrap();
            answer["result"]["content"][0]["text"]
                .as_str()
                .unwrap()
                .to_owned()
        }
        Era::Stateless => {
            let result = agent.result("tools/call", call.clone()).await;
            assert_eq!(result["resultType"], "input_required", "{result}");
            let name = result["inputRequests"]
                .as_object()
                .unwrap()
                .keys()
                .next()
                .unwrap();
            let mut again = call;
            again["requestState"] = result["requestState"].clone();
            again["inputResponses"] =
                json!({name: {"action": "accept", "content": {"confirm": true}}});
            let result = agent.result("tools/call", again).await;
            result["content"][0]["text"].as_str().unwrap().to_owned()
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_both_eras_speaks_that_of_the_agent() {
    for era in [Era::Handshake, Era::Stateless] {
        let server = shop(SupportedEras::Both);
        let settings = json!({"prefix": "never", "servers": {"shop": at(&server)}});
        let gateway = TestGateway::start(&settings).await;
        let agent = Agent::of(era, &gateway.url, EVERYTHING).await;
        assert_eq!(
            asks_back(&agent).await,
            "order A-1002 is cancelled",
            "{era:?}"
        );
        let seen = server.shop.seen();
        let handshakes = seen.initializes > 0;
        assert_eq!(
            handshakes,
            era == Era::Handshake,
            "{era:?}: {:?}",
            seen.methods
        );
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_force_an_era() {
    for (protocol, handshakes) in [("handshake", true), ("stateless", false)] {
        for era in [Era::Handshake, Era::Stateless] {
            let server = shop(SupportedEras::Both);
            let entry = json!({"url": server.url, "protocol": protocol});
            let settings = json!({"prefix": "never", "servers": {"shop": entry}});
            let gateway = TestGateway::start(&settings).await;
            let agent = Agent::of(era, &gateway.url, EVERYTHING).await;
            assert_eq!(
                asks_back(&agent).await,
                "order A-1002 is cancelled",
                "{protocol} {era:?}"
            );
            let seen = server.shop.seen();
            assert_eq!(seen.initializes > 0, handshakes, "{protocol} {era:?}");
            gateway.stop().await;
        }
    }
    let stateless = shop(SupportedEras::Stateless);
    let entry = json!({"url": stateless.url, "protocol": "handshake"});
    let gateway = TestGateway::start(&json!({"servers": {"shop": entry}})).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    assert_eq!(agent.tools().await, [""; 0], "the server has no handshake");
    gateway.stop().await;
}
