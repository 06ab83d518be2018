//! Calls that the gateway refuses, or that it cannot make.

use serde_json::{Value, json};
use toolwarden_demo::DemoServer;
use toolwarden_mcp::Era;

use super::{Revision, Sheet, assert_valid};
use crate::support::{TestGateway, at, shop_of};

/// Tools that are called, with what, and the code of the refusal.
fn cases() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("nothing", json!({}), "unknown_tool"),
        ("quarantined", json!({}), "quarantined"),
        ("other-group", json!({}), "filtered_by_group"),
        ("later", json!({}), "filtered_by_state"),
        ("secret", json!({}), "missing_permissions"),
        ("seldom", json!({}), "rate_limited"),
        ("strict", json!({"n": "x"}), "invalid_input"),
        ("ghost", json!({}), "no_server"),
        ("twin", json!({}), "collision"),
        ("promise", json!({"n": "x"}), "invalid_output"),
        ("away", json!({}), "unavailable"),
    ]
}

fn policy() -> Value {
    json!({
        "tools": {
            "quarantined": {},
            "other-group": {"group": ["other"]},
            "later": {"available_in_states": ["started"]},
            "start": {"state": "started", "available_in_states": ["undefined"]},
            "secret": {"required_permissions": ["secret:read"]},
            "seldom": {"rate_limit": {"agent": 1, "window": "1h"}},
            "strict": {"input_schema": {"type": "object",
                "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
            "ghost": {},
        },
        "quarantine": ["quarantined"],
        "principals": {"agent": {}},
    })
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": name, "inputSchema": {"type": "object"}})
}

/// A server of each role, and a gateway before all of them.
struct Place {
    gateway: TestGateway,
    away: DemoServer,
    _others: [DemoServer; 2],
}

impl Place {
    async fn open(era: Era, form: &str) -> Self {
        let (main, other, away) = (shop_of(era), shop_of(era), shop_of(era));
        let names = [
            "quarantined",
            "other-group",
            "later",
            "start",
            "secret",
            "seldom",
            "strict",
            "twin",
        ];
        let mut tools: Vec<Value> = names.map(tool).into();
        let mut promise = tool("promise");
        promise["outputSchema"] = json!({"type": "object", "properties": {"params": {
            "type": "object", "properties": {"arguments": {
                "type": "object", "properties": {"n": {"type": "integer"}}}}}}});
        tools.push(promise);
        main.shop.set_tools(&tools);
        other.shop.set_tools(&[tool("twin")]);
        away.shop.set_tools(&[tool("away")]);
        let mut enforced = at(&main);
        enforced["watch"] = json!({"output": "enforce"});
        let settings = json!({
            "servers": {"main": enforced, "other": at(&other), "away": at(&away)},
            "prefix": "never",
            "denials": form,
            "policy": policy(),
        });
        Self {
            gateway: TestGateway::start(&settings).await,
            away,
            _others: [main, other],
        }
    }
}

fn code_of<'a>(answer: &'a Value, form: &str) -> Option<&'a str> {
    let denial = match form {
        "tool-error" => &answer["result"]["_meta"]["toolwarden/denial"],
        _ => &answer["error"]["data"],
    };
    denial["code"].as_str()
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_calls_are_valid_in_every_revision_and_form() {
    let mut faults = Vec::new();
    for of_server in [Era::Handshake, Era::Stateless] {
        for form in ["tool-error", "rpc-error"] {
            for revision in Revision::all() {
                let place = Place::open(of_server, form).await;
                let agent = revision.agent(&place.gateway.url, &[]).await;
                let mut sheet = Sheet::new(&revision);
                let listed = sheet.ask(&agent, "list", "tools/list", json!({})).await;
                assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 5);
                let once = sheet.call(&agent, "seldom", json!({})).await;
                assert_eq!(once["result"]["isError"], Value::Null, "{once}");
                place.away.kill();
                for (tool, arguments, code) in cases() {
                    let answer = sheet.call(&agent, tool, arguments).await;
                    let typed = answer["result"].get("resultType").is_some();
                    if revision.era() == Era::Handshake && typed {
                        let faults = vec!["resultType is of another era".to_owned()];
                        sheet.note(tool, &answer, faults);
                    }
                    let found = code_of(&answer, form);
                    match code {
                        // Which code depends on how the connection broke.
                        "unavailable" => assert!(found.is_some(), "{answer}"),
                        code => assert_eq!(found, Some(code), "{}: {answer}", revision.version),
                    }
                }
                faults.extend(sheet.faults);
                place.gateway.stop().await;
            }
        }
    }
    assert_valid(&faults);
}
