//! A denied call causes no request at a server: no list is fetched and no server is started for it.

use serde_json::{Value, json};
use toolwarden_demo::DemoServer;
use toolwarden_mcp::Era;

use super::{ERAS, agent_of, at_with, bearer_of, code, echoing, identity, worked};
use crate::support::{TestGateway, http, shop_of};

const TOOLS: [&str; 5] = ["secret", "other-group", "later", "seldom", "open"];

/// A gateway before one server, with a policy for its tools.
async fn gateway_before(server: &DemoServer, more: Value, policy: Value) -> TestGateway {
    TestGateway::start(&json!({
        "servers": {"shop": at_with(server, more)},
        "identity": identity(&["ada", "bob"]),
        "policy": policy,
    }))
    .await
}

fn policy() -> Value {
    json!({
        "tools": {
            "shop__secret": {"required_permissions": ["secret:read"]},
            "shop__other-group": {"group": ["other"]},
            "shop__later": {"available_in_states": ["started"]},
            "shop__seldom": {"rate_limit": {"agent": 1, "window": "1h"}},
            "shop__open": {"rate_limit": "unlimited"},
        },
        "principals": {"ada": {}, "bob": {"permissions": ["secret:read"]}},
    })
}

/// How many requests and notifications the server received.
fn requests(server: &DemoServer) -> u64 {
    server.shop.seen().methods.values().sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_not_started_for_a_denied_call() {
    for server_era in ERAS {
        let server = shop_of(server_era);
        server.shop.set_tools(&echoing(&TOOLS));
        let gateway = gateway_before(&server, json!({"start": "lazy"}), policy()).await;
        let ada = agent_of(Era::Stateless, &gateway.url, "ada", &[]).await;
        for (tool, expected) in [
            ("shop__secret", "missing_permissions"),
            ("shop__other-group", "filtered_by_group"),
            ("shop__later", "filtered_by_state"),
        ] {
            let answer = ada.call(tool, json!({})).await;
            assert_eq!(code(&answer), Some(expected), "{answer}");
            assert_eq!(requests(&server), 0, "{tool}");
        }
        // A tool of the same server that the agent may call is still found.
        let answer = ada.call("shop__open", json!({})).await;
        assert!(worked(&answer), "{answer}");
        assert_eq!(server.shop.seen().calls_of("open"), 1);
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_list_is_not_fetched_for_a_denied_call() {
    for era in ERAS {
        let server = shop_of(Era::Handshake);
        server.shop.set_tools(&echoing(&TOOLS));
        let watch = json!({"watch": {"before_call": "0s"}});
        let gateway = gateway_before(&server, watch, policy()).await;
        let ada = agent_of(era, &gateway.url, "ada", &[]).await;
        let answer = ada.call("shop__seldom", json!({})).await;
        assert!(worked(&answer), "{answer}");
        let before = requests(&server);
        for (tool, expected) in [
            ("shop__seldom", "rate_limited"),
            ("shop__secret", "missing_permissions"),
            ("shop__other-group", "filtered_by_group"),
            ("shop__later", "filtered_by_state"),
        ] {
            let answer = ada.call(tool, json!({})).await;
            assert_eq!(code(&answer), Some(expected), "{answer}");
            let decided = decide(&gateway, "ada", tool).await;
            assert_eq!(decided["code"], expected, "{decided}");
        }
        assert_eq!(requests(&server), before);
        let lists = server.shop.seen().lists;
        let answer = ada.call("shop__open", json!({})).await;
        assert!(worked(&answer), "{answer}");
        assert!(server.shop.seen().lists > lists, "the list is due");
        gateway.stop().await;
    }
}

/// A decision over the API.
async fn decide(gateway: &TestGateway, principal: &str, tool: &str) -> Value {
    let url = format!("{}/api/v1/decide", gateway.root());
    let request = http(&url)
        .post(&url)
        .header("authorization", bearer_of(principal))
        .json(&json!({"tool": tool}));
    request.send().await.unwrap().json().await.unwrap()
}

/// Tools that the policy does not name follow the defaults of their server.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tool_is_looked_for_only_where_the_agent_may_call_it() {
    let server = shop_of(Era::Handshake);
    server.shop.set_tools(&echoing(&TOOLS));
    let more = json!({
        "start": "lazy",
        "tool_defaults": {"required_permissions": ["secret:read"]},
    });
    let policy = json!({
        "tools": {"open": {}},
        "principals": {"ada": {}, "bob": {"permissions": ["secret:read"]}},
    });
    let gateway = gateway_before(&server, more, policy).await;
    let ada = agent_of(Era::Stateless, &gateway.url, "ada", &[]).await;
    let bob = agent_of(Era::Stateless, &gateway.url, "bob", &[]).await;
    let answer = ada.call("shop__secret", json!({})).await;
    assert_eq!(code(&answer), Some("unknown_tool"), "{answer}");
    assert_eq!(requests(&server), 0);
    let answer = bob.call("shop__secret", json!({})).await;
    assert!(worked(&answer), "{answer}");
    // Now the tool is known.
    let answer = ada.call("shop__secret", json!({})).await;
    assert_eq!(code(&answer), Some("missing_permissions"), "{answer}");
    gateway.stop().await;
}

/// The rules for the server's own name of a tool apply to its prefixed name, too.
#[tokio::test(flavor = "multi_thread")]
async fn rules_under_another_name_of_an_unknown_tool_count() {
    let server = shop_of(Era::Handshake);
    server.shop.set_tools(&echoing(&TOOLS));
    let policy = json!({
        "unlisted": "hide",
        "tools": {"open": {}, "secret": {"required_permissions": ["secret:read"]}},
        "principals": {"ada": {}, "bob": {"permissions": ["secret:read"]}},
    });
    let gateway = gateway_before(&server, json!({"start": "lazy"}), policy).await;
    let ada = agent_of(Era::Stateless, &gateway.url, "ada", &[]).await;
    for (tool, expected) in [
        ("shop__secret", "unknown_tool"),
        ("shop__later", "unknown_tool"),
        ("secret", "missing_permissions"),
    ] {
        let answer = ada.call(tool, json!({})).await;
        assert_eq!(code(&answer), Some(expected), "{answer}");
        assert_eq!(requests(&server), 0, "{tool}");
    }
    let answer = ada.call("shop__open", json!({})).await;
    assert!(worked(&answer), "{answer}");
    gateway.stop().await;
}
