//! What agents see, and how they request it.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use super::workflow::{gateway, policy, server};
use super::{ERAS, agent_of, code, key};
use crate::support::{Agent, TestGateway, shop_of};

/// Header, `_meta` and path request groups alike; the path takes precedence, `_meta` comes last.
#[tokio::test(flavor = "multi_thread")]
async fn groups_are_asked_for_in_three_ways() {
    let server = server(Era::Handshake);
    let mut policy = policy();
    policy["principals"]["ada"]["groups"] = json!(["default", "knowledge", "text", "admin"]);
    let gateway = gateway(&server, policy).await;
    for era in ERAS {
        let by_header = agent_of(
            era,
            &gateway.url,
            "ada",
            &[("toolwarden-groups", "knowledge, text")],
        )
        .await;
        let both = ["knowledge-query", "text-completion"];
        assert_eq!(by_header.tools().await, both, "{era:?}");
        let plain = agent_of(era, &gateway.url, "ada", &[]).await;
        assert_eq!(plain.tools().await, ["plain"], "without a word, `default`");
        let meta = json!({"_meta": {"toolwarden/groups": ["text", "default"]}});
        let list = plain.result("tools/list", meta.clone()).await;
        assert_eq!(names(&list), ["text-completion", "plain"]);
        let by_header = by_header.result("tools/list", meta).await;
        assert_eq!(names(&by_header), both, "the header counts before `_meta`");
        assert_eq!(plain.tools().await, ["plain"], "the next request asks anew");
        let path = format!("{}/g/text,knowledge", gateway.url);
        let by_path = agent_of(era, &path, "ada", &[("toolwarden-groups", "default")]).await;
        assert_eq!(
            by_path.tools().await,
            both,
            "the path counts before the header"
        );
        // The same groups decide calls and lists.
        let answer = plain.call("knowledge-query", json!({})).await;
        assert_eq!(code(&answer), Some("filtered_by_group"));
        let params = json!({"name": "text-completion", "arguments": {},
            "_meta": {"toolwarden/groups": ["text"], "kept": 1}});
        let answer = plain.ask("tools/call", params).await;
        assert_eq!(code(&answer), None, "{answer}");
        let sent = server.shop.seen().last_params.unwrap();
        assert!(
            !sent.get().contains("toolwarden/"),
            "ours stays here: {sent}"
        );
        assert!(sent.get().contains(r#""kept":1"#), "{sent}");
    }
    gateway.stop().await;
}

/// A stateless request does not affect the next one.
#[tokio::test(flavor = "multi_thread")]
async fn stateless_requests_ask_each_for_themselves() {
    let server = server(Era::Stateless);
    let gateway = gateway(&server, policy()).await;
    let with = agent_of(
        Era::Stateless,
        &gateway.url,
        "cyn",
        &[("toolwarden-groups", "text")],
    )
    .await;
    let without = agent_of(Era::Stateless, &gateway.url, "cyn", &[]).await;
    assert_eq!(with.tools().await, ["text-completion"]);
    assert_eq!(without.tools().await, ["plain"]);
    assert_eq!(with.tools().await, ["text-completion"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_list_says_why() {
    let server = server(Era::Handshake);
    let gateway = gateway(&server, policy()).await;
    let bearer = format!("Bearer {}", key("cyn"));
    let headers = [("authorization", bearer.as_str())];
    let agent = Agent::open_with(&gateway.url, &json!({}), &headers).await;
    let ask = async |groups: Value| {
        let meta = json!({"_meta": {"toolwarden/groups": groups}});
        let list = agent.result("tools/list", meta).await;
        assert_eq!(names(&list), [""; 0]);
        list["_meta"]["toolwarden/empty"].clone()
    };
    let none = ask(json!([])).await;
    assert_eq!(none["tools_known"], 7, "{none}");
    assert_eq!(none["left_out"], json!({"filtered_by_group": 7}));
    let unknown = ask(json!(["Text"])).await;
    assert_eq!(unknown["unknown_groups"], json!(["Text"]));
    let later = ask(json!(["compute"])).await;
    assert_eq!(
        later["left_out"],
        json!({"filtered_by_group": 6, "filtered_by_state": 1})
    );
    gateway.stop().await;

    let gone = shop_of(Era::Handshake);
    gone.kill();
    let gateway = TestGateway::before(&[("gone", &gone)]).await;
    let agent = Agent::stateless(&gateway.url, &json!({}));
    let list = agent.result("tools/list", json!({})).await;
    let empty = &list["_meta"]["toolwarden/empty"];
    assert_eq!(
        empty["text"],
        "no server behind this gateway has listed a tool yet"
    );
    let away = empty["servers_away"][0].as_str().unwrap();
    assert!(away.contains("`gone`"), "{away}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_of_two_servers_is_refused_with_both_named() {
    let (one, two) = (shop_of(Era::Handshake), shop_of(Era::Stateless));
    two.shop
        .set_tools(&[json!({"name": "echo", "inputSchema": {"type": "object"}})]);
    let servers = [("one", &one), ("two", &two)];
    let gateway = TestGateway::before_with(&servers, json!({"prefix": "never"})).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    assert_eq!(agent.tools().await.len(), 6);
    let answer = agent.call("echo", json!({})).await;
    assert_eq!(code(&answer), Some("collision"));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("`one` and `two`"), "{text}");
    let unknown = agent.call("ech", json!({})).await;
    assert_eq!(code(&unknown), Some("unknown_tool"));
    let text = unknown["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("List the tools again"), "{text}");
    gateway.stop().await;
}

/// Tools that the policy does not name can be hidden, or follow the rules of their server.
#[tokio::test(flavor = "multi_thread")]
async fn tools_not_named_in_the_policy() {
    let server = shop_of(Era::Handshake);
    let entry = super::at_with(&server, json!({"tool_defaults": {"group": "shop"}}));
    let mut settings = json!({
        "servers": {"s": entry},
        "policy": {"principals": {"agent": {"groups": ["shop"]}}},
    });
    let shop = [("toolwarden-groups", "shop")];
    let gateway = TestGateway::start(&settings).await;
    let agent = Agent::open_with(&gateway.url, &json!({}), &shop).await;
    assert_eq!(agent.tools().await.len(), 7);
    gateway.stop().await;
    settings["policy"]["unlisted"] = json!("hide");
    settings["policy"]["tools"] = json!({"s__echo": {"group": "shop"}});
    let gateway = TestGateway::start(&settings).await;
    let agent = Agent::open_with(&gateway.url, &json!({}), &shop).await;
    assert_eq!(agent.tools().await, ["s__echo"]);
    let answer = agent.call("s__refund_order", json!({})).await;
    assert_eq!(code(&answer), Some("unknown_tool"));
    gateway.stop().await;
}

fn names(list: &Value) -> Vec<&str> {
    let tools = list["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect()
}
