use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::{AllowedHosts, Who, client};

const DECIDE: &str = "/api/v1/decide";
const COMPLETE: &str = "/api/v1/complete";

async fn decide(allowed_hosts: &AllowedHosts, who: Who, body: Value) -> Value {
    let (status, answer) = allowed_hosts.post(who, DECIDE, body).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_moves_on_when_its_calls_succeed() {
    let allowed_hosts = AllowedHosts::start().await;
    let refund = json!({
        "tool": "shop__refund_order",
        "session": "case-1",
        "groups": ["read", "write"],
        "arguments": {"order_id": "A-1001", "amount": 5},
    });
    let denied = decide(&allowed_hosts, Who::Ann, refund.clone()).await;
    assert_eq!(
        (&denied["code"], &denied["gate"], &denied["call"]),
        (&json!("filtered_by_state"), &json!("state"), &Value::Null)
    );
    let advice = "Call `shop__search_orders` successfully first, then call this tool again.";
    assert_eq!(denied["advice"], advice);

    let search =
        json!({"tool": "shop__search_orders", "session": "case-1", "groups": ["read", "write"]});
    let allowed = decide(&allowed_hosts, Who::Ann, search.clone()).await;
    assert_eq!(
        (
            &allowed["allowed"],
            &allowed["leads_to"],
            &allowed["checks_result"]
        ),
        (&json!(true), &json!("found"), &json!(true))
    );
    // A failed call moves nothing.
    let failed = json!({"call": allowed["call"], "outcome": "failed", "error": "no network"});
    let (_, answer) = allowed_hosts.post(Who::Ann, COMPLETE, failed.clone()).await;
    assert_eq!(
        (&answer["state"], &answer["moved"]),
        (&json!("undefined"), &json!(false))
    );
    let (status, _) = allowed_hosts.post(Who::Ann, COMPLETE, failed).await;
    assert_eq!(status, 404, "an outcome is reported once");

    let allowed = decide(&allowed_hosts, Who::Ann, search).await;
    let told = |result: Option<Value>| {
        let mut told = json!({"call": allowed["call"], "outcome": "succeeded"});
        if let Some(result) = result {
            told["result"] = result;
        }
        told
    };
    // Only the caller may report the outcome, and a result with a schema must be sent.
    let result = json!({"orders": [], "matches": 0});
    let (status, _) = allowed_hosts
        .post(Who::Bob, COMPLETE, told(Some(result.clone())))
        .await;
    assert_eq!(status, 404);
    let (status, answer) = allowed_hosts.post(Who::Ann, COMPLETE, told(None)).await;
    assert_eq!(status, 400, "{answer}");
    // A caller that must follow a workflow may not report that it moved.
    let (status, answer) = allowed_hosts
        .post(Who::Ann, COMPLETE, told(Some(result.clone())))
        .await;
    assert_eq!(status, 403, "{answer}");
    let (_, answer) = allowed_hosts
        .post(Who::Root, COMPLETE, told(Some(result)))
        .await;
    assert_eq!(
        (&answer["state"], &answer["moved"]),
        (&json!("found"), &json!(true))
    );

    assert_eq!(
        decide(&allowed_hosts, Who::Ann, refund.clone()).await["allowed"],
        true
    );
    let mut wrong = refund;
    wrong["arguments"] = json!({"order_id": 7, "amount": 5});
    let denied = decide(&allowed_hosts, Who::Ann, wrong).await;
    assert_eq!(
        (&denied["code"], &denied["pointers"]),
        (&json!("invalid_input"), &json!(["/order_id"]))
    );

    let (_, own) = allowed_hosts.get(Who::Bob, "/api/v1/sessions").await;
    assert_eq!(own["count"], 0, "sessions of others are not Bob's");
    let (_, session) = allowed_hosts.get(Who::Ann, "/api/v1/sessions/case-1").await;
    assert_eq!(
        (&session["principal"], &session["state"]),
        (&json!("ann"), &json!("found"))
    );
    let log = &session["log"];
    assert_eq!(log["request_id"], "case-1");
    let step = &log["state_transitions"][0];
    assert_eq!(
        (&step["tool"], &step["from"], &step["to"]),
        (
            &json!("shop__search_orders"),
            &json!("undefined"),
            &json!("found")
        )
    );
    let (status, _) = allowed_hosts
        .ask(Who::Root, "DELETE", "/api/v1/sessions/case-1", None)
        .await;
    assert_eq!(status, 200);
    let (status, _) = allowed_hosts.get(Who::Ann, "/api/v1/sessions/case-1").await;
    assert_eq!(status, 404);
    allowed_hosts.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_limited_calls_get_retry_after() {
    let allowed_hosts = AllowedHosts::start().await;
    let echo = json!({"tool": "shop__echo", "groups": ["read"]});
    for _ in 0..2 {
        assert_eq!(
            decide(&allowed_hosts, Who::Ann, echo.clone()).await["allowed"],
            true
        );
    }
    let denied = decide(&allowed_hosts, Who::Ann, echo).await;
    assert_eq!(denied["code"], "rate_limited");
    assert!(denied["retryAfter"].as_f64().unwrap() > 0.0);
    allowed_hosts.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_reported_outcome_is_abandoned() {
    let allowed_hosts = AllowedHosts::start_patiently(json!({}), Duration::from_millis(200)).await;
    let allowed = decide(
        &allowed_hosts,
        Who::Bob,
        json!({"tool": "shop__list_folders"}),
    )
    .await;
    let call = allowed["call"].as_str().unwrap();
    let mut records = json!([]);
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(25)).await;
        let path = "/api/v1/audit?kind=outcome&principal=bob&code=abandoned";
        records = allowed_hosts.root(path).await["records"].clone();
        if records[0].is_object() {
            break;
        }
    }
    assert_eq!(records[0]["body"]["call"], call, "{records}");
    let told = json!({"call": call, "outcome": "succeeded"});
    let (status, _) = allowed_hosts.post(Who::Bob, COMPLETE, told).await;
    assert_eq!(status, 404);
    allowed_hosts.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_agents_are_listed_and_ended() {
    let allowed_hosts = AllowedHosts::start().await;
    let post = |session: Option<String>, body: Value| {
        let request = client(&allowed_hosts.base)
            .post(format!("{}/mcp", allowed_hosts.base))
            .header("authorization", "Bearer ann-0123456789-abcdefg")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        let request = match session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        };
        request.body(body.to_string()).send()
    };
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    assert_eq!(post(None, initialize).await.unwrap().status(), 200);
    let sessions = allowed_hosts.root("/api/v1/sessions?principal=ann").await;
    assert_eq!(sessions["count"], 1);
    let conversation = &sessions["sessions"][0]["conversations"][0];
    assert_eq!(
        (&conversation["era"], &conversation["client"]),
        (&json!("handshake"), &json!("test"))
    );
    let id = conversation["mcp_session_id"].as_str().unwrap();
    let (status, _) = allowed_hosts
        .ask(Who::Root, "DELETE", &format!("/api/v1/sessions/{id}"), None)
        .await;
    assert_eq!(status, 200);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let answer = post(Some(id.to_owned()), ping).await.unwrap();
    assert_eq!(answer.status(), 404, "the agent has to begin anew");
    allowed_hosts.stop().await;
}
