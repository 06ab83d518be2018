use serde_json::{Value, json};

use super::fixture::{AllowedHosts, Who};

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_asked_in_pages_and_verified() {
    let allowed_hosts = AllowedHosts::start().await;
    for tool in ["shop__list_folders", "shop__echo", "nothing"] {
        let body = json!({"tool": tool, "arguments": {"n": 1.50}});
        allowed_hosts.post(Who::Bob, "/api/v1/decide", body).await;
    }
    let path = "/api/v1/audit?principal=bob&kind=decision";
    let whole = allowed_hosts.root(path).await;
    let told = |records: &Value| -> Vec<(String, String, bool)> {
        let records = records["records"].as_array().unwrap().iter();
        let text = |it: &Value| it.as_str().unwrap().to_owned();
        records
            .map(|it| (text(&it["tool"]), text(&it["code"]), it["allowed"] == true))
            .collect()
    };
    let newest = [
        ("nothing".to_owned(), "unknown_tool".to_owned(), false),
        (
            "shop__echo".to_owned(),
            "filtered_by_group".to_owned(),
            false,
        ),
        ("shop__list_folders".to_owned(), "allowed".to_owned(), true),
    ];
    assert_eq!(told(&whole), newest);
    let mut gathered = Vec::new();
    for order in ["newest", "oldest"] {
        let mut cursor = String::new();
        for _ in 0..2 {
            let page = allowed_hosts
                .root(&format!("{path}&limit=2&order={order}{cursor}"))
                .await;
            gathered.extend(told(&page));
            cursor = match page["next"].as_str() {
                Some(next) => format!("&cursor={next}"),
                None => break,
            };
        }
    }
    let both = newest.iter().chain(newest.iter().rev()).cloned();
    assert_eq!(gathered, both.collect::<Vec<_>>());
    for (query, found) in [
        ("tool=nothing", 1),
        ("code=filtered_by_group", 1),
        ("denied=true", 2),
        ("until=2020-01-01T00:00:00Z", 0),
        ("since=2020-01-01T00:00:00Z", 3),
    ] {
        let records = allowed_hosts.root(&format!("{path}&{query}")).await;
        assert_eq!(told(&records).len(), found, "{query}");
    }

    let (_, verified) = allowed_hosts
        .post(Who::Root, "/api/v1/audit/verify", json!({}))
        .await;
    assert_eq!(
        (&verified["intact"], &verified["fault"]),
        (&json!(true), &Value::Null)
    );
    let head = verified["head"].as_str().unwrap();
    let (_, again) = allowed_hosts
        .post(Who::Root, "/api/v1/audit/verify", json!({"head": head}))
        .await;
    assert_eq!(again["noted"], json!({"head": head, "status": "confirmed"}));
    let (status, _) = allowed_hosts
        .post(Who::Root, "/api/v1/audit/verify", json!({"head": "x"}))
        .await;
    assert_eq!(status, 400);
    allowed_hosts.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_administrators_do_is_in_the_log() {
    let allowed_hosts = AllowedHosts::start().await;
    allowed_hosts.drift().await;
    let body = json!({"server": "shop", "tools": ["refund_order"], "reason": "agreed"});
    allowed_hosts.post(Who::Root, "/api/v1/approve", body).await;
    allowed_hosts
        .post(Who::Root, "/api/v1/servers/shop/retry", json!({}))
        .await;
    let call = json!({"tool": "shop__search_orders", "session": "case-1", "groups": ["read"]});
    let (_, allowed) = allowed_hosts.post(Who::Ann, "/api/v1/decide", call).await;
    let result = json!({"orders": [], "matches": 0});
    let ended = json!({"call": allowed["call"], "outcome": "succeeded", "result": result});
    allowed_hosts
        .post(Who::Root, "/api/v1/complete", ended)
        .await;
    let path = "/api/v1/sessions/case-1";
    let (status, _) = allowed_hosts.ask(Who::Bob, "DELETE", path, None).await;
    assert_eq!(status, 403);
    let (status, answer) = allowed_hosts.ask(Who::Root, "DELETE", path, None).await;
    assert_eq!(status, 200, "{answer}");

    let log = allowed_hosts
        .root("/api/v1/audit?kind=administration&order=oldest")
        .await;
    let records = log["records"].as_array().unwrap().iter();
    let mut told = Vec::new();
    for record in records {
        assert_eq!(record["principal"], "root");
        let mut body = record["body"].clone();
        body.as_object_mut().unwrap().remove("id");
        told.push((record["code"].clone(), body));
    }
    let approved = json!({
        "approved": {"server": "shop", "tool": "refund_order", "approved": "tool"},
        "reason": "agreed",
    });
    assert_eq!(
        told,
        [
            (json!("approved"), approved),
            (json!("retried"), json!({"server": "shop"})),
            (
                json!("session_ended"),
                json!({"principal": "ann", "session": "case-1"})
            ),
        ]
    );
    allowed_hosts.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_details_are_for_administrators_and_never_hold_secrets() {
    let allowed_hosts = AllowedHosts::start().await;
    let admins = allowed_hosts.root("/api/v1/servers/shop").await;
    let server = &admins["server"];
    assert_eq!(
        (
            &server["health"],
            &server["breaker"],
            &server["endpoint"]["kind"]
        ),
        (
            &json!("up"),
            &json!({"status": "closed", "retry_after": null}),
            &json!("url")
        )
    );
    let tools = &server["tools"];
    assert_eq!((&tools["listed"], &tools["served"]), (&json!(7), &json!(7)));
    let (_, agents) = allowed_hosts.get(Who::Ann, "/api/v1/servers/shop").await;
    let members = agents["server"].as_object().unwrap();
    for hidden in ["endpoint", "pids", "last_error"] {
        assert!(
            !members.contains_key(hidden) && server.get(hidden).is_some(),
            "{hidden}"
        );
    }
    let config = allowed_hosts.root("/api/v1/config").await.to_string();
    assert!(
        config.contains("\"api_keys\"") && !config.contains("0123456789"),
        "{config}"
    );
    allowed_hosts.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_and_states_are_those_of_the_caller() {
    let allowed_hosts = AllowedHosts::start().await;
    let names = |answer: &Value, member: &str| -> Vec<String> {
        let entries = answer[member].as_array().unwrap().iter();
        entries
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let (_, bobs) = allowed_hosts.get(Who::Bob, "/api/v1/groups").await;
    assert_eq!(names(&bobs, "groups"), ["default"]);
    let (_, anns) = allowed_hosts.get(Who::Ann, "/api/v1/groups").await;
    assert_eq!(names(&anns, "groups"), ["default", "read", "write"]);
    let of_bob = allowed_hosts.root("/api/v1/groups?principal=bob").await;
    let granted = of_bob["groups"].as_array().unwrap().iter();
    let granted: Vec<bool> = granted.map(|it| it["granted"] == true).collect();
    assert_eq!(granted, [true, false, false]);

    let states = allowed_hosts.root("/api/v1/states").await;
    assert_eq!(names(&states, "states"), ["found", "undefined"]);
    let leads = json!({"from": null, "to": "found", "tools": ["shop__search_orders"]});
    assert!(
        states["transitions"].as_array().unwrap().contains(&leads),
        "{states:#}"
    );
    let (_, bobs) = allowed_hosts.get(Who::Bob, "/api/v1/states").await;
    assert!(!bobs.to_string().contains("shop__search_orders"));
    allowed_hosts.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_fails_with_the_store() {
    let allowed_hosts = AllowedHosts::start().await;
    let (status, ready) = allowed_hosts.get(Who::Anonymous, "/api/v1/ready").await;
    assert_eq!((status, &ready["ready"]), (200, &json!(true)));
    let store = allowed_hosts.gateway.settings().store.clone();
    std::fs::rename(&store, store.with_extension("away")).unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(2_100)).await;
    let (status, ready) = allowed_hosts.get(Who::Anonymous, "/api/v1/ready").await;
    assert_eq!(status, 503);
    let reasons = ready["reasons"].as_array().unwrap();
    let store_fails = json!({"code": "store", "text": "the store cannot be written"});
    assert!(reasons.contains(&store_fails), "{reasons:?}");
    let (status, _) = allowed_hosts.get(Who::Anonymous, "/api/v1/health").await;
    assert_eq!(status, 200);
    let (status, answer) = allowed_hosts.get(Who::Root, "/api/v1/audit").await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (503, &json!("unavailable"))
    );
    std::fs::rename(store.with_extension("away"), &store).unwrap();
    allowed_hosts.stop().await;
}
