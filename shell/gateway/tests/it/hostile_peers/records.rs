use serde_json::{Value, json};
use toolwarden_mcp::Era;

use crate::guarding::{agent_of, code, identity, rows};
use crate::support::{Agent, TestGateway, shop_of, until_async};

/// What the files of a store take.
fn store_bytes(gateway: &TestGateway) -> u64 {
    let files = std::fs::read_dir(gateway.folder.path()).unwrap();
    let stored = files
        .map(Result::unwrap)
        .filter(|file| file.file_name().to_string_lossy().starts_with("store.db"));
    stored.map(|file| file.metadata().unwrap().len()).sum()
}

/// A refused call costs the log a few kilobytes, however large it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_denied_call_of_megabytes_leaves_a_short_record() {
    let shop = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("shop", &shop)]).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let before = store_bytes(&gateway);
    let many: Vec<String> = (0..400_000).map(|at| format!("item {at}")).collect();
    let large = "x".repeat(2 << 20);
    let group = "x".repeat(16_000);
    for (name, arguments) in [
        ("shop__nothing", json!({"many": many})),
        (large.as_str(), json!({})),
    ] {
        let answer = agent.call(name, arguments).await;
        assert!(code(&answer).is_some());
    }
    let params = json!({
        "name": "shop__nothing",
        "arguments": {},
        "_meta": {"toolwarden/groups": [group], "toolwarden/state": large},
    });
    agent.ask("tools/call", params).await;
    let rows = rows(&gateway.gateway);
    let decisions: Vec<_> = rows.iter().filter(|row| row.kind == "decision").collect();
    assert_eq!(decisions.len(), 3);
    for row in &rows {
        assert!(row.body.to_string().len() <= 64 << 10);
        assert!(row.tool.len() <= 1_024);
    }
    let first = &decisions[0].body["arguments"];
    assert!(first["digest"].as_str().unwrap().starts_with("sha256:"));
    assert!(first["bytes"].as_u64().unwrap() > 4_000_000);
    let grown = store_bytes(&gateway).saturating_sub(before);
    assert!(grown < 1 << 20, "{grown}");
    gateway.stop().await;
}

/// Denials above a rate are summarized: they do not fill the log, and none goes unrecorded.
#[tokio::test(flavor = "multi_thread")]
async fn denials_over_the_rate_are_summed_up() {
    let shop = shop_of(Era::Handshake);
    let settings = json!({
        "identity": identity(&["ada", "eve"]),
        "policy": {"audit": {"denials": {"limit": 5, "window": "1s"}}},
    });
    let gateway = TestGateway::before_with(&[("shop", &shop)], settings).await;
    let eve = agent_of(Era::Handshake, &gateway.url, "eve", &[]).await;
    let ada = agent_of(Era::Handshake, &gateway.url, "ada", &[]).await;
    for _ in 0..200 {
        let answer = eve.call("shop__nothing", json!({})).await;
        assert!(code(&answer).is_some(), "{answer}");
    }
    ada.call("shop__nothing", json!({})).await;
    let summed = || -> u64 {
        let sums = rows(&gateway.gateway);
        let sums = sums.iter().filter(|row| row.code == "denials_summarized");
        sums.map(|row| row.body["denials"].as_u64().unwrap()).sum()
    };
    let recorded = |principal: &str| {
        let rows = rows(&gateway.gateway);
        let of = rows
            .iter()
            .filter(|row| row.kind == "decision" && row.principal == principal);
        of.count() as u64
    };
    until_async("every denial is accounted for", async || {
        recorded("eve") + summed() == 200
    })
    .await;
    assert!(recorded("eve") < 150, "{}", recorded("eve"));
    assert_eq!(recorded("ada"), 1);
    gateway.stop().await;
}

/// A full store makes the gateway deny calls, and it reports that before and then.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_is_announced_and_fails_closed() {
    let shop = shop_of(Era::Handshake);
    let settings = json!({"store_quota": "4KiB"});
    let gateway = TestGateway::before_with(&[("shop", &shop)], settings).await;
    let agent = Agent::of(Era::Handshake, &gateway.url, "{}").await;
    let answer = agent.call("shop__echo", json!({})).await;
    assert_eq!(code(&answer), Some("audit_unavailable"), "{answer}");
    assert_eq!(shop.shop.seen().calls_of("echo"), 0);
    let http = crate::support::http(&gateway.url);
    let get = async |path: &str| {
        let url = format!("{}{path}", gateway.root());
        http.get(url).send().await.unwrap().text().await.unwrap()
    };
    let ready: Value = serde_json::from_str(&get("/api/v1/ready").await).unwrap();
    let degraded = ready["degraded"].as_array().unwrap();
    assert!(
        degraded.iter().any(|it| it["code"] == "store_quota"),
        "{ready}"
    );
    assert!(get("/metrics").await.contains("toolwarden_store_bytes"));
    gateway.stop().await;
}
