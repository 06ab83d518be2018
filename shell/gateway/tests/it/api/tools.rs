use serde_json::{Value, json};

use super::fixture::{AllowedHosts, Who};

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_see_what_they_may_and_administrators_all() {
    let allowed_hosts = AllowedHosts::start().await;
    let usual = [
        "shop__export_report",
        "shop__cancel_order",
        "shop__draft_reply",
        "shop__list_folders",
    ];
    for (who, query, seen) in [
        (Who::Bob, "", &usual[..]),
        (
            Who::Ann,
            "?groups=read,write",
            &["shop__search_orders", "shop__echo"],
        ),
        (Who::Ann, "?groups=", &[]),
    ] {
        let (status, answer) = allowed_hosts
            .get(who, &format!("/api/v1/tools{query}"))
            .await;
        assert_eq!(
            (status, names(&answer)),
            (200, seen.to_vec()),
            "{who:?} {query}"
        );
    }
    let (status, answer) = allowed_hosts
        .get(Who::Bob, "/api/v1/tools?groups=read")
        .await;
    assert_eq!(status, 403, "{answer}");

    let (_, answer) = allowed_hosts
        .get(Who::Bob, "/api/v1/tools/shop__list_folders")
        .await;
    assert_eq!(
        answer["tool"],
        json!({
            "name": "shop__list_folders",
            "server": "shop",
            "tool": "list_folders",
            "definition": {
                "name": "shop__list_folders",
                "description": "Names the folders of the client that a report could go to.",
                "inputSchema": {"type": "object"},
            },
        })
    );
    let (status, answer) = allowed_hosts
        .get(Who::Bob, "/api/v1/tools/shop__echo")
        .await;
    assert_eq!(
        (status, answer["error"]["message"].as_str().unwrap()),
        (404, "you see no tool `shop__echo`")
    );

    let answer = allowed_hosts.root("/api/v1/tools/shop__refund_order").await;
    assert_eq!(
        answer["tool"]["treatment"],
        json!({"kind": "serve", "why": null, "alert": null})
    );
    assert_eq!(answer["tool"]["groups"], json!(["write"]));
    // Vendor keys arrive as they are.
    assert_eq!(
        answer["tool"]["definition"]["x-shop-desk"],
        json!({"approval": "manager", "limit": 500.00})
    );
    allowed_hosts.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_come_in_pages() {
    let allowed_hosts = AllowedHosts::start().await;
    let whole = allowed_hosts.root("/api/v1/tools?all=true").await;
    let mut gathered = Vec::new();
    let mut cursor = String::new();
    let mut pages = 0;
    loop {
        let page = allowed_hosts
            .root(&format!("/api/v1/tools?all=true&limit=3{cursor}"))
            .await;
        assert_eq!(page["count"], 7);
        gathered.extend(page["tools"].as_array().unwrap().clone());
        pages += 1;
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={}", next.replace('/', "%2F")),
            None => break,
        }
    }
    assert_eq!((pages, json!(gathered)), (3, whole["tools"].clone()));
    allowed_hosts.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_two_servers_share_are_told() {
    let other = toolwarden_demo::DemoServer::start(Default::default()).unwrap();
    other
        .shop
        .set_tools(&[json!({"name": "echo", "inputSchema": {"type": "object"}})]);
    let shop = toolwarden_demo::DemoServer::start(Default::default()).unwrap();
    let servers = json!({"shop": {"url": shop.url}, "other": {"url": other.url}});
    let allowed_hosts = AllowedHosts::start_with(json!({"servers": servers, "prefix": "never", "policy": {"principals": {"*": {"groups": ["*"]}}, "tools": {}}})).await;
    let text = "`echo` is refused: the servers `other` and `shop` both have it; set `prefix: conflict` or `prefix: always`, or rename a server";
    let answer = allowed_hosts.root("/api/v1/servers/other").await;
    let servers = answer["collisions"][0]["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 2);
    let told = answer["collisions"][0]["text"].as_str().unwrap();
    let turned = text.replace("`other` and `shop`", "`shop` and `other`");
    assert!([text, &turned].contains(&told), "{told}");
    let all = allowed_hosts.root("/api/v1/tools?all=true").await;
    let refused = all["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["collision"] == told);
    assert_eq!(refused.clone().count(), 2);
    assert!(refused.clone().all(|it| it["name"].is_null()));
    let explained = allowed_hosts.root("/api/v1/explain?tool=echo").await;
    assert_eq!(explained["cause"], "collision");
    assert_eq!(
        explained["answer"],
        format!("`root` does not see `echo`: {told}.").as_str()
    );
    let (_, denied) = allowed_hosts
        .post(Who::Root, "/api/v1/decide", json!({"tool": "echo"}))
        .await;
    assert_eq!(
        (&denied["allowed"], &denied["reason"]),
        (&json!(false), &json!(told))
    );
    allowed_hosts.stop().await;
}
