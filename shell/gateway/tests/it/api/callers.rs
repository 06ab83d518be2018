use serde_json::{Value, json};
use toolwarden_gateway::api::openapi_document;

use super::fixture::{AllowedHosts, Who};

/// Paths of the document with something in place of what they name.
fn paths() -> Vec<(String, String, Value)> {
    let document = openapi_document();
    let mut paths = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let filled: Vec<&str> = path
            .split('/')
            .map(|it| if it.starts_with('{') { "x" } else { it })
            .collect();
        for (method, operation) in methods.as_object().unwrap() {
            paths.push((method.to_uppercase(), filled.join("/"), operation.clone()));
        }
    }
    paths
}

#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_callers_get_a_challenge() {
    let allowed_hosts = AllowedHosts::start().await;
    for (method, path, operation) in paths() {
        let open = operation["security"] == json!([]);
        let (status, headers, text) = allowed_hosts
            .send(Who::Anonymous, &method, &path, None)
            .await;
        if open {
            assert!([200, 503].contains(&status), "{method} {path}: {status}");
            continue;
        }
        assert_eq!(status, 401, "{method} {path}");
        assert_eq!(headers["www-authenticate"], "Bearer");
        let told: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            told,
            json!({
                "schema": "toolwarden/api/error/v1",
                "error": {
                    "code": "unauthenticated",
                    "message": "no credential was sent: send `Authorization: Bearer <key or token>`",
                    "remedy": "Send a key or token of this gateway as `Authorization: Bearer …`, to one of its host names.",
                },
            })
        );
    }
    allowed_hosts.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_routes_refuse_other_callers() {
    let allowed_hosts = AllowedHosts::start().await;
    let mut refused = 0;
    for (method, path, operation) in paths() {
        let is_admins = operation["description"].is_string();
        let (status, answer) = allowed_hosts.ask(Who::Ann, &method, &path, None).await;
        assert_eq!(is_admins, status == 403, "{method} {path}: {answer}");
        if is_admins {
            refused += 1;
            assert_eq!(answer["error"]["code"], "forbidden");
        }
    }
    assert_eq!(refused, 13);
    for (path, what) in [
        ("/api/v1/tools?all=true", "list tools they do not see"),
        (
            "/api/v1/explain?tool=x&principal=bob",
            "explain for other callers",
        ),
        (
            "/api/v1/groups?principal=bob",
            "look at groups for other callers",
        ),
        (
            "/api/v1/sessions?principal=bob",
            "look at sessions for other callers",
        ),
    ] {
        let (status, answer) = allowed_hosts.get(Who::Ann, path).await;
        assert_eq!(status, 403, "{path}");
        let message = format!("only administrators of the gateway may {what}");
        assert_eq!(answer["error"]["message"], message.as_str());
        let (status, _) = allowed_hosts.get(Who::Root, path).await;
        assert_eq!(status, 200, "{path}");
    }
    let decide = json!({"tool": "shop__echo", "principal": "bob"});
    let (status, _) = allowed_hosts
        .post(Who::Ann, "/api/v1/decide", decide.clone())
        .await;
    assert_eq!(status, 403);
    let (status, _) = allowed_hosts
        .post(Who::Root, "/api/v1/decide", decide)
        .await;
    assert_eq!(status, 200);
    let records = allowed_hosts.root("/api/v1/audit?code=not_admin").await;
    let records = records["records"].as_array().unwrap();
    assert!(records.len() > 3, "{records:?}");
    assert!(records.iter().all(|it| it["principal"] == "ann"));
    allowed_hosts.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_open_where_anonymous_callers_are() {
    let allowed_hosts =
        AllowedHosts::start_with(json!({"identity": {"anonymous": "guest", "admins": ["guest"]}}))
            .await;
    let (status, headers, text) = allowed_hosts
        .send(Who::Anonymous, "GET", "/metrics", None)
        .await;
    assert_eq!(status, 200);
    assert_eq!(
        headers["content-type"],
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    assert!(
        text.contains("toolwarden_upstream_up{server=\"shop\"} 1\n"),
        "{text}"
    );
    assert!(text.ends_with("# EOF\n"));
    allowed_hosts.stop().await;
}
