//! What a session asked for when it began bounds its requests; and results that are not objects.

use serde_json::json;
use toolwarden_mcp::Era;

use super::{agent_of, at_with, code, counted, echoing, identity, key, rows, worked};
use crate::support::{Agent, TestGateway, shop_of};
use crate::transparent::Peer;

#[tokio::test(flavor = "multi_thread")]
async fn a_request_does_not_widen_the_groups_of_its_session() {
    let server = shop_of(Era::Handshake);
    server.shop.set_tools(&echoing(&["read", "write"]));
    let gateway = TestGateway::start(&json!({
        "servers": {"s": at_with(&server, json!({}))},
        "prefix": "never",
        "identity": identity(&["ada"]),
        "policy": {
            "tools": {"read": {"group": "files/read"}, "write": {"group": "files/write"}},
            "principals": {"ada": {"groups": ["files"]}},
        },
    }))
    .await;
    let narrow = [("toolwarden-groups", "files/read")];
    let ada = agent_of(Era::Handshake, &gateway.url, "ada", &narrow).await;
    assert_eq!(ada.tools().await, ["read"]);
    let bearer = format!("Bearer {}", key("ada"));
    let with_session = |groups: Option<&str>| {
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend(groups.map(|it| ("toolwarden-groups", it)));
        let mut agent = Agent::silent(Era::Handshake, &gateway.url, &json!({}), &headers);
        agent.session.clone_from(&ada.session);
        agent
    };
    let wider = with_session(Some("files"));
    let list = wider.ask("tools/list", json!({})).await;
    assert_eq!(
        list["error"]["data"]["code"], "groups_beyond_session",
        "{list}"
    );
    let answer = wider.call("write", json!({})).await;
    assert_eq!(code(&answer), Some("groups_beyond_session"), "{answer}");
    let plain = with_session(None);
    let meta = json!({"toolwarden/groups": ["files/read", "files/write"]});
    let params = json!({"name": "write", "arguments": {}, "_meta": meta});
    let answer = plain.ask("tools/call", params).await;
    assert_eq!(code(&answer), Some("groups_beyond_session"), "{answer}");
    // Less, or the same, is fine.
    assert!(worked(&plain.call("read", json!({})).await));
    let none = json!({"_meta": {"toolwarden/groups": []}});
    assert_eq!(plain.result("tools/list", none).await["tools"], json!([]));
    // A session that named none is bound by grants alone.
    let free = agent_of(Era::Handshake, &gateway.url, "ada", &[]).await;
    let params = json!({"name": "write", "arguments": {}, "_meta": meta});
    assert!(worked(&free.ask("tools/call", params).await));

    assert_eq!(server.shop.seen().calls_of("write"), 1);
    let series = r#"agent_privilege_escalation_attempts_total{reason="groups_beyond_session""#;
    assert_eq!(counted(&gateway.gateway, series), Some(3));
    let records = rows(&gateway.gateway);
    let told = records
        .iter()
        .filter(|row| row.code == "groups_beyond_session");
    let told: Vec<&str> = told.map(|row| row.kind.as_str()).collect();
    let kinds = [
        "escalation",
        "escalation",
        "decision",
        "escalation",
        "decision",
    ];
    assert_eq!(told, kinds);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_are_not_objects_are_withheld() {
    let odd = [json!([]), json!(null), json!("text"), json!(7), json!(true)];
    for (at, result) in odd.iter().enumerate() {
        let peer = Peer::new(
            "odd",
            json!({
                "tools": [{"name": "show", "inputSchema": {"type": "object"}}],
                "results": {"show": result, "resources/read": result, "thing/do": result},
                "resources": [{"uri": "note://a", "name": "a"}],
                "methods": ["thing/do"],
            }),
        );
        let settings = json!({
            "servers": {"odd": peer.entry()}, "prefix": "never",
            "policy": {"tools": {"show": {"state": "shown"}}},
        });
        let gateway = TestGateway::start(&settings).await;
        let era = [Era::Handshake, Era::Stateless][at % 2];
        let agent = Agent::of(era, &gateway.url, "{}").await;
        let answer = agent.call("show", json!({})).await;
        assert_eq!(code(&answer), Some("invalid_output"), "{result}: {answer}");
        let read = agent
            .ask("resources/read", json!({"uri": "note://a"}))
            .await;
        let text = read["error"]["message"].as_str().unwrap_or_default();
        assert!(text.contains("not a JSON object"), "{result}: {read}");
        let records = rows(&gateway.gateway);
        assert!(
            !records.iter().any(|row| row.kind == "transition"),
            "it moves nothing"
        );
        assert!(
            records.iter().any(|row| row.word() == "outcome failed"),
            "{records:?}"
        );
        gateway.stop().await;
    }
}
