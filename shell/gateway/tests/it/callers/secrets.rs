//! The gateway does not reveal secrets of the settings, neither in its own messages nor in errors of servers.

use axum::Router;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use toolwarden_mcp::Era;

use crate::guarding::{agent_of, bearer_of, identity, rows};
use crate::support::{SOON, TestGateway, http};

const UPSTREAM: &str = "upstream-credential-1";
const ARGUMENT: &str = "argument-secret-22";

/// A server that repeats its credential in errors, in plain and in base64, and in results.
async fn echoing() -> String {
    let answer = |headers: HeaderMap, body: String| async move {
        use base64::Engine as _;
        let message: Value = serde_json::from_str(&body).unwrap_or_default();
        let credential = headers["authorization"].to_str().unwrap().to_owned();
        let word = credential.trim_start_matches("Bearer ");
        let encoded = base64::engine::general_purpose::STANDARD.encode(word);
        let tool = json!({"name": "fail", "inputSchema": {"type": "object"}});
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "e", "version": "1"}}),
            "tools/list" => json!({"tools": [tool]}),
            "tools/call" if message["params"]["arguments"]["result"] == true => {
                json!({"content": [{"type": "text", "text": word}]})
            }
            "tools/call" if message["params"]["arguments"]["fail"] == true => json!({
                "content": [{"type": "text", "text": format!("401 for {credential}")}],
                "structuredContent": {"seen": encoded}, "isError": true,
            }),
            "tools/call" => {
                let error = json!({"code": -32000, "message": format!("bad token {credential}"),
                    "data": {"seen": word, "encoded": encoded}});
                return json!({"jsonrpc": "2.0", "id": message["id"], "error": error}).to_string();
            }
            _ => json!({}),
        };
        json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string()
    };
    let answer = move |headers: HeaderMap, body: String| {
        let answer = answer(headers, body);
        async move { ([("content-type", "application/json")], answer.await) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = Router::new().fallback(axum::routing::post(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_and_records_hold_no_secret() {
    let folder = tempfile::TempDir::new().unwrap();
    std::fs::write(folder.path().join("token"), UPSTREAM).unwrap();
    std::fs::write(folder.path().join("argument"), ARGUMENT).unwrap();
    let script = "echo \"cannot use $1 as $0\" >&2; exit 3";
    let settings = json!({
        "servers": {
            "e": {"url": echoing().await, "headers": {"Authorization": "Bearer ${file:token}"}},
            "p": {"command": "sh", "args": ["-c", script, "name", "${file:argument}"], "start": "lazy"},
        },
        "identity": {"api_keys": identity(&["ada"])["api_keys"], "admins": ["ada"]},
    });
    let gateway = TestGateway::start_in(&settings, folder).await;
    for era in [Era::Handshake, Era::Stateless] {
        let ada = agent_of(era, &gateway.url, "ada", &[]).await;
        ada.tools().await;
        let answer = ada.call("e__fail", json!({})).await;
        assert_eq!(
            answer["error"]["message"], "bad token Bearer ***",
            "{answer}"
        );
        assert_eq!(
            answer["error"]["data"],
            json!({"seen": "***", "encoded": "***"})
        );
        let answer = ada.call("e__fail", json!({"fail": true})).await;
        let result = &answer["result"];
        assert_eq!(result["content"][0]["text"], "401 for Bearer ***");
        assert_eq!(result["structuredContent"]["seen"], "***", "{answer}");
        // Results of tools that succeed are relayed byte for byte.
        let answer = ada.call("e__fail", json!({"result": true})).await;
        assert_eq!(answer["result"]["content"][0]["text"], UPSTREAM, "{answer}");
        let answer = ada.call("p__anything", json!({})).await;
        assert!(!answer.to_string().contains(ARGUMENT), "{answer}");
    }
    for path in [
        "servers",
        "servers/p",
        "config",
        "audit?limit=1000",
        "health",
    ] {
        let url = format!("{}/api/v1/{path}", gateway.root());
        let asked = http(&url)
            .get(&url)
            .header("authorization", bearer_of("ada"));
        let told = tokio::time::timeout(SOON, asked.send())
            .await
            .unwrap()
            .unwrap();
        let told = told.text().await.unwrap();
        for secret in [UPSTREAM, ARGUMENT] {
            assert!(!told.contains(secret), "{path}: {told}");
        }
        if path == "servers/p" {
            assert!(
                told.contains("cannot use *** as name") || told.contains("exited"),
                "{told}"
            );
        }
    }
    let rows = format!("{:?}", rows(&gateway.gateway));
    assert!(rows.contains("bad token Bearer ***"), "{rows}");
    assert!(
        !rows.contains(UPSTREAM) && !rows.contains(ARGUMENT),
        "{rows}"
    );
    gateway.stop().await;
}
