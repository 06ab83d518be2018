//! Clients that name no groups and no state.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use super::workflow::{gateway, server};
use super::{ERAS, agent_of, code, counted, rows, worked};
use crate::support::{Agent, TestGateway};

fn policy() -> Value {
    json!({
        "tools": {
            "knowledge-query": {"group": ["read-only"], "state": "analysis", "available_in_states": ["undefined"]},
            "graph-update": {"group": ["write"]},
            "complex-analysis": {"group": ["read-only"], "available_in_states": ["analysis"]},
            "plain": {}
        },
        "unlisted": "hide",
        "strict_groups": true,
        "roles": {"writer": {"groups": ["write", "read-only"], "default_groups": ["write"]}},
        "principals": {
            "ada": {"groups": ["read-only"]},
            "ben": {"roles": ["writer"]},
            "cyn": {"groups": ["read-only"], "initial_state": "analysis"}
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_names_nothing_sees_what_its_principal_is_granted() {
    for era in ERAS {
        let server = server(Era::Handshake);
        let gateway = gateway(&server, policy()).await;
        let ada = agent_of(era, &gateway.url, "ada", &[]).await;
        assert_eq!(ada.tools().await, ["knowledge-query"], "{era:?}");
        let answer = ada.call("graph-update", json!({})).await;
        assert_eq!(code(&answer), Some("filtered_by_group"), "{answer}");
        let answer = ada.call("knowledge-query", json!({})).await;
        assert!(worked(&answer), "{answer}");
        assert_eq!(ada.tools().await, ["complex-analysis"], "{era:?}");
        let ben = agent_of(era, &gateway.url, "ben", &[]).await;
        assert_eq!(ben.tools().await, ["graph-update"], "{era:?}");
        let cyn = agent_of(era, &gateway.url, "cyn", &[]).await;
        assert_eq!(cyn.tools().await, ["complex-analysis"], "{era:?}");
        let answer = cyn.call("complex-analysis", json!({})).await;
        assert!(worked(&answer), "{answer}");
        // None of them did anything that needs an administrator's attention.
        let rows = rows(&gateway.gateway);
        assert!(rows.iter().all(|row| row.kind != "escalation"), "{rows:?}");
        gateway.stop().await;
    }
}

/// An agent that names the state it starts in: by `initialize`, or in its requests.
async fn starting(era: Era, by_initialize: bool, url: &str, meta: &Value) -> (Agent, Value) {
    let bearer = format!("Bearer {}", super::key("ada"));
    let mut agent = Agent::silent(era, url, &json!({}), &[("authorization", &bearer)]);
    if era == Era::Handshake {
        let mut params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        if by_initialize {
            params["_meta"] = meta.clone();
        }
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = agent.post(&body).await;
        let session = response.headers().get("mcp-session-id").unwrap();
        agent.session = Some(session.to_str().unwrap().to_owned());
        agent.notify("notifications/initialized", json!({})).await;
    }
    let with = if by_initialize {
        json!({})
    } else {
        json!({"_meta": meta})
    };
    (agent, with)
}

fn names(list: &Value) -> Vec<String> {
    let tools = list["tools"].as_array().unwrap().iter();
    tools
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_start_where_the_policy_allows_it() {
    let mut policy = policy();
    policy["sessions"] = json!({"initial_states": ["analysis"]});
    let ways = [
        (Era::Handshake, true),
        (Era::Handshake, false),
        (Era::Stateless, false),
    ];
    for (era, by_initialize) in ways {
        let server = server(Era::Stateless);
        let gateway = gateway(&server, policy.clone()).await;
        let meta = json!({"toolwarden/state": "analysis", "toolwarden/groups": ["read-only"]});
        let (ada, with) = starting(era, by_initialize, &gateway.url, &meta).await;
        let list = ada.result("tools/list", with.clone()).await;
        assert_eq!(
            names(&list),
            ["complex-analysis"],
            "{era:?} {by_initialize}"
        );
        let mut params = with;
        params["name"] = json!("complex-analysis");
        params["arguments"] = json!({});
        let answer = ada.ask("tools/call", params).await;
        assert!(worked(&answer), "{answer}");
        // The call started the session; from now on only the gateway changes its state.
        assert_eq!(ada.tools().await, ["complex-analysis"]);
        let other = json!({"_meta": {"toolwarden/state": "undefined"}});
        let list = ada.result("tools/list", other).await;
        assert_eq!(names(&list), ["complex-analysis"], "{era:?}");
        let series = r#"agent_privilege_escalation_attempts_total{reason="client_state""#;
        assert_eq!(counted(&gateway.gateway, series), Some(1), "{era:?}");
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_initial_state_of_the_policy_is_not_left_by_a_claim() {
    for era in ERAS {
        let server = server(Era::Handshake);
        let gateway = gateway(&server, policy()).await;
        let cyn = agent_of(era, &gateway.url, "cyn", &[]).await;
        let claim = json!({"_meta": {"toolwarden/state": "undefined"}});
        let list = cyn.result("tools/list", claim).await;
        assert_eq!(names(&list), ["complex-analysis"], "{era:?}");
        gateway.stop().await;
    }
}

/// The explanation that `GET /api/v1/explain` gives a principal about a tool.
async fn explained(gateway: &TestGateway, principal: &str, tool: &str) -> Value {
    let url = format!("{}/api/v1/explain?tool={tool}", gateway.root());
    let request = super::client().get(url).bearer_auth(super::key(principal));
    let answer = request.send().await.unwrap().text().await.unwrap();
    serde_json::from_str(&answer).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn following_a_remedy_makes_the_tool_visible() {
    let server = server(Era::Handshake);
    let gateway = gateway(&server, policy()).await;
    let ben = agent_of(Era::Handshake, &gateway.url, "ben", &[]).await;
    assert_eq!(ben.tools().await, ["graph-update"]);

    let told = explained(&gateway, "ben", "knowledge-query").await;
    assert_eq!(
        told["remedy"],
        "Let the client ask for it: by the header `Toolwarden-Groups: write, read-only`, by \
         `_meta[\"toolwarden/groups\"]: [\"write\", \"read-only\"]`, or by the path \
         `/mcp/g/write,read-only`. For clients that name no groups, set \
         `principals.ben.default_groups: [write, read-only]` in the policy.",
        "{told:#}"
    );
    for era in ERAS {
        let header = ("toolwarden-groups", "write, read-only");
        let by_header = agent_of(era, &gateway.url, "ben", &[header]).await;
        let both = ["knowledge-query", "graph-update"];
        assert_eq!(by_header.tools().await, both);
        let path = format!("{}/g/write,read-only", gateway.url);
        assert_eq!(agent_of(era, &path, "ben", &[]).await.tools().await, both);
        let plain = agent_of(era, &gateway.url, "ben", &[]).await;
        let meta = json!({"_meta": {"toolwarden/groups": ["write", "read-only"]}});
        assert_eq!(names(&plain.result("tools/list", meta).await), both);
    }
    let mut changed = policy();
    changed["principals"]["ben"]["default_groups"] = json!(["write", "read-only"]);
    assert_sees(changed, "ben", "knowledge-query").await;

    let told = explained(&gateway, "ada", "graph-update").await;
    assert_eq!(
        told["remedy"],
        "Grant group 'write': set `principals.ada.groups: [read-only, write]` in the policy."
    );
    let mut changed = policy();
    changed["principals"]["ada"]["groups"] = json!(["read-only", "write"]);
    assert_sees(changed, "ada", "graph-update").await;

    let told = explained(&gateway, "ada", "complex-analysis").await;
    assert_eq!(
        told["remedy"],
        "Call `knowledge-query` successfully first in this session; or start the session in state \
         'analysis': set `principals.ada.initial_state: analysis` in the policy; or add 'undefined' \
         to `tools.complex-analysis.available_in_states`."
    );
    let mut changed = policy();
    changed["principals"]["ada"]["initial_state"] = json!("analysis");
    assert_sees(changed, "ada", "complex-analysis").await;

    let told = explained(&gateway, "ada", "text-completion").await;
    assert_eq!(
        (told["answer"].as_str(), told["remedy"].as_str()),
        (
            Some(
                "`ada` does not see `text-completion`: the policy does not name tool \
                 'text-completion' and has `unlisted: hide`."
            ),
            Some("Add `text-completion` to `tools` in the policy, or set `unlisted: serve`."),
        )
    );
    gateway.stop().await;
}

async fn assert_sees(policy: Value, principal: &str, tool: &str) {
    let server = server(Era::Handshake);
    let gateway = gateway(&server, policy).await;
    for era in ERAS {
        let agent = agent_of(era, &gateway.url, principal, &[]).await;
        let seen = agent.tools().await;
        assert!(seen.iter().any(|it| it == tool), "{era:?}: {seen:?}");
    }
    let told = explained(&gateway, principal, tool).await;
    assert_eq!(told["callable"], true, "{told:#}");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_list_says_that_the_policy_hides_what_it_does_not_name() {
    for era in ERAS {
        let server = server(Era::Handshake);
        let hiding = json!({"tools": {}, "unlisted": "hide"});
        let gateway = gateway(&server, hiding).await;
        let ada = agent_of(era, &gateway.url, "ada", &[]).await;
        let list = ada.result("tools/list", json!({})).await;
        let empty = &list["_meta"]["toolwarden/empty"];
        assert_eq!(
            empty["text"],
            "the policy hides the tools that it does not name (`unlisted: hide`); an administrator can \
             add them to `tools` in the policy, or set `unlisted: serve`",
            "{empty}"
        );
        assert_eq!(empty["not_in_policy"], 7, "{empty}");
        gateway.stop().await;
    }
}
