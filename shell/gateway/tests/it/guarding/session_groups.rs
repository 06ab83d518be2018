//! The groups requested when a session began bound its requests; and results that are not objects.

use serde_json::json;
use toolwarden_mcp::Era;

use super::{agent_of, at_with, bearer_of, code, counted, echoing, identity, key, rows, worked};
use crate::support::{Agent, TestGateway, http, shop_of};
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
    // Fewer or the same groups are allowed.
    assert!(worked(&plain.call("read", json!({})).await));
    let none = json!({"_meta": {"toolwarden/groups": []}});
    assert_eq!(plain.result("tools/list", none).await["tools"], json!([]));
    // A session that named none is bound only by grants.
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
async fn a_session_bounds_requests_that_name_it() {
    let server = shop_of(Era::Handshake);
    server.shop.set_tools(&echoing(&["read", "write"]));
    let gateway = TestGateway::start(&json!({
        "servers": {"s": at_with(&server, json!({}))},
        "prefix": "never",
        "identity": identity(&["ada"]),
        "policy": {
            "tools": {"read": {"group": "files/read"}, "write": {"group": "files/write"}},
            "principals": {"ada": {"groups": ["files"]}},
            "sessions": {"initial_states": ["*"]},
        },
    }))
    .await;
    let narrow = [("toolwarden-groups", "files/read")];
    let ada = agent_of(Era::Handshake, &gateway.url, "ada", &narrow).await;
    let session = ada.session.clone().unwrap();
    let mut other = agent_of(Era::Stateless, &gateway.url, "ada", &[]).await;
    other.meta = json!({"toolwarden/session": session, "toolwarden/groups": ["files"]});
    let answer = other.call("write", json!({})).await;
    assert_eq!(code(&answer), Some("groups_beyond_session"), "{answer}");
    let list = other.ask("tools/list", json!({})).await;
    assert_eq!(
        list["error"]["data"]["code"], "groups_beyond_session",
        "{list}"
    );
    let api = async |path: &str, body: Option<serde_json::Value>| {
        let url = format!("{}/api/v1/{path}", gateway.root());
        let client = http(&url);
        let asked = match body {
            Some(body) => client.post(&url).json(&body),
            None => client.get(&url),
        };
        let asked = asked.header("authorization", bearer_of("ada"));
        let told = asked.send().await.unwrap().text().await.unwrap();
        serde_json::from_str::<serde_json::Value>(&told).unwrap()
    };
    let decide = json!({"tool": "write", "session": session, "groups": ["files"]});
    let decided = api("decide", Some(decide)).await;
    assert_eq!(decided["code"], "groups_beyond_session", "{decided}");
    let explained = format!("explain?tool=write&session={session}&groups=files");
    let explained = api(&explained, None).await;
    assert_eq!(explained["callable"], false, "{explained}");
    let refused = api(&format!("tools?session={session}&groups=files"), None).await;
    assert!(
        refused.to_string().contains("was not opened with"),
        "{refused}"
    );
    assert_eq!(server.shop.seen().calls_of("write"), 0);
    // Callers that share a workflow session over their own connections each have the groups they requested.
    let wide = [("toolwarden-groups", "files/write")];
    let beside = agent_of(Era::Handshake, &gateway.url, "ada", &wide).await;
    assert!(worked(&beside.call("write", json!({})).await));
    // A request that opens its session by naming a state binds none after it.
    other.meta = json!({
        "toolwarden/session": "task", "toolwarden/state": "begun", "toolwarden/groups": ["files/read"],
    });
    assert!(worked(&other.call("read", json!({})).await));
    other.meta = json!({"toolwarden/session": "task", "toolwarden/groups": ["files/write"]});
    assert!(worked(&other.call("write", json!({})).await));
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
