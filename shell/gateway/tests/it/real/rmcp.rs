//! The client of the official Rust SDK before two servers: both of its eras, over HTTP and over
//! standard streams, see the same.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ClientConfig, ElicitRequestParams, ElicitResult, ErrorData,
    ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;
use toolwarden_demo::DemoServer;
use toolwarden_gateway::stdio;
use toolwarden_mcp::Era;

use crate::support::{TestGateway, http, shop_of, until};

/// How long a whole walk may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

type Client = RunningService<RoleClient, ObservingClient>;

/// How far something is, and of how much.
type Step = (f64, Option<f64>);

/// A client that agrees to whatever it is asked, and keeps how far things are.
#[derive(Clone, Debug, Default)]
struct ObservingClient {
    progress: Arc<Mutex<Vec<Step>>>,
}

impl ObservingClient {
    /// Waits for this many steps. The SDK handles each in its own task, so their order here means nothing.
    async fn steps(&self, expected: usize) -> Vec<Step> {
        let told = || self.progress.lock().unwrap().clone();
        until("all progress arrived", || told().len() >= expected).await;
        let mut steps = told();
        steps.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        steps
    }
}

impl ClientHandler for ObservingClient {
    fn get_info(&self) -> ClientConfig {
        typed(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "rust", "version": "1"},
        }))
    }

    async fn create_elicitation(
        &self,
        _params: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let agreed = json!({"action": "accept", "content": {"confirm": true}});
        Ok(typed(agreed))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let step = (params.progress, params.total);
        self.progress.lock().unwrap().push(step);
    }
}

/// A typed value from its JSON.
fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn lifecycle(era: Era) -> ClientLifecycleMode {
    match era {
        Era::Handshake => ClientLifecycleMode::Initialize,
        Era::Stateless => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    }
}

/// A gateway in front of a server of each era, with a tool that no caller may use.
async fn gateway() -> (TestGateway, [DemoServer; 2]) {
    let servers = [shop_of(Era::Handshake), shop_of(Era::Stateless)];
    let policy = json!({
        "tools": {"old__refund_order": {"required_permissions": ["refunds:write"]}},
        "principals": {"agent": {"groups": ["*"]}},
    });
    let by_name = [("old", &servers[0]), ("new", &servers[1])];
    let gateway = TestGateway::before_with(&by_name, json!({"policy": policy})).await;
    (gateway, servers)
}

/// What a client sees of both servers.
async fn walk(client: &Client) -> Value {
    let call = async |name: &'static str, arguments: Value| {
        let params = CallToolRequestParams::new(name).with_arguments(typed(arguments));
        let result = client.call_tool(params).await;
        serde_json::to_value(result.unwrap()).unwrap()
    };
    let text = |result: &Value| result["content"][0]["text"].clone();
    let tools = client.list_all_tools().await.unwrap();
    let tools: Vec<_> = tools.iter().map(|tool| tool.name.to_string()).collect();
    let search = json!({"region": "eu", "limit": 1});
    let (old, new) = tokio::join!(
        call("old__search_orders", search.clone()),
        call("new__search_orders", search)
    );
    let found = [old, new].map(|it| it["structuredContent"]["orders"][0]["id"].clone());
    let cancelled = [
        call("old__cancel_order", json!({"order_id": "A-1002"})).await,
        call("new__cancel_order", json!({"order_id": "A-1002"})).await,
    ];
    let steps = json!({"format": "csv", "steps": 2, "pause_ms": 20});
    let report = call("new__export_report", steps).await;
    let progress = client.service().steps(2).await;
    let refund = json!({"order_id": "A-1001", "amount": 5});
    let denied = call("old__refund_order", refund.clone()).await;
    let refunded = call("new__refund_order", refund).await;
    json!({
        "version": client.peer_info().unwrap().protocol_version,
        "tools": tools,
        "found": found,
        "cancelled": cancelled.each_ref().map(text),
        "report": text(&report),
        "progress": progress,
        "denied": denied["isError"],
        "code": denied["_meta"]["toolwarden/denial"]["code"],
        "advice": text(&denied).as_str().unwrap().contains("grant the missing permissions"),
        "refunded": refunded["structuredContent"]["refunded"],
    })
}

fn expected(era: Era) -> Value {
    let tools = [
        "old__search_orders",
        "old__export_report",
        "old__cancel_order",
        "old__draft_reply",
        "old__list_folders",
        "old__echo",
        "new__search_orders",
        "new__refund_order",
        "new__export_report",
        "new__cancel_order",
        "new__draft_reply",
        "new__list_folders",
        "new__echo",
    ];
    json!({
        "version": match era {
            Era::Handshake => "2025-11-25",
            Era::Stateless => "2026-07-28",
        },
        "tools": tools,
        "found": ["A-1001", "A-1001"],
        "cancelled": ["order A-1002 is cancelled", "order A-1002 is cancelled"],
        "report": "the report is written",
        "progress": [[1.0, 2.0], [2.0, 2.0]],
        "denied": true,
        "code": "missing_permissions",
        "advice": true,
        "refunded": 5,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http() {
    let (gateway, servers) = gateway().await;
    for era in [Era::Handshake, Era::Stateless] {
        let config = StreamableHttpClientTransportConfig::with_uri(gateway.url.clone());
        let transport = StreamableHttpClientTransport::with_client(http(&gateway.url), config);
        let told = ObservingClient::default();
        let client = told.serve_with_lifecycle(transport, lifecycle(era)).await;
        let client = client.unwrap();
        let seen = timeout(LIMIT, walk(&client)).await.unwrap();
        assert_eq!(seen, expected(era), "{era:?}");
        client.cancel().await.unwrap();
    }
    gateway.stop().await;
    only_what_was_allowed(&servers);
}

#[tokio::test(flavor = "multi_thread")]
async fn over_standard_streams() {
    let (gateway, servers) = gateway().await;
    for era in [Era::Handshake, Era::Stateless] {
        let (here, there) = tokio::io::duplex(64 << 10);
        let behind = gateway.gateway.clone();
        let serving = tokio::spawn(async move {
            let (input, output) = tokio::io::split(there);
            stdio::serve(&behind, &Arc::from("agent"), input, output).await
        });
        let told = ObservingClient::default();
        let client = told.serve_with_lifecycle(here, lifecycle(era)).await;
        let client = client.unwrap();
        let seen = timeout(LIMIT, walk(&client)).await.unwrap();
        assert_eq!(seen, expected(era), "{era:?}");
        client.cancel().await.unwrap();
        timeout(LIMIT, serving).await.unwrap().unwrap().unwrap();
    }
    gateway.stop().await;
    only_what_was_allowed(&servers);
}

/// The refusal was the gateway's: the server did not see the call.
fn only_what_was_allowed(servers: &[DemoServer; 2]) {
    let refunds = servers
        .each_ref()
        .map(|it| it.shop.seen().calls_of("refund_order"));
    assert_eq!(refunds, [0, 2]);
}
