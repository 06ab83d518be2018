use serde_json::{Value, json};

use super::fixture::{AllowedHosts, Who, client};

#[tokio::test(flavor = "multi_thread")]
async fn invalid_parameters_are_refused() {
    let allowed_hosts = AllowedHosts::start().await;
    for (path, said) in [
        (
            "/api/v1/tools?gruops=read",
            "unknown member `gruops` of the query, did you mean `groups`?",
        ),
        (
            "/api/v1/tools?session=a&session=b",
            "`session` is given twice",
        ),
        (
            "/api/v1/tools?all=yes",
            "`all` of the query has to be true or false",
        ),
        (
            "/api/v1/tools?limit=0",
            "`limit` of the query has to be a whole number from 1 to 1000",
        ),
        (
            "/api/v1/tools?limit=99999999999",
            "`limit` of the query has to be a whole number from 1 to 1000",
        ),
        (
            "/api/v1/tools?cursor=nowhere",
            "the cursor is not one of ours; start again without one",
        ),
        (
            "/api/v1/audit?cursor=-1",
            "the cursor is not one of ours; start again without one",
        ),
        (
            "/api/v1/audit?since=yesterday",
            "`since` of the query has to be a time such as `2026-01-31T12:00:00Z`",
        ),
        (
            "/api/v1/alerts?status=opne",
            "`status` of the query has to be one of open, approved, closed, did you mean `open`?",
        ),
        (
            "/api/v1/explain",
            "the query lacks `tool`: the name of a tool; others as records name them: `resource:…`, `prompt:…`, \
             `skill:…` or `method:…`",
        ),
        (
            "/api/v1/explain?tool=",
            "`tool` of the query has to be a text of 1 to 4096 characters",
        ),
        ("/api/v1/health?x=1", "unknown member `x` of the query"),
    ] {
        let (status, answer) = allowed_hosts.get(Who::Root, path).await;
        assert_eq!(
            (status, &answer["error"]["message"]),
            (400, &json!(said)),
            "{path}"
        );
    }
    for (path, body, said) in [
        (
            "decide",
            r#"{"tool": "x", "argument": {}}"#,
            "unknown member `argument` of the body, did you mean `arguments`?",
        ),
        (
            "decide",
            r#"{"arguments": {}}"#,
            "the body lacks `tool`: the name of a tool",
        ),
        (
            "decide",
            r#"{"tool": 5}"#,
            "`tool` of the body has to be a text of 1 to 4096 characters",
        ),
        (
            "decide",
            r#"{"tool": "x", "arguments": []}"#,
            "`arguments` of the body has to be an object",
        ),
        (
            "decide",
            r#"{"tool": "x", "groups": "read"}"#,
            "`groups` of the body has to be a list of texts",
        ),
        (
            "decide",
            r#"{"tool": "x", "arguments": {"a": 1, "a": 2}}"#,
            "`/arguments/a` of the body is written twice",
        ),
        (
            "decide",
            r#"{"tool": "x", "tool": "y"}"#,
            "`/tool` of the body is written twice",
        ),
        ("decide", "[]", "the body is not an object"),
        (
            "complete",
            r#"{"call": "x", "outcome": "done"}"#,
            "`outcome` of the body has to be one of succeeded, failed, suspended, abandoned",
        ),
        (
            "approve",
            r#"{"alerts": ["x"]}"#,
            "the body lacks `reason`: why it is approved",
        ),
        (
            "approve",
            r#"{"reason": "x"}"#,
            "say what is approved, one of: `alerts`, `tools` with `server`, `all` with `server`, `text` with `server`",
        ),
        (
            "approve",
            r#"{"all": true, "reason": "x"}"#,
            "name the `server`: several may have pending changes of that name",
        ),
        (
            "servers/shop/retry",
            r#"{"now": true}"#,
            "unknown member `now` of the body",
        ),
    ] {
        let path = format!("/api/v1/{path}");
        let (status, _, text) = allowed_hosts
            .send(Who::Root, "POST", &path, Some(body.to_owned()))
            .await;
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (status, &answer["error"]["message"]),
            (400, &json!(said)),
            "{path} {body}"
        );
    }
    allowed_hosts.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_not_found() {
    let allowed_hosts = AllowedHosts::start().await;
    for (method, path, status, said) in [
        (
            "GET",
            "/api/v1/tool",
            404,
            "there is no endpoint `/api/v1/tool`, did you mean `/api/v1/tools`?",
        ),
        ("GET", "/api/v1", 404, "there is no endpoint `/api/v1`"),
        (
            "POST",
            "/api/v1/tools",
            405,
            "this endpoint does not have this method",
        ),
        (
            "GET",
            "/api/v1/servers/shpo",
            404,
            "no server is called `shpo`, did you mean `shop`?",
        ),
        (
            "GET",
            "/api/v1/baselines?server=x",
            404,
            "no server is called `x`",
        ),
        (
            "GET",
            "/api/v1/baselines/shop/echoo",
            404,
            "tool `echoo` was never pinned, did you mean `echo`?",
        ),
        ("GET", "/api/v1/alerts/..%2f%00%ff", 400, ""),
        (
            "GET",
            "/api/v1/alerts/%27%3B--",
            404,
            "there is no alert `';--`",
        ),
        (
            "GET",
            "/api/v1/alerts/x/deliveries",
            404,
            "there is no alert `x`",
        ),
        ("GET", "/api/v1/sessions/x", 404, "there is no session `x`"),
        (
            "DELETE",
            "/api/v1/sessions/~",
            404,
            "there is no session `~`",
        ),
        (
            "GET",
            "/api/v1/tools/shop%2Fecho",
            404,
            "you see no tool `shop/echo`, did you mean `shop__echo`?",
        ),
    ] {
        let (got, _, text) = allowed_hosts.send(Who::Root, method, path, None).await;
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(got, status, "{method} {path}: {text}");
        if !said.is_empty() {
            assert_eq!(answer["error"]["message"], said, "{path}");
        }
        assert!(!answer["error"]["remedy"].as_str().unwrap().is_empty());
    }
    allowed_hosts.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_bounded_and_say_that_they_are_json() {
    let allowed_hosts = AllowedHosts::start_with(
        json!({"listen": {"address": "127.0.0.1:0", "max_body": "16KiB"}}),
    )
    .await;
    let body = json!({"tool": "x", "arguments": {"text": "a".repeat(20_000)}}).to_string();
    let (status, _, text) = allowed_hosts
        .send(Who::Ann, "POST", "/api/v1/decide", Some(body))
        .await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (status, &answer["error"]["code"]),
        (413, &json!("too_large"))
    );
    let deep = format!(
        r#"{{"tool": "x", "arguments": {{"a": {}1{}}}}}"#,
        "[".repeat(4_000),
        "]".repeat(4_000)
    );
    let (status, _, text) = allowed_hosts
        .send(Who::Ann, "POST", "/api/v1/decide", Some(deep))
        .await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("invalid")));
    let form = client(&allowed_hosts.base)
        .post(format!("{}/api/v1/decide", allowed_hosts.base))
        .header("authorization", "Bearer ann-0123456789-abcdefg")
        .header("content-type", "text/plain")
        .body(r#"{"tool": "x"}"#);
    assert_eq!(form.send().await.unwrap().status(), 415);
    allowed_hosts.stop().await;
}
