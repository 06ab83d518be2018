use serde_json::{Value, json};
use toolwarden_demo::{DemoServer, ShopOptions};
use toolwarden_mcp::Era;

use crate::support::{Agent, TestGateway, shop_of};

fn offering(names: &[&str]) -> DemoServer {
    let server = DemoServer::start(ShopOptions::default()).unwrap();
    let tools = names.iter();
    let tools = tools.map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
    server.shop.set_tools(&tools.collect::<Vec<_>>());
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn names_by_mode() {
    let (a, b, c) = (
        offering(&["x", "only_a"]),
        offering(&["x"]),
        offering(&["y"]),
    );
    let servers = [("a", &a), ("b", &b), ("c", &c)];
    let cases: [(&str, &[&str]); 3] = [
        ("always", &["a__x", "a__only_a", "b__x", "c__y"]),
        ("conflict", &["a__x", "only_a", "b__x", "y"]),
        ("never", &["only_a", "y"]),
    ];
    for (prefix, names) in cases {
        let settings = json!({"prefix": prefix});
        let gateway = TestGateway::before_with(&servers, settings).await;
        for era in [Era::Handshake, Era::Stateless] {
            let agent = Agent::of(era, &gateway.url, "{}").await;
            assert_eq!(agent.tools().await, names, "{prefix}");
            for name in names {
                let answer = agent.call(name, json!({})).await;
                let sent = &answer["result"]["structuredContent"]["params"]["name"];
                let own = name.rsplit("__").next().unwrap();
                assert_eq!(sent, own, "{prefix} {name}: {answer}");
            }
        }
        let told = gateway.gateway.collisions();
        if prefix == "never" {
            let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
            let refused = agent.call("x", json!({})).await;
            let text = refused["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("`a` and `b` both have it"), "{text}");
            assert_eq!(
                refused["result"]["_meta"]["toolwarden/denial"]["code"],
                "collision"
            );
            assert_eq!(told.len(), 1, "{told:?}");
        } else {
            assert_eq!(told, [""; 0]);
        }
        gateway.stop().await;
    }
    assert_eq!(a.shop.seen().calls_of("x"), 4);
    assert_eq!(b.shop.seen().calls_of("x"), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn separators_are_chosen() {
    let (a, b) = (offering(&["x"]), offering(&["x"]));
    let settings = json!({"separator": "."});
    let gateway = TestGateway::before_with(&[("a", &a), ("b", &b)], settings).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    assert_eq!(agent.tools().await, ["a.x", "b.x"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_eras_of_servers_do_not_matter() {
    let (old, new) = (shop_of(Era::Handshake), shop_of(Era::Stateless));
    let gateway = TestGateway::before(&[("old", &old), ("new", &new)]).await;
    for era in [Era::Handshake, Era::Stateless] {
        let agent = Agent::of(era, &gateway.url, "{}").await;
        assert_eq!(agent.tools().await.len(), 14);
        for (server, shop) in [("old", &old), ("new", &new)] {
            let before = shop.shop.seen().calls_of("echo");
            let answer = agent
                .call(&format!("{server}__echo"), json!({"s": server}))
                .await;
            let arguments = &answer["result"]["structuredContent"]["params"]["arguments"];
            assert_eq!(arguments, &json!({"s": server}), "{answer}");
            assert_eq!(shop.shop.seen().calls_of("echo"), before + 1);
        }
        let none = agent.call("old__nothing", json!({})).await;
        assert_eq!(none["result"]["isError"], Value::Bool(true), "{none}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_empty_for_collisions_says_so() {
    let (a, b) = (offering(&["x"]), offering(&["x"]));
    let settings = json!({"prefix": "never"});
    let gateway = TestGateway::before_with(&[("a", &a), ("b", &b)], settings).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let list = agent.result("tools/list", json!({})).await;
    assert_eq!(list["tools"], json!([]));
    let why = &list["_meta"]["toolwarden/empty"];
    let text = "every tool behind this gateway shares its name with another";
    assert_eq!(why["text"], text, "{why}");
    let collision = why["collisions"][0].as_str().unwrap();
    assert!(
        collision.contains("`a` and `b` both have it"),
        "{collision}"
    );
    gateway.stop().await;
}
