//! The handling of drift, by class and by server.

use serde_json::json;
use toolwarden_mcp::Era;

use super::{approve_all, at_with, code, worked};
use crate::support::{Agent, TestGateway, shop_of, until_async};

/// The same drift at four servers, and four measures against it.
#[tokio::test(flavor = "multi_thread")]
async fn each_server_has_its_own_drift_action() {
    let shops = [(); 4].map(|()| shop_of(Era::Handshake));
    let measures = ["serve", "hide", "quarantine", "block-server"];
    let servers = shops.iter().zip(measures).map(|(shop, measure)| {
        let watch =
            json!({"watch": {"before_call": "0s", "on_drift": measure, "on_finding": measure}});
        (measure.to_owned(), at_with(shop, watch))
    });
    let servers: serde_json::Map<_, _> = servers.collect();
    let gateway = TestGateway::start(&json!({"servers": servers})).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let all = agent.tools().await.len();
    assert_eq!(all, 28);
    for shop in &shops {
        shop.shop.drift();
    }
    let arguments = json!({"order_id": "A-1001", "amount": 5, "reason": "r"});
    let mut codes = Vec::new();
    for measure in measures {
        let answer = agent
            .call(&format!("{measure}__refund_order"), arguments.clone())
            .await;
        codes.push(code(&answer).map(str::to_owned));
    }
    let refused = Some("quarantined".to_owned());
    assert_eq!(codes, [None, refused.clone(), refused.clone(), refused]);
    // One server is blocked as a whole, two lack one tool.
    let tools = agent.tools().await;
    let count = |server: &str| tools.iter().filter(|it| it.starts_with(server)).count();
    assert_eq!(measures.map(count), [7, 6, 6, 0]);
    let answer = agent.call("block-server__echo", json!({})).await;
    assert_eq!(code(&answer), Some("quarantined"));
    let reason = &answer["result"]["_meta"]["toolwarden/denial"]["reason"];
    assert!(
        reason.as_str().unwrap().contains("refund_order"),
        "{reason}"
    );
    let prompts = agent.names("prompts/list", "prompts", "name").await;
    assert!(
        !prompts.iter().any(|it| it.starts_with("block")),
        "{prompts:?}"
    );
    // All of them raised an alert, also where the tool is served.
    let servers = gateway.gateway.watch().servers().await.unwrap();
    let own = servers.iter().filter(|it| it.server.key.scope == "default");
    let open: Vec<_> = own.map(|it| it.open_alerts).collect();
    assert_eq!(open, [1, 1, 1, 1]);
    approve_all(&gateway.gateway).await;
    until_async("everything is served", async || {
        agent.tools().await.len() == all
    })
    .await;
    assert!(worked(&agent.call("block-server__echo", json!({})).await));
    gateway.stop().await;
}

/// A class has its own measure, and a new tool waits for approval.
#[tokio::test(flavor = "multi_thread")]
async fn each_class_has_its_own_drift_action() {
    let shop = shop_of(Era::Stateless);
    let tool = |name: &str, description: &str, required: &[&str]| {
        json!({"name": name, "description": description, "inputSchema": {
            "type": "object", "properties": {"a": {"type": "string"}}, "required": required}})
    };
    let first = [
        tool("reworded", "Does one thing.", &[]),
        tool("narrowed", "Does it.", &[]),
    ];
    shop.shop.set_tools(&first);
    let watch = json!({"before_call": "0s", "on_drift": {"text": "serve", "breaking": "hide"}});
    let settings = json!({"servers": {"s": at_with(&shop, json!({"watch": watch}))}});
    let gateway = TestGateway::start(&settings).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    assert_eq!(agent.tools().await, ["s__reworded", "s__narrowed"]);
    shop.shop.set_tools(&[
        tool("reworded", "Does another thing.", &[]),
        tool("narrowed", "Does it.", &["a"]),
        tool("added", "Is new.", &[]),
    ]);
    assert!(worked(&agent.call("s__reworded", json!({})).await));
    for (name, arguments) in [("s__narrowed", json!({"a": "x"})), ("s__added", json!({}))] {
        let answer = agent.call(name, arguments).await;
        assert_eq!(code(&answer), Some("quarantined"), "{name}: {answer}");
    }
    assert_eq!(agent.tools().await, ["s__reworded"]);
    gateway.stop().await;
}

/// Names are part of a definition, too. Two tools with the same name belong to no server.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_comes_twice_is_withheld() {
    let shop = shop_of(Era::Stateless);
    shop.shop.set_tools(&[
        json!({"name": "t", "description": "One.", "inputSchema": {"type": "object"}}),
        json!({"name": "t", "description": "Two.", "inputSchema": {"type": "object"}}),
        json!({"name": "u", "inputSchema": {"type": "object"}}),
    ]);
    let gateway = TestGateway::before(&[("s", &shop)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    assert_eq!(agent.tools().await, ["s__u"]);
    assert_eq!(
        code(&agent.call("s__t", json!({})).await),
        Some("quarantined")
    );
    gateway.stop().await;
}

/// A blocked server receives nothing, even if it is the only server.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_blocked_server_is_served() {
    let shop = shop_of(Era::Handshake);
    let watch = json!({"watch": {"before_call": "0s", "on_drift": "block-server"}});
    let settings = json!({"servers": {"shop": at_with(&shop, watch)}, "prefix": "never"});
    let gateway = TestGateway::start(&settings).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    assert!(worked(&agent.call("echo", json!({})).await));
    shop.shop.drift();
    let answer = agent.call("echo", json!({})).await;
    assert_eq!(code(&answer), Some("quarantined"), "{answer}");
    let methods = [
        ("prompts/get", json!({"name": "x"})),
        ("resources/read", json!({"uri": "orders://today"})),
        ("resources/subscribe", json!({"uri": "orders://today"})),
        ("tasks/get", json!({"taskId": "1"})),
        ("vendor/anything", json!({})),
    ];
    for (method, params) in methods {
        let answer = agent.ask(method, params).await;
        assert!(answer["error"].is_object(), "{method}: {answer}");
        assert!(!shop.shop.seen().methods.contains_key(method), "{method}");
    }
    gateway.stop().await;
}
