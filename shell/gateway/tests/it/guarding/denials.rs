//! Every gate denies with its code, and says how to continue.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use super::{ERAS, agent_of, at_with, code, counted, echoing, identity, rows};
use crate::support::{TestGateway, shop_of};

fn policy() -> Value {
    json!({
        "tools": {
            "quarantined": {},
            "other-group": {"group": ["other"]},
            "later": {"available_in_states": ["started"]},
            "start": {"state": "started", "available_in_states": ["undefined"]},
            "secret": {"required_permissions": ["secret:read"]},
            "seldom": {"rate_limit": {"agent": 1, "window": "1h"}},
            "strict": {"input_schema": {"type": "object", "properties": {
                "n": {"type": "integer"}, "s": {"type": "array", "items": {"type": "string"}}},
                "required": ["n"]}},
        },
        "quarantine": ["quarantined"],
        "principals": {"ada": {}},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn each_in_both_forms() {
    let names = [
        "quarantined",
        "other-group",
        "later",
        "start",
        "secret",
        "seldom",
        "strict",
    ];
    let cases: [(&str, Value, &str, &str); 7] = [
        ("nothing", json!({}), "unknown_tool", "List the tools again"),
        (
            "quarantined",
            json!({}),
            "quarantined",
            "ask a person to review",
        ),
        (
            "other-group",
            json!({}),
            "filtered_by_group",
            "Call a tool that is listed",
        ),
        (
            "later",
            json!({}),
            "filtered_by_state",
            "Call `start` successfully first",
        ),
        (
            "secret",
            json!({}),
            "missing_permissions",
            "grant the missing permissions",
        ),
        (
            "seldom",
            json!({}),
            "rate_limited",
            "then make the same call again",
        ),
        (
            "strict",
            json!({"n": "x", "s": ["a", 1]}),
            "invalid_input",
            "/s/1",
        ),
    ];
    for form in ["tool-error", "rpc-error"] {
        for era in ERAS {
            let server = shop_of(Era::Handshake);
            server.shop.set_tools(&echoing(&names));
            let gateway = TestGateway::start(&json!({
                "servers": {"s": at_with(&server, json!({}))},
                "prefix": "never",
                "denials": form,
                "identity": identity(&["ada"]),
                "policy": policy(),
            }))
            .await;
            let ada = agent_of(era, &gateway.url, "ada", &[]).await;
            assert_eq!(ada.tools().await, ["start", "seldom", "strict"]);
            assert!(super::worked(&ada.call("seldom", json!({})).await));
            for (tool, arguments, expected, advice) in &cases {
                let answer = ada.call(tool, arguments.clone()).await;
                let (denial, text) = if form == "tool-error" {
                    assert_eq!(code(&answer), Some(*expected), "{answer}");
                    let result = &answer["result"];
                    (
                        &result["_meta"]["toolwarden/denial"],
                        &result["content"][0]["text"],
                    )
                } else {
                    let error = &answer["error"];
                    assert_eq!(error["code"], -32010, "{tool}: {answer}");
                    (&error["data"], &error["message"])
                };
                assert_eq!(denial["code"], *expected);
                let text = text.as_str().unwrap();
                assert!(text.contains(advice), "{tool}: {text}");
                assert!(text.contains(denial["advice"].as_str().unwrap()));
                assert!(!denial["reason"].as_str().unwrap().is_empty());
                let waits = denial["retryAfter"].as_f64();
                assert_eq!(waits.is_some(), *expected == "rate_limited");
                assert!(waits.is_none_or(|it| it > 3_500.0 && it <= 3_600.0));
                let pointers = denial.get("pointers");
                assert_eq!(pointers.is_some(), *expected == "invalid_input", "{denial}");
                assert!(
                    pointers.is_none_or(|it| *it == json!(["/n", "/s/1"])),
                    "{denial}"
                );
                let series = format!(r#"toolwarden_decisions_total{{code="{expected}"}}"#);
                assert_eq!(counted(&gateway.gateway, &series), Some(1), "{series}");
            }
            assert_eq!(
                server.shop.seen().calls.len(),
                1,
                "only the one that passed"
            );
            let rows = rows(&gateway.gateway);
            let denied = rows.iter().filter(|row| row.allowed == Some(false));
            let denied: Vec<_> = denied.map(|row| row.code.as_str()).collect();
            assert_eq!(denied, cases.each_ref().map(|it| it.2));
            gateway.stop().await;
        }
    }
}

/// A server that is down is distinguished from a denial, in both forms.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away() {
    for form in ["tool-error", "rpc-error"] {
        let server = shop_of(Era::Handshake);
        let gateway = TestGateway::before_with(&[("s", &server)], json!({"denials": form})).await;
        let agent = crate::support::Agent::of(Era::Handshake, &gateway.url, "{}").await;
        assert!(super::worked(&agent.call("s__echo", json!({})).await));
        server.kill();
        let answer = agent.call("s__echo", json!({})).await;
        let rows = rows(&gateway.gateway);
        assert_eq!(rows.last().unwrap().word(), "outcome failed");
        if form == "rpc-error" {
            assert_eq!(answer["error"]["code"], -32011, "{answer}");
        } else {
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("Server `s`"), "{text}");
            assert!(code(&answer).is_some());
        }
        gateway.stop().await;
    }
}
