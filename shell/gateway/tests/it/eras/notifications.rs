//! Notifications of servers.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use crate::support::{Agent, Exchange, PAIRS, TestGateway, shop_of, until};

/// Subscribes to notifications in the way of the era; `updates` are resources.
async fn listening(agent: &Agent, updates: &[&str]) -> Exchange {
    match agent.era {
        Era::Handshake => {
            for uri in updates {
                agent
                    .result("resources/subscribe", json!({"uri": uri}))
                    .await;
            }
            let stream = agent.listen(None).await;
            assert_eq!((stream.status, stream.is_stream), (200, true));
            stream
        }
        Era::Stateless => {
            let mut wanted = json!({"toolsListChanged": true});
            if !updates.is_empty() {
                wanted["resourceSubscriptions"] = json!(updates);
            }
            let params = json!({"notifications": wanted});
            let mut stream = agent
                .begin_as(&json!("l-1"), "subscriptions/listen", params)
                .await;
            assert_eq!(
                stream.message().await,
                json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params":
                    {"notifications": wanted, "_meta": {"io.modelcontextprotocol/subscriptionId": "l-1"}}})
            );
            stream
        }
    }
}

/// The streams of the gateway's own news, of the lists for agents of this kind, and of two subscriptions: a
/// session has one stream for all, and the stateless era needs none for lists.
const fn streams(of_server: Era) -> usize {
    match of_server {
        Era::Handshake => 3,
        Era::Stateless => 3,
    }
}

fn news(of_agent: Era, method: &str, mut params: Value) -> Value {
    if of_agent == Era::Stateless {
        params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": "l-1"});
    }
    let mut news = json!({"jsonrpc": "2.0", "method": method});
    if params != json!({}) {
        news["params"] = params;
    }
    news
}

#[tokio::test(flavor = "multi_thread")]
async fn list_changes_are_notified() {
    for (of_agent, of_server) in PAIRS {
        let shop = shop_of(of_server);
        let gateway = TestGateway::before(&[("shop", &shop)]).await;
        let agent = Agent::of(of_agent, &gateway.url, "{}").await;
        assert_eq!(agent.tools().await.len(), 7);
        until("the gateway listens", || shop.shop.listeners() > 0).await;
        let mut stream = listening(&agent, &[]).await;
        // The server's notification is forwarded, although the gateway sees no change.
        shop.shop.notify_list_changed();
        let changed = news(of_agent, "notifications/tools/list_changed", json!({}));
        assert_eq!(
            stream.message().await,
            changed,
            "{of_agent:?} {of_server:?}"
        );
        let mut fewer = toolwarden_demo::tools();
        fewer.pop();
        shop.shop.set_tools(&fewer);
        shop.shop.notify_list_changed();
        assert_eq!(
            stream.message().await,
            changed,
            "{of_agent:?} {of_server:?}"
        );
        assert_eq!(agent.tools().await.len(), 6, "{of_agent:?} {of_server:?}");
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resource_updates_reach_subscribers_once() {
    for (of_agent, of_server) in PAIRS {
        let shop = shop_of(of_server);
        let gateway = TestGateway::before(&[("shop", &shop)]).await;
        let agent = Agent::of(of_agent, &gateway.url, "{}").await;
        // Before the first list of a server, its tools count as a change.
        agent.tools().await;
        until("the gateway listens", || shop.shop.listeners() > 0).await;
        let uris = ["orders://A-1001", "orders://today"];
        let mut stream = listening(&agent, &uris).await;
        until("the server tells", || {
            shop.shop.listeners() == streams(of_server)
        })
        .await;
        for uri in ["orders://other", "orders://A-1001", "orders://today"] {
            shop.shop.notify_resource_updated(uri);
        }
        let mut told = [stream.message().await, stream.message().await];
        told.sort_by_key(|it| it["params"]["uri"].to_string());
        let expected = uris.map(|uri| {
            let method = "notifications/resources/updated";
            news(of_agent, method, json!({"uri": uri}))
        });
        assert_eq!(told, expected, "{of_agent:?} {of_server:?}");
        if of_agent == Era::Handshake {
            let params = json!({"uri": "orders://today"});
            agent.result("resources/unsubscribe", params).await;
            shop.shop.notify_resource_updated("orders://today");
            shop.shop.notify_resource_updated("orders://A-1001");
            let told = stream.message().await;
            assert_eq!(told["params"]["uri"], "orders://A-1001", "{of_server:?}");
        }
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_streams_are_released() {
    for of_server in [Era::Handshake, Era::Stateless] {
        let shop = shop_of(of_server);
        let gateway = TestGateway::before(&[("shop", &shop)]).await;
        let agent = Agent::of(Era::Stateless, &gateway.url, "{}").await;
        agent.tools().await;
        until("the gateway listens", || shop.shop.listeners() > 0).await;
        let one = listening(&agent, &["orders://today"]).await;
        // Two agents of one principal may choose the same id.
        let mut other = listening(&agent, &["orders://A-1001"]).await;
        until("the server tells", || {
            shop.shop.listeners() == streams(of_server)
        })
        .await;
        drop(one);
        match of_server {
            Era::Handshake => {
                until("the server is notified", || {
                    let seen = shop.shop.seen();
                    seen.methods.get("resources/unsubscribe") == Some(&1)
                })
                .await;
            }
            Era::Stateless => {
                until("the stream ends", || shop.shop.listeners() == 2).await;
            }
        }
        for uri in ["orders://today", "orders://A-1001"] {
            shop.shop.notify_resource_updated(uri);
        }
        let told = other.message().await;
        assert_eq!(told["params"]["uri"], "orders://A-1001", "{of_server:?}");
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_stateless_agents_end_with_the_gateway() {
    let shop = shop_of(Era::Stateless);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::of(Era::Stateless, &gateway.url, "{}").await;
    let mut stream = listening(&agent, &[]).await;
    let stopping = tokio::spawn(gateway.stop());
    let last = stream.rest().await.pop().unwrap();
    assert_eq!(
        last,
        json!({"jsonrpc": "2.0", "id": "l-1", "result": {"resultType": "complete",
            "_meta": {"io.modelcontextprotocol/subscriptionId": "l-1"}}})
    );
    stopping.await.unwrap();
}
