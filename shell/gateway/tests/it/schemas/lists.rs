//! Responses to opening requests, and lists: empty ones and pages.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use super::{Revision, Sheet, assert_valid};
use crate::support::{TestGateway, shop_of};

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

#[tokio::test(flavor = "multi_thread")]
async fn greetings_are_valid_in_every_revision() {
    let mut faults = Vec::new();
    for of_server in [Era::Handshake, Era::Stateless] {
        let (one, other) = (shop_of(of_server), shop_of(of_server));
        // One transparent server, several servers, and none that can be reached.
        let several = TestGateway::before(&[("one", &one), ("other", &other)]).await;
        let alone = TestGateway::before_with(&[("one", &one)], json!({"prefix": "never"})).await;
        let gone = TestGateway::start(&json!({
            "servers": {"gone": {"url": "http://127.0.0.1:9/mcp"}},
        }))
        .await;
        for gateway in [&several, &alone, &gone] {
            for revision in Revision::all() {
                let agent = revision.agent(&gateway.url, &[]).await;
                let mut sheet = Sheet::new(&revision);
                if revision.era() == Era::Handshake {
                    let connect_request =
                        json!({"jsonrpc": "2.0", "id": 0, "result": agent.connect_request});
                    sheet.answer("initialize", "initialize", &connect_request);
                    assert_eq!(agent.connect_request["protocolVersion"], revision.version);
                    let pong = sheet.ask(&agent, "ping", "ping", json!({})).await;
                    assert_eq!(pong["result"], json!({}));
                } else {
                    let method = "server/discover";
                    let found = sheet.ask(&agent, method, method, json!({})).await;
                    assert!(found["result"]["supportedVersions"].is_array(), "{found}");
                }
                faults.extend(sheet.faults);
            }
        }
        for gateway in [several, alone, gone] {
            gateway.stop().await;
        }
    }
    assert_valid(&faults);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_valid_in_every_revision() {
    let mut faults = Vec::new();
    for of_server in [Era::Handshake, Era::Stateless] {
        let shop = shop_of(of_server);
        let hidden = json!({"policy": {"unlisted": "hide", "principals": {"agent": {}}}});
        let empty = TestGateway::before_with(&[("shop", &shop)], hidden).await;
        let tasks = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/fixtures/servers/tasks.py"
        );
        let only_tools = TestGateway::start(&json!({
            "servers": {"tasks": {"command": "python3", "args": [tasks, "a"]}},
        }))
        .await;
        let pages = TestGateway::before_with(&[("shop", &shop)], json!({"page_size": 2})).await;
        let gone = TestGateway::start(&json!({
            "servers": {"gone": {"url": "http://127.0.0.1:9/mcp"}},
        }))
        .await;
        for revision in Revision::all() {
            let mut sheet = Sheet::new(&revision);
            for gateway in [&empty, &only_tools, &pages, &gone] {
                let agent = revision.agent(&gateway.url, &[]).await;
                for (method, member) in LISTS {
                    let answer = sheet.ask(&agent, method, method, json!({})).await;
                    assert!(answer["result"][member].is_array(), "{answer}");
                    if let Some(next) = answer["result"].get("nextCursor") {
                        let params = json!({"cursor": next});
                        sheet.ask(&agent, "next page", method, params).await;
                    }
                }
            }
            let agent = revision.agent(&empty.url, &[]).await;
            let listed = agent.result("tools/list", json!({})).await;
            assert_eq!(listed["tools"], json!([]));
            assert!(listed["_meta"]["toolwarden/empty"].is_object(), "{listed}");
            let agent = revision.agent(&pages.url, &[]).await;
            let listed: Value = agent.result("tools/list", json!({})).await;
            assert_eq!(listed["tools"].as_array().unwrap().len(), 2);
            faults.extend(sheet.faults);
        }
        for gateway in [empty, only_tools, pages, gone] {
            gateway.stop().await;
        }
    }
    assert_valid(&faults);
}
