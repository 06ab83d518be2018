//! Conditions on `load` and `request`, over MCP.

use serde_json::{Value, json};
use toolwarden_gateway::runtime::{RunningGateway, load_policy};
use toolwarden_mcp::Era;

use super::{ERAS, agent_of, at_with, code, echoing, identity, rows, worked};
use crate::support::{TestGateway, settings_in, shop_of, until};

fn settings(server: &Value, when: &str) -> Value {
    json!({
        "servers": {"s": server},
        "prefix": "never",
        "identity": identity(&["ada"]),
        "client_attributes": ["region", "cost-center"],
        "policy": {
            "tools": {"report": {"group": "reports"}, "plain": {}},
            "groups": {"reports": {"when": when}},
            "principals": {"ada": {"groups": ["*"], "default_groups": ["*"]}},
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_give_attributes_by_meta_and_by_header() {
    let server = shop_of(Era::Handshake);
    server.shop.set_tools(&echoing(&["report", "plain"]));
    let when = r#"request.region == "eu" && request["cost-center"] != "9""#;
    let settings = settings(&at_with(&server, json!({})), when);
    let gateway = TestGateway::start(&settings).await;
    for era in ERAS {
        let without = agent_of(era, &gateway.url, "ada", &[]).await;
        assert_eq!(without.tools().await, ["plain"], "{era:?}");
        assert_eq!(
            code(&without.call("report", json!({})).await),
            Some("group_off")
        );
        let meta =
            json!({"toolwarden/attributes": {"region": "eu", "cost-center": "7", "other": {}}});
        let list = without.result("tools/list", json!({"_meta": meta})).await;
        assert_eq!(list["tools"].as_array().unwrap().len(), 2, "{list}");
        let params = json!({"name": "report", "arguments": {}, "_meta": meta});
        assert!(worked(&without.ask("tools/call", params).await));
        let headers = [
            ("toolwarden-attribute-region", "eu"),
            ("Toolwarden-Attribute-Cost-Center", "7"),
        ];
        let with = agent_of(era, &gateway.url, "ada", &headers).await;
        assert_eq!(with.tools().await, ["report", "plain"], "{era:?}");
        assert!(worked(&with.call("report", json!({})).await));
        // A duplicate attribute, or a value that is not an attribute, is refused.
        for (agent, attributes) in [
            (&with, json!({"region": "us"})),
            (&without, json!({"region": {"a": 1}})),
            (&without, json!({"region": "x".repeat(5_000)})),
            (&without, json!(["region"])),
        ] {
            let meta = json!({"toolwarden/attributes": attributes});
            let params = json!({"name": "report", "arguments": {}, "_meta": meta});
            let answer = agent.ask("tools/call", params).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
    }
    let records = rows(&gateway.gateway);
    let told = records
        .iter()
        .filter(|row| row.tool == "report" && row.allowed == Some(true));
    for row in told {
        let attributes = json!({"region": "eu", "cost-center": "7"});
        assert_eq!(row.body["attributes"], attributes, "{row:?}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn load_is_what_the_busiest_server_has_under_way() {
    let server = shop_of(Era::Handshake);
    server.shop.set_tools(&echoing(&["report", "plain"]));
    let settings = settings(&at_with(&server, json!({"concurrency": 4})), "load < 0.5");
    let gateway = TestGateway::start(&settings).await;
    let ada = agent_of(Era::Handshake, &gateway.url, "ada", &[]).await;
    assert_eq!(ada.tools().await, ["report", "plain"]);
    // The connection of the conversation is open before the server hangs.
    assert!(worked(&ada.call("plain", json!({})).await));
    server.shop.stop_answering();
    let busy = async || {
        let one = ada.call("plain", json!({}));
        let two = ada.call("plain", json!({}));
        tokio::join!(one, two)
    };
    let watching = async {
        let status = || gateway.gateway.upstreams()[0].status().in_flight;
        until("two calls are in flight", || status() >= 2).await;
        let refused = ada.call("report", json!({})).await;
        server.shop.recover();
        refused
    };
    let (_, refused) = tokio::join!(busy(), watching);
    assert_eq!(code(&refused), Some("group_off"), "{refused}");
    assert!(worked(&ada.call("report", json!({})).await));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_that_no_client_can_meet_is_refused_at_the_start() {
    let server = shop_of(Era::Handshake);
    let settings = settings(&at_with(&server, json!({})), r#"request.team == "a""#);
    let folder = tempfile::TempDir::new().unwrap();
    let loaded = settings_in(&settings, folder.path());
    let policy = load_policy(&loaded, &folder.path().join("toolwarden.yaml")).unwrap();
    let refused = RunningGateway::start(loaded, policy, Value::Null)
        .await
        .err()
        .unwrap();
    assert_eq!(
        refused.to_string(),
        "the condition of group `reports` asks about `request.team`, which no client may send; add `team` to \
         `client_attributes`, or change the condition"
    );
}
