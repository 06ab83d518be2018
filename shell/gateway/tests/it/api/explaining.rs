use serde_json::{Value, json};

use super::fixture::{AllowedHosts, Who};

#[tokio::test(flavor = "multi_thread")]
async fn every_cause_has_a_sentence() {
    let allowed_hosts = AllowedHosts::start().await;
    for (who, query, cause, sentence) in [
        (
            Who::Ann,
            "tool=shop__echo&groups=read",
            "visible",
            "`ann` sees `shop__echo` and may call it.",
        ),
        (
            Who::Ann,
            "tool=echo",
            "other_name",
            "`ann` does not see `echo`: no tool has this name here. Did you mean `shop__echo`?",
        ),
        (
            Who::Ann,
            "tool=shop__ehco",
            "other_name",
            "`ann` does not see `shop__ehco`: no tool has this name here. Did you mean `shop__echo`?",
        ),
        (
            Who::Ann,
            "tool=shop__teleport",
            "not_listed",
            "`ann` does not see `shop__teleport`: server `shop` lists 7 tools, and none is called `teleport`.",
        ),
        (
            Who::Ann,
            "tool=ghost&groups=read",
            "no_server",
            "`ann` does not see `ghost`: it is in the policy, but no server offers it.",
        ),
        (
            Who::Ann,
            "tool=something%20else",
            "unknown",
            "`ann` does not see `something else`: no server behind this gateway lists such a tool.",
        ),
    ] {
        let (status, answer) = allowed_hosts
            .get(who, &format!("/api/v1/explain?{query}"))
            .await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(
            (&answer["cause"], &answer["answer"]),
            (&json!(cause), &json!(sentence)),
            "{query}: {answer:#}"
        );
        assert_eq!(answer["visible"], cause == "visible");
    }
    let (_, answer) = allowed_hosts
        .get(Who::Bob, "/api/v1/explain?tool=shop__echo")
        .await;
    assert_eq!(
        (&answer["cause"], &answer["callable"]),
        (&json!("gate"), &json!(false))
    );
    let refusing = answer["gates"].as_array().unwrap().iter();
    let refusing: Vec<&Value> = refusing.filter(|it| it["passes"] == false).collect();
    assert_eq!(refusing[0]["code"], "filtered_by_group");
    assert_eq!(answer["server"]["lists_it"], true);
    assert!(answer["server"]["list_age"].as_f64().unwrap() < 60.0);

    allowed_hosts.shop.kill();
    let mut cause = Value::Null;
    for _ in 0..200 {
        // A request must notice first that the server is down.
        allowed_hosts
            .post(Who::Root, "/api/v1/servers/shop/retry", json!({}))
            .await;
        let answer = allowed_hosts
            .root("/api/v1/explain?tool=shop__echo&groups=read")
            .await;
        cause = answer["cause"].clone();
        if cause == "server_away" {
            assert_eq!(
                answer["answer"],
                "`root` sees `shop__echo`, but its server `shop` is down, so that calls fail."
            );
            assert_eq!(
                (&answer["visible"], &answer["callable"]),
                (&json!(true), &json!(false))
            );
            assert!(answer["server"]["last_error"].is_string());
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    assert_eq!(cause, "server_away");
    allowed_hosts.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answered_is_told_apart() {
    let servers = json!({"gone": {"url": "http://127.0.0.1:9/mcp", "timeouts": {"connect": "1s"}}});
    let allowed_hosts = AllowedHosts::start_with(json!({"servers": servers})).await;
    let answer = allowed_hosts
        .root("/api/v1/explain?tool=gone__search")
        .await;
    assert_eq!(answer["cause"], "not_listed_yet", "{answer:#}");
    assert_eq!(
        answer["answer"],
        "`root` does not see `gone__search`: server `gone` is down and has not listed its tools yet."
    );
    let (status, ready) = allowed_hosts.get(Who::Anonymous, "/api/v1/ready").await;
    assert_eq!(status, 200, "{ready}");
    assert_eq!(
        ready["degraded"],
        json!([{"code": "server", "text": "server `gone` is down"}])
    );
    let tools = allowed_hosts.root("/api/v1/tools").await;
    assert_eq!(tools["servers_away"][0]["server"], "gone");
    allowed_hosts.stop().await;
}
