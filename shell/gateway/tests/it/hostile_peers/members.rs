use std::time::{Duration, Instant};

use serde_json::json;
use toolwarden_mcp::Era;

use crate::support::{Agent, TestGateway, shop_of};

/// Messages with very many members take little time, and do not block other agents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_members_do_not_block_others() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let eve = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let ada = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let members: Vec<String> = (0..40_000)
        .map(|at| format!("\"a-rather-long-key-{at}\":1"))
        .collect();
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{{}}}}}"#,
        members.join(",")
    );
    assert!(body.len() > 1_000_000);
    let began = Instant::now();
    let pings = async { tokio::join!(eve.post_text(&body, &[]), eve.post_text(&body, &[])) };
    let beside = async {
        for _ in 0..20 {
            let answer = ada.call("shop__echo", json!({})).await;
            assert!(answer["result"]["isError"] != json!(true), "{answer}");
        }
    };
    let ((one, two), ()) = tokio::join!(pings, beside);
    assert_eq!([one.status().as_u16(), two.status().as_u16()], [200, 200]);
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    gateway.stop().await;
}
