//! Attempts to get more than is granted are refused, counted and recorded.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use super::workflow::{gateway, policy, server};
use super::{ERAS, agent_of, code, counted, key, rows};
use crate::support::Agent;

#[tokio::test(flavor = "multi_thread")]
async fn groups_that_are_not_granted_are_refused_everywhere() {
    for era in ERAS {
        let server = server(Era::Stateless);
        let gateway = gateway(&server, policy()).await;
        let ben = agent_of(
            era,
            &gateway.url,
            "ben",
            &[("toolwarden-groups", "read-only")],
        )
        .await;
        let mut refused = 0;
        for groups in [
            json!(["admin"]),
            json!(["*"]),
            json!(["read-only", "write"]),
        ] {
            // The agent's header takes precedence over `_meta`, so this one has none.
            let headers = [("authorization", &*bearer("ben"))];
            let mut plain = Agent::silent(era, &gateway.url, &json!({}), &headers);
            plain.session.clone_from(&ben.session);
            let meta = json!({"toolwarden/groups": groups});
            let list = plain.ask("tools/list", json!({"_meta": meta})).await;
            assert_eq!(
                list["error"]["data"]["code"], "groups_not_granted",
                "{list}"
            );
            let params = json!({"name": "text-completion", "arguments": {}, "_meta": meta});
            let call = plain.ask("tools/call", params).await;
            assert_eq!(code(&call), Some("groups_not_granted"), "{era:?} {groups}");
            refused += 2;
        }
        let path = format!("{}/g/admin", gateway.url);
        let by_path = Agent::silent(era, &path, &json!({}), &[("authorization", &bearer("ben"))]);
        if era == Era::Stateless {
            let list = by_path.ask("tools/list", json!({})).await;
            assert_eq!(
                list["error"]["data"]["code"], "groups_not_granted",
                "{list}"
            );
        } else {
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"}});
            let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
            let connect_request: Value = by_path
                .post(&body)
                .await
                .text()
                .await
                .unwrap()
                .parse()
                .unwrap();
            assert_eq!(
                connect_request["error"]["data"]["code"], "groups_not_granted",
                "{connect_request}"
            );
        }
        refused += 1;
        assert_eq!(server.shop.seen().calls.len(), 0, "nothing arrived");
        let series = r#"agent_group_access_denied_total{group="admin""#;
        assert_eq!(counted(&gateway.gateway, series), Some(3), "{era:?}");
        let all = counted(
            &gateway.gateway,
            r#"agent_privilege_escalation_attempts_total{reason="groups""#,
        );
        assert_eq!(all, Some(refused), "{era:?}");
        let rows = rows(&gateway.gateway);
        let told = rows.iter().filter(|row| row.code == "groups_not_granted");
        let told: Vec<_> = told
            .map(|row| (row.kind.as_str(), row.principal.as_str()))
            .collect();
        let pair = [("escalation", "ben"), ("decision", "ben")];
        let mut expected = pair.repeat(3);
        expected.push(("escalation", "ben"));
        assert_eq!(told, expected);
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_cannot_choose_their_state() {
    for era in ERAS {
        let server = server(Era::Handshake);
        let gateway = gateway(&server, policy()).await;
        let groups = ("toolwarden-groups", "knowledge,compute,admin");
        let ada = agent_of(era, &gateway.url, "ada", &[groups]).await;
        let meta = json!({"toolwarden/state": "analysis"});
        let list = ada.result("tools/list", json!({"_meta": meta})).await;
        assert_eq!(list["tools"].as_array().unwrap().len(), 1, "{list}");
        let params = json!({"name": "complex-analysis", "arguments": {}, "_meta": meta});
        let answer = ada.ask("tools/call", params).await;
        assert_eq!(code(&answer), Some("filtered_by_state"));
        let denial = &answer["result"]["_meta"]["toolwarden/denial"];
        assert_eq!(
            denial["advice"],
            "Call `knowledge-query` successfully first, then call this tool again."
        );
        let series = r#"agent_privilege_escalation_attempts_total{reason="client_state""#;
        assert_eq!(counted(&gateway.gateway, series), Some(2), "{era:?}");
        let rows = rows(&gateway.gateway);
        let claims = rows
            .iter()
            .filter(|row| row.word() == "escalation client_state");
        let claims: Vec<_> = claims.map(|row| row.body["claimed"].clone()).collect();
        assert_eq!(claims, ["analysis", "analysis"]);
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_other_principals_are_refused() {
    let server = server(Era::Handshake);
    let gateway = gateway(&server, policy()).await;
    let groups = ("toolwarden-groups", "knowledge,compute,admin");
    let ada = agent_of(Era::Handshake, &gateway.url, "ada", &[groups]).await;
    ada.call("knowledge-query", json!({})).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let headers = [("authorization", bearer("ben"))];
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, it)| (*name, it.as_str()))
        .collect();
    let mut thief = Agent::silent(Era::Handshake, &gateway.url, &json!({}), &headers);
    thief.session.clone_from(&ada.session);
    let refused = thief.post(&list).await;
    assert_eq!(refused.status(), 404);
    assert!(
        refused
            .text()
            .await
            .unwrap()
            .contains("send `initialize` again")
    );
    assert_eq!(thief.listen(None).await.status, 404);
    assert_eq!(thief.end().await, 404);
    let series = r#"agent_privilege_escalation_attempts_total{reason="foreign_session""#;
    assert_eq!(counted(&gateway.gateway, series), Some(3));
    let rows = rows(&gateway.gateway);
    let thefts = rows
        .iter()
        .filter(|row| row.word() == "escalation foreign_session");
    let thefts = thefts.map(|row| (row.principal.as_str(), row.body["owner"].clone()));
    assert_eq!(
        thefts.collect::<Vec<_>>(),
        [
            ("ben", json!("ada")),
            ("ben", json!("ada")),
            ("ben", json!("ada"))
        ]
    );
    // Under its own name it is another session, in the initial state.
    let mut thief = agent_of(Era::Stateless, &gateway.url, "cyn", &[]).await;
    let id = ada.session.as_ref().unwrap();
    thief.meta = json!({"toolwarden/session": id, "toolwarden/groups": ["*"]});
    assert_eq!(
        thief.tools().await,
        [
            "knowledge-query",
            "text-completion",
            "plain",
            "refund_order"
        ]
    );
    assert_eq!(ada.tools().await.len(), 3, "hers is where it was");
    gateway.stop().await;
}

fn bearer(principal: &str) -> String {
    format!("Bearer {}", key(principal))
}
