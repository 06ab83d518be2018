//! Requests of servers to agents, in the form of the agent's era.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use super::{Revision, Sheet, assert_valid};
use crate::support::{Agent, TestGateway, shop_of};

/// A tool that asks, and what an agent answers.
fn questions() -> [(&'static str, &'static str, Value); 3] {
    [
        (
            "shop__cancel_order",
            "elicitation/create",
            json!({"action": "accept", "content": {"confirm": true}}),
        ),
        (
            "shop__draft_reply",
            "sampling/createMessage",
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "a"}}),
        ),
        (
            "shop__list_folders",
            "roots/list",
            json!({"roots": [{"uri": "file:///reports"}]}),
        ),
    ]
}

fn call(tool: &str) -> Value {
    json!({"name": tool, "arguments": {"order_id": "A-1001"}})
}

/// Input that a handshake server requests becomes `input_required`.
#[tokio::test(flavor = "multi_thread")]
async fn input_required_is_valid() {
    let Some(revision) = Revision::stateless() else {
        return;
    };
    let mut faults = Vec::new();
    for of_server in [Era::Handshake, Era::Stateless] {
        let shop = shop_of(of_server);
        let gateway = TestGateway::before(&[("shop", &shop)]).await;
        let agent = revision.agent(&gateway.url, &[]).await;
        let mut sheet = Sheet::new(&revision);
        for (tool, method, response) in questions() {
            let asked = sheet.ask(&agent, tool, "tools/call", call(tool)).await;
            let result = &asked["result"];
            assert_eq!(result["resultType"], "input_required", "{asked}");
            let requests = result["inputRequests"].as_object().unwrap();
            let (name, request) = requests.iter().next().unwrap();
            assert_eq!(request["method"], method);
            let mut again = call(tool);
            again["inputResponses"] = json!({name: response});
            again["requestState"] = result["requestState"].clone();
            let done = sheet.ask(&agent, tool, "tools/call", again.clone()).await;
            assert_eq!(done["result"]["resultType"], "complete", "{done}");
            if of_server == Era::Handshake {
                // The state that the gateway gave is used up.
                let stale = sheet.ask(&agent, tool, "tools/call", again).await;
                assert_eq!(stale["error"]["code"], -32602, "{stale}");
            }
        }
        faults.extend(sheet.faults);
        gateway.stop().await;
    }
    assert_valid(&faults);
}

/// Input that a stateless server requests becomes a request of the handshake era.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_servers_are_valid() {
    let mut faults = Vec::new();
    for of_server in [Era::Handshake, Era::Stateless] {
        let shop = shop_of(of_server);
        let gateway = TestGateway::before(&[("shop", &shop)]).await;
        for revision in Revision::handshake() {
            let agent = revision.agent(&gateway.url, &[]).await;
            let mut sheet = Sheet::new(&revision);
            for (tool, method, response) in questions() {
                if method == "elicitation/create" && !revision.has("ElicitRequest") {
                    refused_for_lack_of_a_capability(&mut sheet, &agent, tool).await;
                    continue;
                }
                let mut exchange = agent.begin("tools/call", call(tool)).await;
                let question = exchange.message().await;
                assert_eq!(question["method"], method, "{question}");
                sheet.unprompted(tool, &question);
                agent.respond(&question, response).await;
                let answer = exchange.message().await;
                assert_eq!(answer["result"]["isError"], Value::Null, "{answer}");
                sheet.answer(tool, "tools/call", &answer);
            }
            faults.extend(sheet.faults);
        }
        gateway.stop().await;
    }
    assert_valid(&faults);
}

async fn refused_for_lack_of_a_capability(sheet: &mut Sheet<'_>, agent: &Agent, tool: &str) {
    let answer = sheet.ask(agent, tool, "tools/call", call(tool)).await;
    let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
    assert!(failed, "{answer}");
}

/// An agent that cannot be asked, in either era.
#[tokio::test(flavor = "multi_thread")]
async fn missing_capabilities_are_valid_errors() {
    let mut faults = Vec::new();
    for of_server in [Era::Handshake, Era::Stateless] {
        let shop = shop_of(of_server);
        let gateway = TestGateway::before(&[("shop", &shop)]).await;
        for revision in Revision::all() {
            let nothing = json!({});
            let agent = match revision.era() {
                Era::Handshake => {
                    Agent::open_at(&gateway.url, revision.version, &nothing, &[]).await
                }
                Era::Stateless => Agent::stateless(&gateway.url, &nothing),
            };
            let mut sheet = Sheet::new(&revision);
            for (tool, _, _) in questions() {
                refused_for_lack_of_a_capability(&mut sheet, &agent, tool).await;
            }
            faults.extend(sheet.faults);
        }
        gateway.stop().await;
    }
    assert_valid(&faults);
}
