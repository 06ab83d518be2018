//! Servers that send requests to agents.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use crate::support::{Agent, EVERYTHING, PAIRS, TestGateway, shop_of, until};

/// A tool that asks, what it asks for, an answer, and what the tool makes of it.
fn questions() -> [(&'static str, &'static str, Value, &'static str); 3] {
    [
        (
            "shop__cancel_order",
            "elicitation/create",
            json!({"action": "accept", "content": {"confirm": true}}),
            "order A-1001 is cancelled",
        ),
        (
            "shop__draft_reply",
            "sampling/createMessage",
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Dear Ada"}}),
            "Dear Ada",
        ),
        (
            "shop__list_folders",
            "roots/list",
            json!({"roots": [{"uri": "file:///reports"}]}),
            r#"["file:///reports"]"#,
        ),
    ]
}

fn asking(tool: &str) -> Value {
    json!({"name": tool, "arguments": {"order_id": "A-1001"}})
}

fn with(mut params: Value, asked: &Value, answers: Value) -> Value {
    params["inputResponses"] = answers;
    params["requestState"] = asked["requestState"].clone();
    params
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_reach_agents_and_answers_servers() {
    for (of_agent, of_server) in PAIRS {
        let shop = shop_of(of_server);
        let gateway = TestGateway::before(&[("shop", &shop)]).await;
        let agent = Agent::of(of_agent, &gateway.url, EVERYTHING).await;
        for (tool, method, answer, told) in questions() {
            let params = asking(tool);
            let (question, result) = match of_agent {
                Era::Handshake => {
                    let mut exchange = agent.begin("tools/call", params).await;
                    let question = exchange.message().await;
                    agent.respond(&question, answer).await;
                    (question, exchange.message().await)
                }
                Era::Stateless => {
                    let asked = agent.result("tools/call", params.clone()).await;
                    assert_eq!(asked["resultType"], "input_required", "{asked}");
                    let requests = asked["inputRequests"].as_object().unwrap();
                    assert_eq!(requests.len(), 1);
                    let (key, question) = requests.iter().next().unwrap();
                    let again = with(params, &asked, json!({key.as_str(): answer}));
                    (question.clone(), agent.ask("tools/call", again).await)
                }
            };
            let pair = format!("{of_agent:?} {of_server:?} {tool}: {question} {result}");
            assert_eq!(question["method"], method, "{pair}");
            if method == "elicitation/create" {
                assert_eq!(question["params"]["x-shop-desk"], "cancellations", "{pair}");
            }
            assert_eq!(result["result"]["content"][0]["text"], told, "{pair}");
        }
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_without_the_capability_are_not_asked() {
    for (of_agent, of_server) in PAIRS {
        let shop = shop_of(of_server);
        let gateway = TestGateway::before(&[("shop", &shop)]).await;
        let agent = Agent::of(of_agent, &gateway.url, "{}").await;
        let answer = agent.ask("tools/call", asking("shop__cancel_order")).await;
        match of_server {
            Era::Handshake => assert_eq!(
                answer["result"]["content"][0]["text"], "the client has no elicitation",
                "{of_agent:?}"
            ),
            Era::Stateless => assert_eq!(answer["error"]["code"], -32021, "{of_agent:?}"),
        }
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_refuse_and_servers_hear_it() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, EVERYTHING).await;
    let mut exchange = agent.begin("tools/call", asking("shop__draft_reply")).await;
    let question = exchange.message().await;
    let refusal = json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -1, "message": "not now"}});
    assert_eq!(agent.post(&refusal).await.status(), 202);
    let answer = exchange.message().await;
    assert_eq!(
        answer["result"]["content"][0]["text"], "the client refused: not now",
        "{answer}"
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_state_is_good_for_its_own_request_once() {
    let shop = shop_of(Era::Handshake);
    let settings = json!({"identity": {"anonymous": "agent", "api_keys": [
        {"principal": "other", "key": "k-0123456789abcdef0123456789abcdef"},
    ]}});
    let gateway = TestGateway::before_with(&[("shop", &shop)], settings).await;
    let agent = Agent::of(Era::Stateless, &gateway.url, EVERYTHING).await;
    let capabilities = serde_json::from_str(EVERYTHING).unwrap();
    let key = [("authorization", "Bearer k-0123456789abcdef0123456789abcdef")];
    let other = Agent::stateless_with(&gateway.url, &capabilities, &key);
    let params = asking("shop__cancel_order");
    let asked = agent.result("tools/call", params.clone()).await;
    let key = asked["inputRequests"].as_object().unwrap().keys().next();
    let answers =
        json!({key.unwrap().as_str(): {"action": "accept", "content": {"confirm": true}}});
    let good = with(params.clone(), &asked, answers.clone());
    let mut tampered = good.clone();
    let state = asked["requestState"].as_str().unwrap();
    let (rest, last) = state.split_at(state.len() - 1);
    let flipped = if last == "0" { "1" } else { "0" };
    tampered["requestState"] = json!(format!("{rest}{flipped}"));
    let mut of_other_call = good.clone();
    of_other_call["arguments"]["order_id"] = json!("A-1002");
    let mut of_other_tool = good.clone();
    of_other_tool["name"] = json!("shop__draft_reply");
    for (who, params, why) in [
        (&agent, tampered, "tampered"),
        (&agent, of_other_call, "other arguments"),
        (&agent, of_other_tool, "other tool"),
        (&other, good.clone(), "other principal"),
    ] {
        let refused = who.ask("tools/call", params).await;
        assert_eq!(refused["error"]["code"], -32602, "{why}: {refused}");
    }
    let done = agent.ask("tools/call", good.clone()).await;
    assert_eq!(
        done["result"]["content"][0]["text"], "order A-1001 is cancelled",
        "{done}"
    );
    let twice = agent.ask("tools/call", good).await;
    assert_eq!(twice["error"]["code"], -32602, "{twice}");
    assert_eq!(shop.shop.seen().calls_of("cancel_order"), 1);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_input_is_requested_again() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::of(Era::Stateless, &gateway.url, EVERYTHING).await;
    let params = asking("shop__draft_reply");
    let first = agent.result("tools/call", params.clone()).await;
    let second = agent
        .result("tools/call", with(params.clone(), &first, json!({})))
        .await;
    assert_eq!(second["resultType"], "input_required", "{second}");
    assert_eq!(first["inputRequests"], second["inputRequests"]);
    assert_ne!(first["requestState"], second["requestState"]);
    let key = second["inputRequests"].as_object().unwrap().keys().next();
    let answer =
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "x"}});
    let answers = json!({key.unwrap().as_str(): answer});
    let done = agent
        .result("tools/call", with(params, &second, answers))
        .await;
    assert_eq!(done["content"][0]["text"], "x");
    assert_eq!(shop.shop.seen().cancelled, 0);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_takes_its_questions_along() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, EVERYTHING).await;
    let mut exchange = agent
        .begin("tools/call", asking("shop__cancel_order"))
        .await;
    assert_eq!(exchange.message().await["method"], "elicitation/create");
    assert_eq!(agent.end().await, 200);
    assert_eq!(exchange.rest().await, [Value::Null; 0]);
    // The gateway's own session stays.
    until("the session at the server ends", || {
        shop.shop.open_sessions() == 1
    })
    .await;
    gateway.stop().await;
}
