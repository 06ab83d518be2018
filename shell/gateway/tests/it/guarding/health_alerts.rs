//! Alerts about servers that are down.

use serde_json::json;
use toolwarden_mcp::Era;

use super::{Hook, agent_of, at_with, identity, worked};
use crate::support::{TestGateway, shop_of, until, until_async};

#[tokio::test(flavor = "multi_thread")]
async fn alerts_report_servers_going_down_and_up() {
    let shop = shop_of(Era::Handshake);
    let (hook, url) = Hook::start().await;
    let quick = json!({
        "breaker": {"failures": 1, "pause": "300ms"},
        "timeouts": {"request": "200ms"},
    });
    let gateway = TestGateway::start(&json!({
        "servers": {
            "shop": at_with(&shop, quick),
            "absent": {"command": "no-such-program-anywhere"},
        },
        "identity": identity(&["ada", "ben"]),
        "alerts": {"people": {"webhook": url, "secret": "between-us"}},
    }))
    .await;
    let agent = agent_of(Era::Handshake, &gateway.url, "ada", &[]).await;
    let other = agent_of(Era::Handshake, &gateway.url, "ben", &[]).await;
    assert!(worked(&agent.call("shop__echo", json!({})).await));
    let told = |server: &str| -> Vec<(String, String)> {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let notices = hook.of_kind("upstream").into_iter();
        let about = notices.filter(|it| it["server"] == server);
        about
            .map(|it| (text(&it["severity"]), text(&it["title"])))
            .collect()
    };
    let of = |severity: &str, title: &str| (severity.to_owned(), title.to_owned());
    let failed = of(
        "high",
        "server absent cannot be used until an operator fixes the cause",
    );
    until("people know of the one that cannot start", || {
        told("absent") == [failed.clone()]
    })
    .await;

    // It hangs for more than one principal, its breaker opens, and it responds again.
    let slow = json!({"steps": 10, "pause_ms": 100});
    assert!(!worked(
        &agent.call("shop__export_report", slow.clone()).await
    ));
    assert_eq!(
        told("shop"),
        [],
        "one principal alone does not say that it is down"
    );
    assert!(!worked(&other.call("shop__export_report", slow).await));
    let down = of("medium", "server shop is down");
    until("people know that it is down", || {
        told("shop") == [down.clone()]
    })
    .await;
    until_async("it answers again", async || {
        worked(&agent.call("shop__echo", json!({})).await)
    })
    .await;
    let back = of("low", "server shop is back");
    until("people know that it is back", || {
        told("shop") == [down.clone(), back.clone()]
    })
    .await;
    gateway.stop().await;
}
