use serde_json::{Value, json};

use super::fixture::{AllowedHosts, Who};

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_drifted_waits_until_it_is_approved() {
    let allowed_hosts = AllowedHosts::start().await;
    let alert = allowed_hosts.drift().await;
    let id = alert["id"].as_str().unwrap();
    assert_eq!(
        (&alert["server"], &alert["tool"], &alert["status"]),
        (&json!("shop"), &json!("refund_order"), &json!("open"))
    );
    let changes = allowed_hosts.root("/api/v1/changes?server=shop").await;
    let waiting = &changes["changes"][0];
    assert_eq!(
        (&waiting["kind"], &waiting["alerts"]),
        (&json!("changed"), &json!([id]))
    );
    let narrowed = waiting["changes"].as_array().unwrap().iter();
    let narrowed = narrowed
        .filter(|it| it["class"] == "breaking")
        .collect::<Vec<_>>();
    assert!(!narrowed.is_empty(), "{waiting:#}");
    assert!(
        narrowed[0]["pointer"]
            .as_str()
            .unwrap()
            .starts_with("/inputSchema")
    );
    assert!(
        narrowed[0]["judgement"]["witness"].is_object() || narrowed.len() > 1,
        "{narrowed:#?}"
    );

    // A caller that may otherwise call it gets the reason.
    let explained = allowed_hosts
        .root("/api/v1/explain?tool=shop__refund_order&principal=ann&groups=write")
        .await;
    assert_eq!(
        (
            &explained["cause"],
            &explained["visible"],
            &explained["treatment"]["alert"]
        ),
        (&json!("quarantined"), &json!(false), &json!(id))
    );
    let sentence = explained["answer"].as_str().unwrap();
    assert!(
        sentence.starts_with("`ann` does not see `shop__refund_order`: it is quarantined: "),
        "{sentence}"
    );
    assert!(sentence.contains(id), "{sentence}");
    let gates = explained["gates"].as_array().unwrap();
    assert_eq!(
        gates
            .iter()
            .map(|it| it["gate"].as_str().unwrap())
            .collect::<Vec<_>>(),
        [
            "known",
            "quarantine",
            "group",
            "state",
            "permission",
            "rate",
            "input"
        ]
    );
    assert_eq!(gates[1]["code"], "quarantined");
    let call = json!({"tool": "shop__refund_order", "groups": ["write"]});
    let (_, denied) = allowed_hosts.post(Who::Ann, "/api/v1/decide", call).await;
    assert_eq!(denied["code"], "quarantined");

    for (path, found) in [
        (
            "/api/v1/alerts?server=shop&tool=refund_order&severity=high,medium&status=open",
            1,
        ),
        ("/api/v1/alerts?server=other", 0),
        ("/api/v1/alerts?tool=echo", 0),
        ("/api/v1/alerts?status=approved", 0),
        ("/api/v1/alerts?since=2999-01-01T00:00:00Z", 0),
    ] {
        assert_eq!(allowed_hosts.root(path).await["count"], found, "{path}");
    }
    let deliveries = allowed_hosts
        .root(&format!("/api/v1/alerts/{id}/deliveries"))
        .await;
    assert_eq!(deliveries["deliveries"], json!([]));

    let (status, answer) = allowed_hosts
        .post(
            Who::Root,
            "/api/v1/approve",
            json!({"server": "shop", "tools": ["echo"], "reason": "r"}),
        )
        .await;
    assert_eq!(
        (status, &answer["error"]["message"]),
        (
            404,
            &json!("no pending change, alert or tool is called `echo`")
        )
    );
    let body =
        json!({"server": "shop", "tools": ["refund_order"], "reason": "agreed with the shop"});
    let (status, answer) = allowed_hosts.post(Who::Root, "/api/v1/approve", body).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        answer["approved"],
        json!([{"server": "shop", "tool": "refund_order", "approved": "tool"}])
    );

    // It is back with the response, not some time later.
    let tool = allowed_hosts.root("/api/v1/tools/shop__refund_order").await;
    assert_eq!(tool["tool"]["treatment"]["kind"], "serve");
    assert_eq!(
        allowed_hosts.root("/api/v1/changes").await["changes"],
        json!([])
    );
    let history = allowed_hosts
        .root("/api/v1/baselines/shop/refund_order")
        .await;
    let last = &history["baseline"];
    assert_eq!(last["approved"]["by"], "root");
    assert_eq!(last["approved"]["why"], "agreed with the shop");
    assert_eq!(history["history"].as_array().unwrap().len(), 2);
    assert_eq!(history["alerts"][0]["status"], "approved");
    assert!(
        history["definition"]["description"]
            .as_str()
            .unwrap()
            .contains("<IMPORTANT>")
    );
    let baselines = allowed_hosts.root("/api/v1/baselines?server=shop").await;
    assert!(baselines["baselines"].as_array().unwrap().len() >= 7);
    allowed_hosts.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_text_are_approved_in_one_request() {
    let allowed_hosts = AllowedHosts::start().await;
    let tool = |words: &str| {
        let tool = |name: &str| {
            json!({"name": name, "description": format!("{name} {words}"),
                "inputSchema": {"type": "object"}})
        };
        [tool("find"), tool("sort")]
    };
    allowed_hosts.shop.shop.set_tools(&tool("things"));
    let approve = async |what: Value| allowed_hosts.post(Who::Root, "/api/v1/approve", what).await;
    let waiting = async |wanted: usize| {
        for _ in 0..400 {
            allowed_hosts.shop.shop.notify_list_changed();
            let waiting =
                allowed_hosts.root("/api/v1/changes?server=shop").await["changes"].clone();
            if waiting.as_array().unwrap().len() >= wanted {
                return waiting;
            }
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
        panic!("nothing waits");
    };
    // Those of before are gone, and two are new.
    waiting(2).await;
    let (status, _) = approve(json!({"server": "shop", "all": true, "reason": "new"})).await;
    assert_eq!(status, 200);
    allowed_hosts
        .shop
        .shop
        .set_tools(&tool("many things quickly"));
    let waiting = waiting(2).await;
    let classes = waiting.as_array().unwrap().iter();
    let classes = classes.map(|it| it["changes"][0]["class"].as_str().unwrap_or_default());
    assert_eq!(classes.collect::<Vec<_>>(), ["text", "text"], "{waiting:#}");
    let (status, told) = approve(json!({"server": "shop", "text": true, "reason": "read"})).await;
    assert_eq!(status, 200, "{told}");
    assert_eq!(told["approved"].as_array().unwrap().len(), 2, "{told:#}");
    let left = allowed_hosts.root("/api/v1/changes?server=shop").await;
    assert_eq!(left["changes"], json!([]));
    allowed_hosts.stop().await;
}
