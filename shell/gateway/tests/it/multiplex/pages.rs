use serde_json::{Value, json};
use toolwarden_demo::{DemoServer, ShopOptions, SupportedEras, tools};
use toolwarden_mcp::Era;

use crate::support::{Agent, TestGateway};

#[tokio::test(flavor = "multi_thread")]
async fn lists_have_pages_on_both_sides() {
    for eras in [SupportedEras::Handshake, SupportedEras::Stateless] {
        let server = DemoServer::start(ShopOptions {
            eras,
            page: 3,
            ..ShopOptions::default()
        })
        .unwrap();
        let settings = json!({"prefix": "never", "page_size": 2});
        let gateway = TestGateway::before_with(&[("shop", &server)], settings).await;
        for era in [Era::Handshake, Era::Stateless] {
            let agent = Agent::of(era, &gateway.url, "{}").await;
            let mut sizes = Vec::new();
            let mut all = Vec::new();
            let mut cursor = Value::Null;
            loop {
                let params = match &cursor {
                    Value::Null => json!({}),
                    cursor => json!({"cursor": cursor}),
                };
                let page = agent.result("tools/list", params).await;
                let entries = page["tools"].as_array().unwrap();
                sizes.push(entries.len());
                all.extend(entries.clone());
                match page.get("nextCursor") {
                    Some(next) => cursor = next.clone(),
                    None => break,
                }
            }
            assert_eq!(sizes, [2, 2, 2, 1]);
            assert_eq!(all, tools());
            for cursor in [json!("page-3"), json!("tw-x"), json!(7)] {
                let refused = agent.ask("tools/list", json!({"cursor": cursor})).await;
                assert_eq!(refused["error"]["code"], -32602, "{cursor}: {refused}");
            }
        }
        gateway.stop().await;
    }
}
