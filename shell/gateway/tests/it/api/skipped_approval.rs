//! An agent that must follow a workflow cannot move it by its own report.

use serde_json::{Value, json};

use super::fixture::{AllowedHosts, Who};

/// A gateway whose second server has never been reached: nothing listens there.
async fn allowed_hosts(prefix: &str) -> AllowedHosts {
    let shop = toolwarden_demo::DemoServer::start(Default::default()).unwrap();
    let rules = json!({"state": "approved"});
    let allowed_hosts = AllowedHosts::start_with(json!({
        "prefix": prefix,
        "servers": {
            "shop": {"url": shop.url},
            "people": {"url": "http://127.0.0.1:9/mcp", "start": "lazy"},
        },
        "policy": {
            "tools": {
                "people__approve": rules, "approve": rules, "shop__pay": rules,
                "by-phone": {"state": "approved", "outside": true},
                "people__by-phone": {"state": "approved", "outside": true},
                "note": {},
                "shop__refund_order": {"available_in_states": ["approved"]},
            },
            "principals": {"*": {"groups": ["*"], "default_groups": ["*"]}},
        },
    }));
    let allowed_hosts = allowed_hosts.await;
    // The server of the settings, not the one of the site.
    std::mem::forget(shop);
    allowed_hosts
}

async fn completed(allowed_hosts: &AllowedHosts, who: Who, tool: &str) -> (u16, Value) {
    let body = json!({"tool": tool, "session": tool});
    let (status, decided) = allowed_hosts.post(Who::Ann, "/api/v1/decide", body).await;
    assert_eq!(
        (status, &decided["allowed"]),
        (200, &json!(true)),
        "{decided}"
    );
    let body = json!({"call": decided["call"], "outcome": "succeeded"});
    allowed_hosts.post(who, "/api/v1/complete", body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn success_of_a_tool_that_a_server_may_have_is_not_reported_by_agents() {
    for prefix in ["always", "conflict", "never"] {
        let allowed_hosts = allowed_hosts(prefix).await;
        for tool in [
            "people__approve",
            "approve",
            "shop__pay",
            "people__by-phone",
        ] {
            let (status, answer) = completed(&allowed_hosts, Who::Ann, tool).await;
            assert_eq!(status, 403, "{prefix} {tool}: {answer}");
            let refund = json!({
                "tool": "shop__refund_order", "session": tool,
                "arguments": {"order_id": "A-1001", "amount": 5},
            });
            let (_, decided) = allowed_hosts.post(Who::Ann, "/api/v1/decide", refund).await;
            assert_eq!(decided["allowed"], false, "{prefix} {tool}: {decided}");
            let (status, answer) = completed(&allowed_hosts, Who::Root, tool).await;
            assert_eq!((status, &answer["moved"]), (200, &json!(true)), "{answer}");
        }
        // A tool that the policy marks as called elsewhere, and one that moves nothing.
        for (tool, moved) in [("by-phone", true), ("note", false)] {
            let (status, answer) = completed(&allowed_hosts, Who::Ann, tool).await;
            assert_eq!(
                (status, &answer["moved"]),
                (200, &json!(moved)),
                "{tool}: {answer}"
            );
        }
        allowed_hosts.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_not_freed_by_the_word_of_the_agent_that_used_it() {
    let allowed_hosts = AllowedHosts::start_with(json!({"policy": {
        "tools": {"pay": {"available_in_states": ["approved"], "outside": true}},
        "states": {"approved": {"single_use": true}},
        "sessions": {"initial_states": ["approved"]},
        "principals": {"*": {"groups": ["*"], "default_groups": ["*"]}},
    }}))
    .await;
    let decide = async |session: &str| {
        let body = json!({"tool": "pay", "session": session, "state": "approved"});
        allowed_hosts.post(Who::Ann, "/api/v1/decide", body).await.1
    };
    for (who, session, again) in [
        (Who::Ann, "one", json!("state_used")),
        // An administrator saw that the tool asks for more.
        (Who::Root, "two", json!("allowed")),
    ] {
        let decided = decide(session).await;
        assert_eq!(decided["allowed"], true, "{decided}");
        let body = json!({"call": decided["call"], "outcome": "suspended"});
        let (status, told) = allowed_hosts.post(who, "/api/v1/complete", body).await;
        assert_eq!(status, 200, "{told}");
        assert_eq!(decide(session).await["code"], again, "{who:?}");
    }
    allowed_hosts.stop().await;
}
