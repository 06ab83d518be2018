use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::super::{Shop, ShopOptions, SupportedEras, serve_stdio};

struct Wire {
    to: DuplexStream,
    from: BufReader<DuplexStream>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Wire {
    fn open(shop: &Shop) -> Self {
        let (to, input) = duplex(1 << 16);
        let (output, from) = duplex(1 << 16);
        let shop = shop.clone();
        let server = tokio::spawn(async move { serve_stdio(&shop, input, output).await });
        Self {
            to,
            from: BufReader::new(from),
            server,
        }
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.to.write_all(line.as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let mut line = String::new();
        let read = self.from.read_line(&mut line);
        timeout(Duration::from_secs(10), read)
            .await
            .unwrap()
            .unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": params}))
            .await;
        self.next().await
    }
}

fn shop(eras: SupportedEras) -> Shop {
    Shop::new(ShopOptions {
        eras,
        ..ShopOptions::default()
    })
}

#[tokio::test]
async fn the_handshake_over_streams() {
    let shop = shop(SupportedEras::Both);
    let mut wire = Wire::open(&shop);
    let early = wire.ask("tools/list", json!({})).await;
    assert_eq!(early["error"]["message"], "`initialize` comes first");
    let params = json!({"protocolVersion": "2024-11-05", "capabilities": {"roots": {}}, "clientInfo": {"name": "t", "version": "1"}});
    let opened = wire.ask("initialize", params).await;
    assert_eq!(opened["result"]["protocolVersion"], "2024-11-05");
    wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await;
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "list_folders"}});
    wire.send(&call).await;
    let question = wire.next().await;
    assert_eq!(question["method"], "roots/list");
    wire.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///tmp"}]}}))
        .await;
    let done = wire.next().await;
    assert_eq!(done["result"]["content"][0]["text"], r#"["file:///tmp"]"#);
    shop.notify_list_changed();
    assert_eq!(
        wire.next().await,
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    );
    let report = json!({"name": "export_report", "arguments": {"pause_ms": 60000}});
    let log = wire.ask("tools/call", report).await;
    assert_eq!(log["method"], "notifications/message");
    wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}}))
        .await;
    assert_eq!(wire.ask("ping", json!({})).await["result"], json!({}));
    assert_eq!((shop.seen().cancelled, shop.open_sessions()), (1, 1));
    let Wire { to, from, server } = wire;
    drop((to, from));
    server.await.unwrap().unwrap();
    assert_eq!(shop.open_sessions(), 0);
}

#[tokio::test]
async fn the_stateless_era_over_streams() {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let shop = shop(SupportedEras::Stateless);
    let mut wire = Wire::open(&shop);
    let found = wire.ask("server/discover", json!({"_meta": meta})).await;
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
    let listed = wire.ask("tools/list", json!({"_meta": meta})).await;
    assert_eq!(
        (
            &listed["result"]["resultType"],
            &listed["result"]["cacheScope"]
        ),
        (&json!("complete"), &json!("public"))
    );
    let refused = wire
        .ask("initialize", json!({"protocolVersion": "2025-11-25"}))
        .await;
    assert_eq!(refused["error"]["code"], -32022);
    let wanted =
        json!({"_meta": meta, "notifications": {"resourceSubscriptions": ["orders://today"]}});
    let agreed = wire.ask("subscriptions/listen", wanted).await;
    assert_eq!(agreed["method"], "notifications/subscriptions/acknowledged");
    shop.notify_list_changed();
    shop.notify_resource_updated("orders://today");
    let news = wire.next().await;
    assert_eq!(
        news["params"],
        json!({"uri": "orders://today", "_meta": {"io.modelcontextprotocol/subscriptionId": "a"}})
    );
}

#[tokio::test]
async fn a_shop_of_one_era_does_not_know_the_other() {
    let mut wire = Wire::open(&shop(SupportedEras::Handshake));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let refused = wire.ask("server/discover", json!({"_meta": meta})).await;
    assert_eq!(refused["error"]["code"], -32601);
}
