//! Features other than tools, of several servers.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use crate::support::{Agent, TestGateway, shop_of};

#[tokio::test(flavor = "multi_thread")]
async fn prompts_resources_and_completion_find_their_server() {
    let (old, new) = (shop_of(Era::Handshake), shop_of(Era::Stateless));
    let gateway = TestGateway::before(&[("old", &old), ("new", &new)]).await;
    for era in [Era::Handshake, Era::Stateless] {
        let agent = Agent::of(era, &gateway.url, "{}").await;
        let names = agent.names("prompts/list", "prompts", "name").await;
        assert_eq!(names, ["old__refund_letter", "new__refund_letter"]);
        for (prompt, shop) in [("old__refund_letter", &old), ("new__refund_letter", &new)] {
            let count = |method: &str| {
                let seen = shop.shop.seen();
                seen.methods.get(method).copied().unwrap_or_default()
            };
            let before = (count("prompts/get"), count("completion/complete"));
            let arguments = json!({"order_id": "A-1003", "tone": "formal"});
            let params = json!({"name": prompt, "arguments": arguments});
            let got = agent.result("prompts/get", params).await;
            assert_eq!(
                got["messages"][0]["content"]["text"],
                "Write a formal letter that tells the customer of order A-1003 of the refund."
            );
            let params = json!({"ref": {"type": "ref/prompt", "name": prompt}, "argument": {"name": "tone", "value": "f"}});
            let got = agent.result("completion/complete", params).await;
            assert_eq!(got["completion"]["values"], json!(["formal", "friendly"]));
            let now = (count("prompts/get"), count("completion/complete"));
            assert_eq!(now, (before.0 + 1, before.1 + 1), "{prompt}");
        }
        let unknown = agent
            .ask("prompts/get", json!({"name": "refund_letter"}))
            .await;
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        // An address that two servers have names its server.
        let uris = agent.names("resources/list", "resources", "uri").await;
        let shown = ["old", "new"].map(|it| format!("toolwarden://resource/{it}/orders://today"));
        assert_eq!(uris, shown);
        let method = "resources/templates/list";
        let templates = agent
            .names(method, "resourceTemplates", "uriTemplate")
            .await;
        let template =
            |server: &str| format!("toolwarden://resource/{server}/orders://{{order_id}}");
        assert_eq!(templates, ["old", "new"].map(template));
        let order = template("new").replace("{order_id}", "A-1002");
        for uri in shown.iter().chain([&order]) {
            let read = agent.result("resources/read", json!({"uri": uri})).await;
            assert_eq!(read["contents"][0]["uri"], **uri);
        }
        let params = json!({"ref": {"type": "ref/resource", "uri": template("old")}, "argument": {"name": "order_id", "value": "A-1004"}});
        let got = agent.result("completion/complete", params).await;
        assert_eq!(got["completion"]["values"], json!(["A-1004"]));
        let none = agent
            .ask("resources/read", json!({"uri": "file:///x"}))
            .await;
        assert!(none["error"]["code"].is_i64(), "{none}");
        if era == Era::Stateless {
            let list = agent.result("prompts/list", json!({})).await;
            assert_eq!(
                (&list["resultType"], &list["ttlMs"], &list["cacheScope"]),
                (&json!("complete"), &json!(0), &json!("private"))
            );
        }
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_other_lists_are_whole() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let text = agent
        .begin("resources/list", json!({}))
        .await
        .text()
        .await
        .unwrap();
    assert!(
        text.ends_with(r#""result":{"resources":[{"uri":"orders://today","name":"today","title":"Orders of today","mimeType":"application/json","size":312,"annotations":{"audience":["assistant"],"priority":0.50},"x-shop-index":"orders_v3"}]}}"#),
        "{text}"
    );
    let prompts = agent.result("prompts/list", json!({})).await;
    assert_eq!(prompts["prompts"][0]["x-shop-desk"], "letters");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_methods_go_to_the_only_server() {
    let shop = shop_of(Era::Handshake);
    let settings = json!({"prefix": "conflict"});
    let gateway = TestGateway::before_with(&[("shop", &shop)], settings).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let answer = agent.ask("vendor/thing", json!({"a": 1})).await;
    assert_eq!(
        answer["error"]["message"],
        "method `vendor/thing` is not offered"
    );
    agent
        .notify("notifications/roots/list_changed", json!({}))
        .await;
    crate::support::until("the server hears of it", || {
        let seen = shop.shop.seen();
        seen.methods
            .contains_key("notifications/roots/list_changed")
    })
    .await;
    assert_eq!(shop.shop.seen().methods.get("vendor/thing"), Some(&1));
    let _: Value = answer;
    gateway.stop().await;
}
