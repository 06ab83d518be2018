//! The records of a call: before it is forwarded, and after it returns.

use std::time::Duration;

use serde_json::json;
use toolwarden_mcp::Era;

use super::{ERAS, agent_of, at_with, counted, identity, rows, rows_in, worked};
use crate::support::{Agent, PAIRS, TestGateway, shop_of, until};

#[tokio::test(flavor = "multi_thread")]
async fn every_call_has_its_decision_and_its_outcome() {
    for (agents, servers) in PAIRS {
        for durability in ["sync", "group", "async"] {
            let server = shop_of(servers);
            let gateway = TestGateway::start(&json!({
                "servers": {"s": at_with(&server, json!({}))},
                "identity": identity(&["ada", "ben"]),
                "policy": {"audit": {"durability": durability}},
            }))
            .await;
            let ada = agent_of(agents, &gateway.url, "ada", &[]).await;
            let ben = agent_of(agents, &gateway.url, "ben", &[]).await;
            for n in 0..5 {
                assert!(worked(&ada.call("s__echo", json!({"n": n})).await));
                let refund = json!({"order_id": "A-9999", "amount": n + 1});
                let failed = ben.call("s__refund_order", refund).await;
                assert_eq!(failed["result"]["isError"], true);
                let denial = &failed["result"]["_meta"]["toolwarden/denial"];
                assert!(denial.is_null(), "the server's own words");
            }
            let slow = json!({"steps": 1, "pause_ms": 80});
            assert!(worked(&ada.call("s__export_report", slow).await));
            let rows = rows(&gateway.gateway);
            let calls: Vec<_> = rows
                .iter()
                .filter(|row| ["decision", "outcome"].contains(&row.kind.as_str()))
                .collect();
            assert_eq!(calls.len(), 22, "{agents:?} {servers:?} {durability}");
            for (number, pair) in calls.chunks(2).enumerate() {
                let [decision, outcome] = pair else { panic!() };
                let (who, tool, word, arguments) = match number {
                    10 => (
                        "ada",
                        "s__export_report",
                        "outcome succeeded",
                        json!({"steps": 1, "pause_ms": 80}),
                    ),
                    n if n % 2 == 0 => ("ada", "s__echo", "outcome succeeded", json!({"n": n / 2})),
                    n => (
                        "ben",
                        "s__refund_order",
                        "outcome failed",
                        json!({"order_id": "A-9999", "amount": n / 2 + 1}),
                    ),
                };
                assert_eq!(
                    (decision.word().as_str(), outcome.word().as_str()),
                    ("decision allowed", word)
                );
                for row in pair {
                    assert_eq!((row.principal.as_str(), row.tool.as_str()), (who, tool));
                    assert!(row.body["latency_ms"].as_f64().is_some());
                }
                assert_eq!(decision.body["arguments"], arguments);
                assert_eq!(outcome.body["call"], decision.body["id"]);
                assert_eq!(decision.session, outcome.session);
                if tool == "s__export_report" {
                    assert!(outcome.body["latency_ms"].as_f64().unwrap() >= 80.0);
                }
                if word == "outcome failed" {
                    assert_eq!(outcome.body["error"], "there is no such order");
                }
            }
            gateway.stop().await;
        }
    }
}

/// The record is in the log while the server still processes the call.
#[tokio::test(flavor = "multi_thread")]
async fn the_decision_is_written_before_the_call_leaves() {
    let server = shop_of(Era::Handshake);
    let settings = json!({
        "servers": {"s": at_with(&server, json!({}))},
        "policy": {"audit": {"durability": "group"}},
    });
    let gateway = TestGateway::start(&settings).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    // The first call of a session lists what the session is offered.
    assert!(worked(&agent.call("s__echo", json!({})).await));
    let before = rows(&gateway.gateway).len();
    server.shop.stop_answering();
    let call = agent.call("s__echo", json!({"n": 1}));
    let store = gateway.gateway.settings().store.clone();
    let look = async {
        until("it is written down", || rows_in(&store).len() > before).await;
        let rows = rows_in(&store);
        server.shop.recover();
        rows
    };
    let (answer, during) = tokio::join!(call, look);
    assert!(worked(&answer));
    assert_eq!(during.last().unwrap().word(), "decision allowed");
    assert_eq!(
        rows(&gateway.gateway).last().unwrap().word(),
        "outcome succeeded"
    );
    gateway.stop().await;
}

/// An agent that disconnects during a call.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_agent_leaves_is_abandoned_and_the_server_told() {
    for servers in ERAS {
        for agents in ERAS {
            let server = shop_of(servers);
            let gateway = TestGateway::before(&[("s", &server)]).await;
            let agent = Agent::of(agents, &gateway.url, "{}").await;
            agent.tools().await;
            let slow =
                json!({"name": "s__export_report", "arguments": {"steps": 100, "pause_ms": 600}});
            match agents {
                // A stateless agent cancels by closing the connection.
                Era::Stateless => {
                    let call = agent.ask("tools/call", slow);
                    let gone = tokio::time::timeout(Duration::from_millis(400), call).await;
                    assert!(gone.is_err());
                }
                Era::Handshake => {
                    let id = json!("mine");
                    let call = agent.begin_as(&id, "tools/call", slow);
                    let cancel = async {
                        until("it arrives", || {
                            server.shop.seen().calls_of("export_report") == 1
                        })
                        .await;
                        let params = json!({"requestId": "mine", "reason": "enough"});
                        agent.notify("notifications/cancelled", params).await;
                    };
                    let (mut answer, ()) = tokio::join!(call, cancel);
                    let rest = if answer.is_stream {
                        answer.rest().await
                    } else {
                        Vec::new()
                    };
                    assert!(rest.iter().all(|it| it.get("result").is_none()), "{rest:?}");
                }
            }
            until("the server knows", || server.shop.seen().cancelled == 1).await;
            until("it is written down", || {
                rows(&gateway.gateway).last().unwrap().word() == "outcome abandoned"
            })
            .await;
            assert!(
                worked(&agent.call("s__echo", json!({})).await),
                "life goes on"
            );
            gateway.stop().await;
        }
    }
}

/// An agent of the handshake era that closes the connection before a stream has begun has disconnected, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_connection_breaks_is_abandoned() {
    for agents in ERAS {
        let server = shop_of(Era::Handshake);
        let gateway = TestGateway::before(&[("s", &server)]).await;
        let agent = Agent::of(agents, &gateway.url, "{}").await;
        assert!(worked(&agent.call("s__echo", json!({})).await));
        server.shop.stop_answering();
        let call = agent.call("s__echo", json!({}));
        let gone = tokio::time::timeout(Duration::from_millis(300), call).await;
        assert!(gone.is_err());
        until("it is written down", || {
            rows(&gateway.gateway).last().unwrap().word() == "outcome abandoned"
        })
        .await;
        server.shop.recover();
        assert!(worked(&agent.call("s__echo", json!({})).await));
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_stage_of_a_call_is_timed() {
    let server = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("s", &server)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    assert!(worked(&agent.call("s__echo", json!({})).await));
    for stage in [
        "identify", "decide", "record", "upstream", "settle", "total",
    ] {
        let series = format!("toolwarden_stage_seconds_count{{stage=\"{stage}\"");
        let count = counted(&gateway.gateway, &series);
        assert!(count.is_some_and(|count| count > 0), "{stage}: {count:?}");
    }
    gateway.stop().await;
}
