//! Agents on standard streams.

use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use toolwarden_demo::DemoServer;
use toolwarden_gateway::runtime::{SingleAgentGateway, load_policy};
use toolwarden_gateway::stdio;
use toolwarden_mcp::Era;

use crate::support::{EVERYTHING, SOON, at, settings_in, shop_of, until};
use crate::transparent::Peer;

/// The settings of a gateway for one agent and one server.
fn wrapping(shop: &DemoServer) -> Value {
    json!({"prefix": "never", "servers": {"shop": at(shop)}})
}

struct Wire {
    to: DuplexStream,
    from: BufReader<DuplexStream>,
    serving: JoinHandle<std::io::Result<()>>,
    alone: Arc<SingleAgentGateway>,
    _folder: TempDir,
}

impl Wire {
    fn open(settings: &Value) -> Self {
        let folder = TempDir::new().unwrap();
        let settings = settings_in(settings, folder.path());
        let policy = load_policy(&settings, &folder.path().join("toolwarden.yaml")).unwrap();
        let alone = Arc::new(SingleAgentGateway::start(settings, policy).unwrap());
        let (to, input) = duplex(1 << 16);
        let (output, from) = duplex(1 << 16);
        let gateway = alone.gateway.clone();
        let serving = tokio::spawn(async move {
            stdio::serve(&gateway, &Arc::from("agent"), input, output).await
        });
        Self {
            to,
            from: BufReader::new(from),
            serving,
            alone,
            _folder: folder,
        }
    }

    async fn send(&mut self, text: &str) {
        let line = format!("{text}\n");
        self.to.write_all(line.as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let mut line = String::new();
        let read = timeout(SOON, self.from.read_line(&mut line)).await;
        read.unwrap().unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"))
    }

    async fn ask(&mut self, id: &str, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&body.to_string()).await;
        self.next().await
    }

    async fn initialize(&mut self) -> Value {
        let capabilities: Value = serde_json::from_str(EVERYTHING).unwrap();
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "desk", "version": "9"}});
        let opened = self.ask("i", "initialize", params).await;
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
        opened
    }

    async fn close(self) {
        let Self {
            to,
            from,
            serving,
            alone,
            _folder,
        } = self;
        drop(to);
        timeout(SOON, serving).await.unwrap().unwrap().unwrap();
        drop(from);
        alone.close().await;
    }
}

/// Whatever eras the server speaks, one program serves for the agent's lists and calls.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrapped_program_is_started_once() {
    for eras in ["handshake", "stateless", "both"] {
        let tools = json!([{"name": "base", "inputSchema": {"type": "object"}}]);
        let peer = Peer::new("peer", json!({"eras": eras, "tools": tools}));
        let settings = json!({"prefix": "never", "servers": {"peer": peer.entry()}});
        let mut wire = Wire::open(&settings);
        wire.initialize().await;
        let listed = wire.ask("l", "tools/list", json!({})).await;
        assert_eq!(
            listed["result"]["tools"][0]["name"], "base",
            "{eras}: {listed}"
        );
        let called = wire.ask("c", "tools/call", json!({"name": "base"})).await;
        assert!(called["result"]["content"].is_array(), "{eras}: {called}");
        wire.close().await;
        assert_eq!(peer.starts(), 1, "{eras}: {:?}", peer.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrapped_server_looks_like_itself() {
    for of_server in [Era::Handshake, Era::Stateless] {
        let shop = shop_of(of_server);
        let mut wire = Wire::open(&wrapping(&shop));
        let opened = wire.initialize().await;
        assert_eq!(
            opened["result"]["serverInfo"]["name"], "toolwarden-demo-shop",
            "{opened}"
        );
        let listed = wire.ask("l", "tools/list", json!({})).await;
        assert_eq!(
            listed["result"]["tools"],
            Value::from(toolwarden_demo::tools())
        );
        // The gateway presented the agent to the server.
        let client_info: Value = {
            let client_info = shop.shop.seen().last_client_info.unwrap();
            serde_json::from_str(client_info.get()).unwrap()
        };
        let info = match of_server {
            Era::Handshake => &client_info["clientInfo"],
            Era::Stateless => &client_info["io.modelcontextprotocol/clientInfo"],
        };
        assert_eq!(info["name"], "desk", "{client_info}");
        let call = json!({"name": "cancel_order", "arguments": {"order_id": "A-1001"}});
        let question = wire.ask("c", "tools/call", call).await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let answer =
            json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "cancel"}});
        wire.send(&answer.to_string()).await;
        let done = wire.next().await;
        assert_eq!(
            (&done["id"], &done["result"]["content"][0]["text"]),
            (&json!("c"), &json!("order A-1001 stays: cancel"))
        );
        let initializes = shop.shop.seen().initializes;
        // A stateless server refuses the one attempt to speak the agent's era.
        assert_eq!(initializes, 1, "one session is enough");
        wire.close().await;
        until("the server's sessions end", || {
            shop.shop.open_sessions() == 0
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_cancelled_and_garbage_is_answered() {
    let shop = shop_of(Era::Handshake);
    let mut wire = Wire::open(&wrapping(&shop));
    let early = wire.ask("e", "tools/list", json!({})).await;
    assert_eq!(early["error"]["code"], -32600, "{early}");
    wire.initialize().await;
    wire.send("{ nonsense").await;
    assert_eq!(wire.next().await["error"]["code"], -32700);
    let report = json!({"name": "export_report", "arguments": {"pause_ms": 60000}});
    let log = wire.ask("r", "tools/call", report).await;
    assert_eq!(log["method"], "notifications/message", "{log}");
    wire.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"r"}}"#)
        .await;
    until("the call is given up", || shop.shop.seen().cancelled == 1).await;
    let pong = wire.ask("p", "ping", json!({})).await;
    assert_eq!(pong, json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    wire.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stateless_era_on_standard_streams() {
    let shop = shop_of(Era::Stateless);
    let mut wire = Wire::open(&wrapping(&shop));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "desk", "version": "9"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut newer = meta.clone();
    newer["io.modelcontextprotocol/protocolVersion"] = json!("2027-01-01");
    let refused = wire
        .ask("v", "server/discover", json!({"_meta": newer}))
        .await;
    assert_eq!(refused["error"]["code"], -32022, "{refused}");
    let found = wire
        .ask("d", "server/discover", json!({"_meta": meta}))
        .await;
    assert_eq!(found["result"]["resultType"], "complete", "{found}");
    let echo = json!({"name": "echo", "arguments": {"a": 1}, "_meta": meta});
    let done = wire.ask("c", "tools/call", echo).await;
    assert_eq!(done["result"]["content"][0]["text"], "echo", "{done}");
    let wanted = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
    let agreed = wire.ask("s", "subscriptions/listen", wanted).await;
    assert_eq!(
        agreed["method"], "notifications/subscriptions/acknowledged",
        "{agreed}"
    );
    wire.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}"#)
        .await;
    until("no agent listens", || {
        let conversations = wire.alone.gateway.conversations().all();
        conversations
            .iter()
            .all(|it| it.notification_streams().is_empty())
    })
    .await;
    let wanted = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
    wire.ask("s2", "subscriptions/listen", wanted).await;
    let again = wire
        .ask("c2", "tools/call", json!({"name": "echo", "_meta": meta}))
        .await;
    assert_eq!(again["id"], "c2", "{again}");
    let began = std::time::Instant::now();
    wire.close().await;
    assert!(
        began.elapsed() < std::time::Duration::from_millis(900),
        "nothing is waited for"
    );
}
