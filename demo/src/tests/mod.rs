//! Tests of the shop with the requests of clients.

mod http;
mod stdio;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolwarden_mcp::{ConnectionLimits, Endpoint, Era, McpClient};

use super::{DemoServer, SessionMode, ShopOptions, SupportedEras, drifted_tools, tools};

pub(super) fn start(eras: SupportedEras, sessions: SessionMode) -> DemoServer {
    DemoServer::start(ShopOptions {
        eras,
        sessions,
        ..ShopOptions::default()
    })
    .unwrap()
}

pub(super) async fn connect(server: &DemoServer) -> McpClient {
    let endpoint = Endpoint::url(&server.url).unwrap();
    McpClient::connect(&endpoint, &ConnectionLimits::default())
        .await
        .unwrap()
}

pub(super) fn parsed(text: &RawValue) -> Value {
    serde_json::from_str(text.get()).unwrap()
}

async fn listed(client: &McpClient) -> Vec<Value> {
    let listing = client.list_tools().await.unwrap();
    listing.tools.iter().map(|tool| parsed(tool)).collect()
}

#[tokio::test]
async fn each_era_is_spoken_alone() {
    for (eras, sessions, era, opened) in [
        (
            SupportedEras::Both,
            SessionMode::Required,
            Era::Stateless,
            0,
        ),
        (
            SupportedEras::Stateless,
            SessionMode::Required,
            Era::Stateless,
            0,
        ),
        (
            SupportedEras::Handshake,
            SessionMode::Required,
            Era::Handshake,
            1,
        ),
        (
            SupportedEras::Handshake,
            SessionMode::None,
            Era::Handshake,
            1,
        ),
    ] {
        let server = start(eras, sessions);
        let client = connect(&server).await;
        assert_eq!(client.server().era, era, "{eras:?}");
        assert_eq!(
            client.server().name.as_deref(),
            Some("toolwarden-demo-shop")
        );
        assert_eq!(listed(&client).await, tools());
        let arguments = json!({"region": "eu", "limit": 1});
        let found = client.call_tool("search_orders", &arguments).await.unwrap();
        assert_eq!(
            parsed(&found)["structuredContent"],
            json!({
                "orders": [{
                    "id": "A-1001", "customer": "Ada Lindqvist", "status": "paid",
                    "region": "eu", "total": 129.9
                }],
                "matches": 2
            })
        );
        let seen = server.shop.seen();
        assert_eq!(seen.calls_of("search_orders"), 1);
        assert_eq!(
            (seen.initializes, server.shop.open_sessions()),
            (opened, usize::try_from(opened).unwrap()),
            "{eras:?} {sessions:?}"
        );
        client.close().await;
    }
}

#[tokio::test]
async fn an_echo_is_byte_for_byte() {
    let server = start(SupportedEras::Handshake, SessionMode::Required);
    let client = connect(&server).await;
    let arguments: Value =
        serde_json::from_str(r#"{"b":1.00,"a":12345678901234567890123}"#).unwrap();
    let echo = client.call_tool("echo", &arguments).await.unwrap();
    assert_eq!(
        echo.get(),
        r#"{"content":[{"type":"text","text":"echo"}],"structuredContent":{"params":{"name":"echo","arguments":{"b":1.00,"a":12345678901234567890123}}}}"#
    );
    assert_eq!(
        server.shop.seen().last_params.unwrap().get(),
        r#"{"name":"echo","arguments":{"b":1.00,"a":12345678901234567890123}}"#
    );
}

#[tokio::test]
async fn tools_drift_and_are_restored() {
    for eras in [SupportedEras::Handshake, SupportedEras::Stateless] {
        let server = start(eras, SessionMode::Required);
        let client = connect(&server).await;
        server.shop.drift();
        let now = listed(&client).await;
        assert_eq!(now, drifted_tools());
        assert_ne!(now, tools());
        server.shop.restore();
        assert_eq!(listed(&client).await, tools());
        let own = RawValue::from_string(r#"{ "name":"x" , "n":1.00}"#.to_owned()).unwrap();
        server.shop.set_raw_tools(&[own]);
        let listing = client.list_tools().await.unwrap();
        assert_eq!(listing.tools[0].get(), r#"{ "name":"x" , "n":1.00}"#);
        let echoed = client.call_tool("x", &json!({})).await.unwrap();
        assert_eq!(parsed(&echoed)["structuredContent"]["params"]["name"], "x");
        let gone = client.call_tool("echo", &json!({})).await.unwrap_err();
        assert!(
            gone.to_string().contains("tool `echo` is not offered"),
            "{gone}"
        );
    }
}

#[tokio::test]
async fn lists_have_pages() {
    let options = ShopOptions {
        page: 3,
        ..ShopOptions::default()
    };
    let server = DemoServer::start(options).unwrap();
    let client = connect(&server).await;
    assert_eq!(listed(&client).await, tools());
    assert_eq!(server.shop.seen().lists, 3);
    let refused = client
        .request("tools/list", json!({"cursor": "page-9"}))
        .await;
    assert!(refused.is_err());
}

#[tokio::test]
async fn what_is_no_tool_is_offered_too() {
    for eras in [SupportedEras::Handshake, SupportedEras::Stateless] {
        let server = start(eras, SessionMode::Required);
        let client = connect(&server).await;
        for (method, params, pointer, expected) in [
            (
                "resources/list",
                json!({}),
                "/resources/0/uri",
                "orders://today",
            ),
            (
                "resources/templates/list",
                json!({}),
                "/resourceTemplates/0/name",
                "order",
            ),
            (
                "resources/read",
                json!({"uri": "orders://A-1002"}),
                "/contents/0/uri",
                "orders://A-1002",
            ),
            (
                "prompts/list",
                json!({}),
                "/prompts/0/name",
                "refund_letter",
            ),
            (
                "prompts/get",
                json!({"name": "refund_letter", "arguments": {"order_id": "A-1003", "tone": "formal"}}),
                "/messages/0/content/text",
                "Write a formal letter that tells the customer of order A-1003 of the refund.",
            ),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "refund_letter"}, "argument": {"name": "tone", "value": "fo"}}),
                "/completion/values/0",
                "formal",
            ),
        ] {
            let result = client.request(method, params).await.unwrap();
            assert_eq!(
                parsed(&result).pointer(pointer),
                Some(&json!(expected)),
                "{method}"
            );
        }
        let refund = json!({"order_id": "A-1001", "amount": 5});
        let paid = parsed(&client.call_tool("refund_order", &refund).await.unwrap());
        assert_eq!(
            paid["structuredContent"],
            json!({"order_id": "A-1001", "refunded": 5, "status": "refunded"})
        );
        let none = json!({"order_id": "A-9999", "amount": 5});
        let failed = parsed(&client.call_tool("refund_order", &none).await.unwrap());
        assert_eq!(failed["isError"], true);
    }
}
