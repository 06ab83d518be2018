//! Servers that end, hang, lose their sessions and recover.

use std::time::{Duration, Instant};

use serde_json::json;
use toolwarden_demo::{DemoServer, ShopOptions};
use toolwarden_mcp::Era;

use crate::support::{Agent, TestGateway, at, shop_of, until, until_async};

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_session_is_unseen() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    for era in [Era::Handshake, Era::Stateless] {
        let agent = Agent::of(era, &gateway.url, "{}").await;
        assert_eq!(
            agent.call("shop__echo", json!({})).await["result"]["content"][0]["text"],
            "echo"
        );
        let before = shop.shop.seen();
        shop.shop.expire_sessions();
        let answer = agent.call("shop__echo", json!({"n": 2})).await;
        assert_eq!(
            answer["result"]["content"][0]["text"], "echo",
            "{era:?} {answer}"
        );
        let now = shop.shop.seen();
        assert_eq!(now.calls_of("echo"), before.calls_of("echo") + 1);
        assert!(now.initializes > before.initializes);
        shop.shop.expire_sessions();
        assert_eq!(agent.tools().await.len(), 7);
        let read = agent
            .result("resources/read", json!({"uri": "orders://today"}))
            .await;
        assert!(read["contents"].is_array());
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_takes_nothing_from_the_others() {
    let (good, dead, hung) = (
        shop_of(Era::Handshake),
        shop_of(Era::Handshake),
        shop_of(Era::Stateless),
    );
    dead.kill();
    hung.shop.stop_answering();
    let mut hanging = at(&hung);
    hanging["timeouts"] = json!({"list": "300ms", "start": "500ms", "request": "500ms"});
    let servers = json!({
        "dead": at(&dead),
        "hung": hanging,
        "good": at(&good),
        "none": {"command": "/nonexistent/server"},
    });
    let gateway = TestGateway::start(&json!({"servers": servers})).await;
    let began = Instant::now();
    for era in [Era::Handshake, Era::Stateless] {
        let agent = Agent::of(era, &gateway.url, "{}").await;
        let tools = agent.tools().await;
        assert_eq!(tools.len(), 7, "{tools:?}");
        assert!(tools.iter().all(|it| it.starts_with("good__")));
        let answer = agent.call("good__echo", json!({})).await;
        assert_eq!(answer["result"]["content"][0]["text"], "echo");
        let prompts = agent.names("prompts/list", "prompts", "name").await;
        assert_eq!(prompts, ["good__refund_letter"]);
        let unknown = agent.call("dead__echo", json!({})).await;
        assert_eq!(unknown["result"]["isError"], true, "{unknown}");
    }
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    // They recover on their own.
    dead.restart().unwrap();
    hung.shop.recover();
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    until_async("all servers are listed", async || {
        agent.tools().await.len() == 21
    })
    .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_later_is_listed_as_it_was_and_refused() {
    let (good, shop) = (shop_of(Era::Handshake), shop_of(Era::Handshake));
    let gateway = TestGateway::before(&[("good", &good), ("shop", &shop)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    assert_eq!(agent.tools().await.len(), 14);
    shop.kill();
    let failed = agent.call("shop__echo", json!({})).await;
    assert_eq!(failed["result"]["isError"], true, "{failed}");
    let text = failed["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("`shop`"), "{text}");
    assert_eq!(agent.tools().await.len(), 14);
    let answer = agent.call("good__echo", json!({})).await;
    assert_eq!(answer["result"]["content"][0]["text"], "echo");
    shop.restart().unwrap();
    until_async("it answers again", async || {
        let answer = agent.call("shop__echo", json!({})).await;
        answer["result"]["content"][0]["text"] == "echo"
    })
    .await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hung_call_ends_in_time() {
    let shop = shop_of(Era::Handshake);
    let mut entry = at(&shop);
    entry["timeouts"] = json!({"request": "300ms"});
    let gateway = TestGateway::start(&json!({"servers": {"shop": entry}})).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    assert_eq!(agent.tools().await.len(), 7);
    agent.call("shop__echo", json!({})).await;
    shop.shop.stop_answering();
    let failed = agent.call("shop__echo", json!({})).await;
    assert_eq!(
        failed["result"]["_meta"]["toolwarden/denial"]["code"], "timeout",
        "{failed}"
    );
    shop.shop.recover();
    let answer = agent.call("shop__echo", json!({})).await;
    assert_eq!(answer["result"]["content"][0]["text"], "echo", "{answer}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_share_a_session_only_where_that_is_said() {
    for (sharing, sessions) in [("isolated", 3), ("shared", 1)] {
        let shop = shop_of(Era::Handshake);
        let mut entry = at(&shop);
        entry["sessions"] = json!(sharing);
        let gateway = TestGateway::start(&json!({"servers": {"shop": entry}})).await;
        let one = Agent::of(Era::Handshake, &gateway.url, "{}").await;
        let other = Agent::of(Era::Handshake, &gateway.url, "{}").await;
        for agent in [&one, &other] {
            for _ in 0..3 {
                let answer = agent.call("shop__echo", json!({})).await;
                assert_eq!(answer["result"]["content"][0]["text"], "echo");
            }
        }
        assert_eq!(shop.shop.open_sessions(), sessions, "{sharing}");
        // Stateless agents are distinguished by the sessions they name.
        let mut stateless = Agent::of(Era::Stateless, &gateway.url, "{}").await;
        for name in ["s-1", "s-2", "s-1"] {
            stateless.meta = json!({"toolwarden/session": name});
            let answer = stateless.call("shop__echo", json!({})).await;
            assert_eq!(answer["result"]["content"][0]["text"], "echo");
        }
        let more = if sharing == "shared" { 0 } else { 2 };
        let sessions = sessions + more;
        assert_eq!(shop.shop.open_sessions(), sessions, "{sharing}");
        assert_eq!(one.end().await, 200);
        let left = sessions.saturating_sub(1).max(1);
        until("its session ends with it", || {
            shop.shop.open_sessions() == left
        })
        .await;
        gateway.stop().await;
        assert_eq!(shop.shop.open_sessions(), 0, "{sharing}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_streams_affect_no_other_agent() {
    let shop = DemoServer::start(ShopOptions::default()).unwrap();
    let old = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("new", &shop), ("old", &old)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    until("the gateway listens", || {
        old.shop.listeners() > 0 && shop.shop.listeners() > 0
    })
    .await;
    for _ in 0..3 {
        old.shop.close_streams();
        shop.shop.close_streams();
        for tool in ["old__echo", "new__echo"] {
            let answer = agent.call(tool, json!({})).await;
            assert_eq!(answer["result"]["content"][0]["text"], "echo", "{answer}");
        }
    }
    assert_eq!(
        old.shop.seen().initializes,
        2,
        "the gateway's own and the agent's"
    );
    until("the gateway listens again", || old.shop.listeners() > 0).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lazy_servers_start_on_first_use() {
    let shop = shop_of(Era::Handshake);
    let mut entry = at(&shop);
    entry["start"] = json!("lazy");
    let gateway = TestGateway::start(&json!({"servers": {"shop": entry}})).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(shop.shop.seen().initializes, 0);
    // An agent need not list tools to call one.
    let agent = Agent::of(Era::Stateless, &gateway.url, "{}").await;
    let answer = agent.call("shop__echo", json!({})).await;
    assert_eq!(answer["result"]["content"][0]["text"], "echo", "{answer}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_session_restores_subscriptions() {
    for sharing in ["isolated", "shared"] {
        let shop = shop_of(Era::Handshake);
        let mut entry = at(&shop);
        entry["sessions"] = json!(sharing);
        let gateway = TestGateway::start(&json!({"servers": {"shop": entry}})).await;
        let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
        let uri = "orders://today";
        agent
            .result("resources/subscribe", json!({"uri": uri}))
            .await;
        agent
            .result("logging/setLevel", json!({"level": "error"}))
            .await;
        let count = |method: &str| {
            let seen = shop.shop.seen();
            seen.methods.get(method).copied().unwrap_or_default()
        };
        let (subscribed, levels) = (count("resources/subscribe"), count("logging/setLevel"));
        shop.shop.expire_sessions();
        agent.call("shop__echo", json!({})).await;
        until("the server is notified again", || {
            count("resources/subscribe") > subscribed && count("logging/setLevel") > levels
        })
        .await;
        let mut stream = agent.listen(None).await;
        until_async("the change is reported", async || {
            shop.shop.notify_resource_updated(uri);
            tokio::time::sleep(Duration::from_millis(20)).await;
            let conversations = gateway.gateway.conversations().all();
            conversations
                .iter()
                .any(|it| it.standalone_stream.newest() > 0)
        })
        .await;
        assert_eq!(stream.message().await["params"]["uri"], uri, "{sharing}");
        gateway.stop().await;
    }
}
