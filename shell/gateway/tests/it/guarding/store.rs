//! A store that cannot be written: the gateway allows nothing that it cannot record.

use serde_json::json;
use toolwarden_mcp::Era;

use super::{at_with, code, counted, rows_in, worked};
use crate::support::{Agent, TestGateway, shop_of};

/// Marks the process whose files may not grow.
const LIMITED: &str = "TOOLWARDEN_TEST_LIMITED";

async fn gateway(server: &toolwarden_demo::DemoServer, durability: &str) -> TestGateway {
    TestGateway::start(&json!({
        "servers": {"s": at_with(server, json!({}))},
        "policy": {"audit": {"durability": durability}},
    }))
    .await
}

/// This test runs itself again in a process whose files may have one megabyte.
#[test]
fn a_full_disk_lets_nothing_through() {
    if std::env::var_os(LIMITED).is_some() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        for durability in ["group", "sync"] {
            runtime.block_on(fill(durability));
        }
        return;
    }
    let program = std::env::current_exe().unwrap();
    let name = "guarding::store::a_full_disk_lets_nothing_through";
    let output = std::process::Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 2048; exec \"$0\" --exact \"$1\" --nocapture",
        ])
        .arg(program)
        .arg(name)
        .env(LIMITED, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

async fn fill(durability: &str) {
    let server = shop_of(Era::Handshake);
    let gateway = gateway(&server, durability).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let text = "x".repeat(20_000);
    let mut answered = 0;
    let refused = loop {
        let answer = agent.call("s__echo", json!({"text": text})).await;
        if code(&answer).is_some() {
            break answer;
        }
        assert!(worked(&answer), "{answer}");
        answered += 1;
        assert!(answered < 1_000, "the disk never fills");
    };
    assert!(answered > 3, "{answered}");
    assert_eq!(code(&refused), Some("audit_unavailable"), "{refused}");
    for _ in 0..3 {
        let answer = agent.call("s__echo", json!({"text": text})).await;
        assert_eq!(code(&answer), Some("audit_unavailable"), "{answer}");
    }
    assert_eq!(
        server.shop.seen().calls_of("echo"),
        answered,
        "no call left without a record"
    );
    assert!(counted(&gateway.gateway, "toolwarden_audit_unrecorded_total").unwrap() >= 4);
    let store = gateway.gateway.settings().store.clone();
    let _folder = gateway.stop().await;
    let rows = rows_in(&store);
    let allowed = rows
        .iter()
        .filter(|row| row.word() == "decision allowed")
        .count();
    assert_eq!(
        u64::try_from(allowed).unwrap(),
        answered,
        "each that was answered is there"
    );
}

/// Removing or replacing the file does not let calls pass without a record.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_taken_away_lets_nothing_through() {
    for replaced in [false, true] {
        let server = shop_of(Era::Handshake);
        let gateway = gateway(&server, "group").await;
        let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
        assert!(worked(&agent.call("s__echo", json!({})).await));
        let store = gateway.gateway.settings().store.clone();
        for ending in ["", "-wal", "-shm"] {
            let mut name = store.clone().into_os_string();
            name.push(ending);
            drop(std::fs::remove_file(&name));
        }
        if replaced {
            std::fs::write(&store, b"").unwrap();
        }
        let answer = agent.call("s__echo", json!({})).await;
        assert_eq!(code(&answer), Some("audit_unavailable"), "{answer}");
        assert_eq!(server.shop.seen().calls_of("echo"), 1);
        // A list that cannot be checked is not served either, except for what was checked before.
        server.shop.drift();
        server.shop.notify_list_changed();
        let refund = json!({"order_id": "A-1001", "amount": 5, "reason": "r"});
        let answer = agent.call("s__refund_order", refund).await;
        assert!(code(&answer).is_some(), "{answer}");
        assert_eq!(server.shop.seen().calls_of("refund_order"), 0);
        gateway.stop().await;
    }
}
