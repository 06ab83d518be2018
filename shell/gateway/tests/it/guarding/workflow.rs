//! The workflow of the tool-group document, over MCP.

use serde_json::{Value, json};
use toolwarden_demo::DemoServer;
use toolwarden_mcp::Era;

use super::{agent_of, at_with, code, counted, echoing, identity, rows, words, worked};
use crate::support::{Agent, PAIRS, TestGateway, shop_of};

pub(super) const TOOLS: [&str; 6] = [
    "knowledge-query",
    "graph-update",
    "text-completion",
    "complex-analysis",
    "reset-workflow",
    "plain",
];

/// The tools of §5.1, and the groups that callers may request.
pub(super) fn policy() -> Value {
    json!({
        "tools": {
            "knowledge-query": {"group": ["read-only", "knowledge", "basic"], "state": "analysis", "available_in_states": ["undefined", "research"]},
            "graph-update": {"group": ["write", "knowledge", "admin"], "available_in_states": ["analysis", "modification"]},
            "text-completion": {"group": ["read-only", "text", "basic"], "state": "undefined"},
            "complex-analysis": {"group": ["advanced", "compute", "expensive"], "state": "results", "available_in_states": ["analysis"]},
            "reset-workflow": {"group": ["admin"], "state": "undefined", "available_in_states": ["analysis", "results"]},
            "refund_order": {"group": ["read-only"], "state": "refunded"},
            "plain": {}
        },
        "principals": {
            "ada": {"groups": ["knowledge", "compute", "admin"]},
            "ben": {"groups": ["read-only"]},
            "cyn": {"groups": ["*"]}
        }
    })
}

/// A server with these tools, and one that fails on request.
pub(super) fn server(era: Era) -> DemoServer {
    let server = shop_of(era);
    let mut tools = echoing(&TOOLS);
    tools.push(json!({"name": "refund_order", "inputSchema": {"type": "object"}}));
    server.shop.set_tools(&tools);
    server
}

pub(super) async fn gateway(server: &DemoServer, policy: Value) -> TestGateway {
    TestGateway::start(&json!({
        "servers": {"desk": at_with(server, json!({}))},
        "prefix": "never",
        "identity": identity(&["ada", "ben", "cyn"]),
        "policy": policy,
    }))
    .await
}

async fn step(agent: &Agent, tool: &str) {
    let answer = agent.call(tool, json!({})).await;
    assert!(worked(&answer), "{tool}: {answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_principals_walk_through_it_at_once() {
    for (agents, servers) in PAIRS {
        let server = server(servers);
        let gateway = gateway(&server, policy()).await;
        let wide = ("toolwarden-groups", "knowledge,compute,admin");
        let ada = agent_of(agents, &gateway.url, "ada", &[wide]).await;
        let ben = agent_of(
            agents,
            &gateway.url,
            "ben",
            &[("toolwarden-groups", "read-only")],
        )
        .await;
        let of_ben = ["knowledge-query", "text-completion", "refund_order"];
        assert_eq!(ada.tools().await, ["knowledge-query"], "{agents:?}");
        assert_eq!(ben.tools().await, of_ben);
        step(&ada, "knowledge-query").await;
        let analysing = ["graph-update", "complex-analysis", "reset-workflow"];
        assert_eq!(ada.tools().await, analysing);
        assert_eq!(ben.tools().await, of_ben, "only the caller moves");
        let again = ada.call("knowledge-query", json!({})).await;
        assert_eq!(code(&again), Some("filtered_by_state"));
        step(&ada, "graph-update").await;
        assert_eq!(ada.tools().await, analysing, "it leads nowhere");
        // A failed call moves nothing.
        let failed = ben.call("refund_order", json!({"order_id": "none"})).await;
        assert_eq!(failed["result"]["isError"], true, "{failed}");
        assert_eq!(ben.tools().await, of_ben);
        step(&ben, "knowledge-query").await;
        assert_eq!(ben.tools().await, ["text-completion", "refund_order"]);
        step(&ada, "complex-analysis").await;
        assert_eq!(ada.tools().await, ["reset-workflow"]);
        step(&ada, "reset-workflow").await;
        assert_eq!(ada.tools().await, ["knowledge-query"], "from the start");
        assert_eq!(ben.tools().await, ["text-completion", "refund_order"]);

        let calls = server.shop.seen().calls;
        let calls: Vec<_> = calls.iter().map(|(tool, n)| (tool.as_str(), *n)).collect();
        let once = ["complex-analysis", "graph-update"].map(|it| (it, 1));
        let others = [
            ("knowledge-query", 2),
            ("refund_order", 1),
            ("reset-workflow", 1),
        ];
        assert_eq!(calls, [&once[..], &others[..]].concat());
        let rows = rows(&gateway.gateway);
        let mut moves = Vec::new();
        for row in rows.iter().filter(|row| row.kind == "transition") {
            let (from, to) = (&row.body["from"], &row.body["to"]);
            let (from, to) = (from.as_str().unwrap(), to.as_str().unwrap());
            moves.push(format!("{} {from} {to} by {}", row.principal, row.tool));
        }
        assert_eq!(
            moves,
            [
                "ada undefined analysis by knowledge-query",
                "ben undefined analysis by knowledge-query",
                "ada analysis results by complex-analysis",
                "ada results undefined by reset-workflow",
            ]
        );
        assert_eq!(
            words(&rows, &["decision", "outcome", "transition", "escalation"]),
            [
                "decision allowed",
                "outcome succeeded",
                "transition taken",
                "decision filtered_by_state",
                "decision allowed",
                "outcome succeeded",
                "decision allowed",
                "outcome failed",
                "decision allowed",
                "outcome succeeded",
                "transition taken",
                "decision allowed",
                "outcome succeeded",
                "transition taken",
                "decision allowed",
                "outcome succeeded",
                "transition taken",
            ]
        );
        assert_eq!(
            counted(
                &gateway.gateway,
                r#"agent_state_transitions_total{tool="complex-analysis""#
            ),
            Some(1)
        );
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_told_when_a_call_moves_them() {
    let server = server(Era::Handshake);
    let gateway = gateway(&server, policy()).await;
    let groups = ("toolwarden-groups", "knowledge,compute,admin");
    let ada = agent_of(Era::Handshake, &gateway.url, "ada", &[groups]).await;
    let call = json!({"name": "knowledge-query", "arguments": {}});
    let told = ada.begin("tools/call", call).await.rest().await;
    let methods: Vec<_> = told.iter().map(|it| it["method"].as_str()).collect();
    assert_eq!(methods, [Some("notifications/tools/list_changed"), None]);
    let still = json!({"name": "graph-update", "arguments": {}});
    assert_eq!(ada.begin("tools/call", still).await.rest().await.len(), 1);

    let ben = agent_of(Era::Stateless, &gateway.url, "ben", &[]).await;
    let mut news = ben
        .begin(
            "subscriptions/listen",
            json!({"notifications": {"toolsListChanged": true}}),
        )
        .await;
    let agreed = news.message().await;
    assert_eq!(agreed["method"], "notifications/subscriptions/acknowledged");
    let groups = json!({"toolwarden/groups": ["read-only"]});
    let params = json!({"name": "knowledge-query", "arguments": {}, "_meta": groups});
    assert!(worked(&ben.ask("tools/call", params).await));
    let moved = news.message().await;
    assert_eq!(moved["method"], "notifications/tools/list_changed");
    drop(news);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_survives_its_connection() {
    let server = server(Era::Handshake);
    let gateway = gateway(&server, policy()).await;
    let bearer = format!("Bearer {}", super::key("ada"));
    let headers = [
        ("authorization", bearer.as_str()),
        ("toolwarden-groups", "knowledge,compute,admin"),
    ];
    let analysing = ["graph-update", "complex-analysis", "reset-workflow"];
    let first = agent_of(Era::Handshake, &gateway.url, "ada", &headers[1..]).await;
    step(&first, "knowledge-query").await;
    // The same id on a new connection.
    let mut second = Agent::silent(Era::Handshake, &gateway.url, &json!({}), &headers);
    second.session.clone_from(&first.session);
    assert_eq!(second.tools().await, analysing);
    // A named session outlives the id.
    let named = async |name: &str| {
        let mut agent = Agent::silent(Era::Handshake, &gateway.url, &json!({}), &headers);
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
            "_meta": {"toolwarden/session": name},
        });
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = agent.post(&body).await;
        let id = response.headers().get("mcp-session-id").unwrap();
        agent.session = Some(id.to_str().unwrap().to_owned());
        agent
    };
    let before = named("task-7").await;
    assert_eq!(before.tools().await, ["knowledge-query"]);
    let beside = named("task-7").await;
    let mut news = beside.listen(None).await;
    step(&before, "knowledge-query").await;
    loop {
        let told = news.message().await;
        if told["method"] == "notifications/tools/list_changed" {
            break;
        }
    }
    drop(news);
    assert_eq!(before.end().await, 200);
    assert_eq!(named("task-7").await.tools().await, analysing);
    assert_eq!(named("task-8").await.tools().await, ["knowledge-query"]);
    // The other era finds the same session by its name.
    let mut stateless = agent_of(Era::Stateless, &gateway.url, "ada", &headers[1..]).await;
    stateless.meta = json!({"toolwarden/session": "task-7"});
    assert_eq!(stateless.tools().await, analysing);
    // A session without a name ends with its id.
    assert_eq!(second.end().await, 200);
    let gone = first
        .post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))
        .await;
    assert_eq!(gone.status(), 404);
    gateway.stop().await;
}

/// Every case of the acceptance vectors, requested over MCP.
#[tokio::test(flavor = "multi_thread")]
async fn every_group_and_state_of_the_vectors() {
    let Some(vectors) = toolwarden_testkit::read_vectors("groups.json") else {
        return;
    };
    let mut policy = policy();
    policy["sessions"] = json!({"initial_states": ["*"]});
    policy["tools"]["refund_order"]["group"] = json!([]);
    policy["tools"]["refund_order"]["available_in_states"] = json!([]);
    let server = server(Era::Stateless);
    let gateway = gateway(&server, policy).await;
    let mut cyn = agent_of(Era::Stateless, &gateway.url, "cyn", &[]).await;
    let cases = vectors["cases_label_group_state_available"]
        .as_array()
        .unwrap();
    for (number, case) in cases.iter().enumerate() {
        let [label, groups, state, expected] = [0, 1, 2, 3].map(|at| &case[at]);
        let mut meta = json!({"toolwarden/session": format!("case-{number}")});
        if !groups.is_null() {
            meta["toolwarden/groups"] = groups.clone();
        }
        if !state.is_null() {
            meta["toolwarden/state"] = state.clone();
        }
        cyn.meta = meta;
        let answer = cyn.ask("tools/list", json!({})).await;
        if groups.is_string() {
            assert_eq!(answer["error"]["code"], -32602, "{label}: {answer}");
            continue;
        }
        let tools = answer["result"]["tools"].as_array().unwrap();
        let mut names: Vec<_> = tools.iter().map(|it| it["name"].clone()).collect();
        names.sort_by_key(|it| it.as_str().unwrap().to_owned());
        assert_eq!(Value::Array(names), *expected, "{label}");
        // Exactly the listed tools can be called.
        let listed = expected
            .as_array()
            .unwrap()
            .contains(&json!("graph-update"));
        let answer = cyn.call("graph-update", json!({})).await;
        assert_eq!(worked(&answer), listed, "{label}: {answer}");
    }
    gateway.stop().await;
}
