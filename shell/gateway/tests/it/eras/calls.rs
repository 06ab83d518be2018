use serde_json::{Value, json};
use toolwarden_demo::tools;
use toolwarden_mcp::Era;

use crate::support::{Agent, EVERYTHING, PAIRS, TestGateway, shop_of, until};

/// Agents that accept server requests and agents that do not: their calls take different paths.
fn pairs_and_faces() -> impl Iterator<Item = ((Era, Era), &'static str)> {
    PAIRS
        .into_iter()
        .flat_map(|pair| [(pair, "{}"), (pair, EVERYTHING)])
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_calls_cross_eras() {
    for (of_agent, of_server) in PAIRS {
        let shop = shop_of(of_server);
        let gateway = TestGateway::before(&[("shop", &shop)]).await;
        let agent = Agent::of(of_agent, &gateway.url, "{}").await;
        let list = agent.result("tools/list", json!({})).await;
        let mut expected = tools();
        for tool in &mut expected {
            tool["name"] = json!(format!("shop__{}", tool["name"].as_str().unwrap()));
        }
        assert_eq!(
            list["tools"],
            Value::from(expected),
            "{of_agent:?} {of_server:?}"
        );
        let found = agent
            .call(
                "shop__refund_order",
                json!({"order_id": "A-1001", "amount": 5}),
            )
            .await;
        assert_eq!(
            found["result"]["structuredContent"],
            json!({"order_id": "A-1001", "refunded": 5, "status": "refunded"}),
            "{of_agent:?} {of_server:?}: {found}"
        );
        if of_agent == Era::Stateless {
            assert_eq!(list["resultType"], "complete");
            assert_eq!(
                (&list["ttlMs"], &list["cacheScope"]),
                (&json!(0), &json!("private"))
            );
            assert_eq!(found["result"]["resultType"], "complete");
            let read = agent
                .result("resources/read", json!({"uri": "orders://today"}))
                .await;
            assert_eq!(read["resultType"], "complete");
            let (ttl, scope) = match of_server {
                Era::Handshake => (json!(0), json!("private")),
                Era::Stateless => (json!(60000), json!("public")),
            };
            assert_eq!((&read["ttlMs"], &read["cacheScope"]), (&ttl, &scope));
        } else {
            assert_eq!(list.as_object().unwrap().len(), 1, "{list}");
        }
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_cross_eras() {
    for (of_agent, of_server) in PAIRS {
        let shop = shop_of(of_server);
        let gateway = TestGateway::before(&[("shop", &shop)]).await;
        let agent = Agent::of(of_agent, &gateway.url, "{}").await;
        let failed = agent
            .call(
                "shop__refund_order",
                json!({"order_id": "A-9999", "amount": 5}),
            )
            .await;
        assert_eq!(
            (
                &failed["result"]["isError"],
                &failed["result"]["content"][0]["text"]
            ),
            (&json!(true), &json!("there is no such order")),
            "{of_agent:?} {of_server:?}"
        );
        // A protocol error is returned unchanged.
        let refused = agent
            .ask("resources/read", json!({"uri": "orders://A-9999"}))
            .await;
        assert_eq!(
            refused["error"],
            json!({"code": -32602, "message": "there is no such resource", "data": {"uri": "orders://A-9999"}}),
            "{of_agent:?} {of_server:?}"
        );
        let unknown = agent.ask("no/such", json!({})).await;
        assert_eq!(unknown["error"]["code"], -32601);
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_and_log_messages_come_before_the_answer() {
    for ((of_agent, of_server), able) in pairs_and_faces() {
        let shop = shop_of(of_server);
        let gateway = TestGateway::before(&[("shop", &shop)]).await;
        let agent = Agent::of(of_agent, &gateway.url, able).await;
        let report = |level: Option<&str>| {
            let mut meta = json!({"progressToken": "mine"});
            if let (Some(level), Era::Stateless) = (level, of_agent) {
                meta["io.modelcontextprotocol/logLevel"] = json!(level);
            }
            json!({"name": "shop__export_report", "arguments": {"steps": 2, "pause_ms": 1}, "_meta": meta})
        };
        let heard = async |level: Option<&str>| {
            if let (Some(level), Era::Handshake) = (level, of_agent) {
                agent
                    .result("logging/setLevel", json!({"level": level}))
                    .await;
            }
            let mut exchange = agent.begin("tools/call", report(level)).await;
            assert!(exchange.is_stream);
            let mut all = exchange.rest().await;
            let last = all.pop().unwrap();
            assert_eq!(
                last["result"]["content"][0]["text"],
                "the report is written"
            );
            let logs = all
                .iter()
                .filter(|it| it["method"] == "notifications/message");
            let logs = logs.count();
            all.retain(|it| it["method"] == "notifications/progress");
            let steps = [1, 2].map(|step| {
                json!({"jsonrpc": "2.0", "method": "notifications/progress", "params":
                    {"progressToken": "mine", "progress": step, "total": 2}})
            });
            assert_eq!(all, steps, "{of_agent:?} {of_server:?}");
            logs
        };
        assert_eq!(
            heard(Some("warning")).await,
            0,
            "{of_agent:?} {of_server:?}"
        );
        assert_eq!(heard(Some("info")).await, 1, "{of_agent:?} {of_server:?}");
        if of_agent == Era::Stateless {
            // An agent that sets no level gets no log messages.
            assert_eq!(heard(None).await, 0, "{of_server:?}");
        }
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancellation_reaches_the_server() {
    for ((of_agent, of_server), able) in pairs_and_faces() {
        let shop = shop_of(of_server);
        let gateway = TestGateway::before(&[("shop", &shop)]).await;
        let agent = Agent::of(of_agent, &gateway.url, able).await;
        let params = json!({
            "name": "shop__export_report",
            "arguments": {"steps": 2, "pause_ms": 60000},
            "_meta": {"progressToken": 1, "io.modelcontextprotocol/logLevel": "info"},
        });
        let mut exchange = agent.begin_as(&json!("c-1"), "tools/call", params).await;
        assert_eq!(exchange.message().await["method"], "notifications/message");
        assert_eq!(shop.shop.seen().cancelled, 0);
        match of_agent {
            Era::Handshake => {
                let given_up = json!({"requestId": "c-1", "reason": "enough"});
                agent.notify("notifications/cancelled", given_up).await;
                assert_eq!(exchange.rest().await, [Value::Null; 0], "no answer follows");
            }
            Era::Stateless => drop(exchange),
        }
        until("the server gives the call up", || {
            shop.shop.seen().cancelled == 1
        })
        .await;
        // A cancelled request does not block later ones.
        let again = agent.call("shop__echo", json!({})).await;
        assert_eq!(again["result"]["content"][0]["text"], "echo", "{again}");
        gateway.stop().await;
    }
}
