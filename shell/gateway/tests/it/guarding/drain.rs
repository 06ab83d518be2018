//! Shutdown of a gateway: calls in flight, new requests, readiness.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use super::reload::Live;
use super::{ERAS, agent_of, at_with, client, identity, rows};
use crate::support::{Agent, shop_of, until, until_async};

fn endless() -> Value {
    json!({"name": "a__export_report", "arguments": {"steps": 2, "pause_ms": 60_000}})
}

async fn ready(live: &Live) -> (u16, Value) {
    let url = format!("{}/api/v1/ready", live.url.trim_end_matches("/mcp"));
    let answer = client().get(url).send().await.unwrap();
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_cut_off_gets_an_error_and_a_record() {
    for (era, servers) in crate::support::PAIRS {
        let a = shop_of(servers);
        let settings = json!({
            "servers": {"a": at_with(&a, json!({}))},
            "identity": identity(&["ada"]),
            "drain": "1500ms",
        });
        let live = Live::start(&settings).await;
        let ada = Arc::new(agent_of(era, &live.url, "ada", &[]).await);
        // Its server may still be starting.
        until_async("it is ready", || async { ready(&live).await.0 == 200 }).await;
        let in_flight = tokio::spawn({
            let ada = Arc::clone(&ada);
            async move { ada.ask("tools/call", endless()).await }
        });
        until("it is in flight", || {
            a.shop.seen().calls_of("export_report") == 1
        })
        .await;
        live.running.shutdown().begin();
        let begun = Instant::now();
        let refused = post_list(&ada).await;
        assert_eq!(refused.status(), 503, "{era:?}");
        assert_eq!(refused.headers()["retry-after"], "5");
        let told: Value = serde_json::from_str(&refused.text().await.unwrap()).unwrap();
        assert_eq!(told["error"]["data"]["code"], "shutting_down", "{told}");
        let (status, told) = ready(&live).await;
        assert_eq!(status, 503);
        assert_eq!(
            told["reasons"],
            json!([{"code": "ending", "text": "the gateway is shutting down"}])
        );
        let answer = in_flight.await.unwrap();
        assert_eq!(
            answer["error"]["message"],
            "the gateway is shutting down; send the request again when it is back",
            "{era:?} {servers:?}: {answer}"
        );
        assert_eq!(answer["error"]["code"], -32011);
        assert!(
            begun.elapsed() >= Duration::from_millis(1_400),
            "it had its time"
        );
        let rows = rows(&live.running.gateway);
        let served = live.stop().await;
        assert_eq!(
            served.aborted_connections, 0,
            "{era:?}: every connection ended in order"
        );
        let outcome = rows.iter().find(|row| row.kind == "outcome").unwrap();
        assert_eq!(outcome.code, "failed", "{outcome:?}");
        assert!(
            outcome.body.to_string().contains("shutting down"),
            "{outcome:?}"
        );
    }
}

/// Asks for a list over a new connection: the idle ones of the agent are being closed.
async fn post_list(agent: &Agent) -> reqwest::Response {
    let mut params = json!({});
    if agent.era == Era::Stateless {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    let body = json!({"jsonrpc": "2.0", "id": 99, "method": "tools/list", "params": params});
    agent.reconnected().post(&body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_drain_is_used() {
    for era in ERAS {
        let a = shop_of(Era::Handshake);
        let mut settings = json!({
            "servers": {"a": at_with(&a, json!({}))},
            "identity": identity(&["ada"]),
            "drain": "60s",
        });
        let live = Live::start(&settings).await;
        let ada = Arc::new(agent_of(era, &live.url, "ada", &[]).await);
        let in_flight = tokio::spawn({
            let ada = Arc::clone(&ada);
            async move { ada.ask("tools/call", endless()).await }
        });
        until("it is in flight", || {
            a.shop.seen().calls_of("export_report") == 1
        })
        .await;
        settings["drain"] = json!("200ms");
        live.reload(&settings).await.unwrap();
        let begun = Instant::now();
        live.stop().await;
        assert!(begun.elapsed() < Duration::from_secs(20), "{era:?}");
        let answer = in_flight.await.unwrap();
        assert!(answer["error"].is_object(), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_degrades_and_one_that_is_starting_delays() {
    let a = shop_of(Era::Handshake);
    let settings = json!({
        "servers": {
            "a": at_with(&a, json!({})),
            "gone": {"url": "http://127.0.0.1:9/mcp", "timeouts": {"connect": "1s"}},
        },
        "identity": identity(&["ada"]),
    });
    let live = Live::start(&settings).await;
    let mut told = (0, Value::Null);
    for _ in 0..200 {
        told = ready(&live).await;
        if told.0 == 200 && told.1["degraded"] != json!([]) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert_eq!(told.0, 200, "{told:?}");
    assert_eq!(told.1["reasons"], json!([]));
    assert_eq!(told.1["degraded"][0]["code"], "server");
    let text = told.1["degraded"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("server `gone` is "), "{text}");
    live.stop().await;

    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", silent.local_addr().unwrap());
    let settings = json!({"servers": {"silent": {"url": url}}, "identity": identity(&["ada"])});
    let live = Live::start(&settings).await;
    let (status, told) = ready(&live).await;
    assert_eq!(status, 503, "{told}");
    assert_eq!(
        told["reasons"],
        json!([{"code": "server", "text": "server `silent` is starting"}])
    );
    live.stop().await;
}
