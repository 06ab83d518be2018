//! Authentication of callers, and the handling of their credentials.

use serde_json::{Value, json};
use toolwarden_mcp::Era;

use super::{agent_of, at_with, client, identity, key, worked};
use crate::support::{TestGateway, shop_of};

async fn post(url: &str, headers: &[(&str, &str)]) -> reqwest::Response {
    let client = client();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let mut request = client
        .post(url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(body.to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_requests_get_a_challenge() {
    let server = shop_of(Era::Handshake);
    let mut callers = identity(&["ada"]);
    callers["jwt"] = json!([{"issuer": "https://login.example", "audience": "gateway",
        "secret": "0123456789abcdef0123456789abcdef", "scopes": ["tools"]}]);
    let gateway = TestGateway::start(&json!({
        "servers": {"s": at_with(&server, json!({}))}, "identity": callers,
    }))
    .await;
    let metadata = format!(
        "{}/.well-known/oauth-protected-resource/mcp",
        gateway.root()
    );
    let wrong = format!("Bearer {}x", key("ada"));
    for headers in [&[][..], &[("authorization", wrong.as_str())]] {
        let refused = post(&gateway.url, headers).await;
        assert_eq!(refused.status(), 401);
        let challenge = refused.headers()["www-authenticate"]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(challenge.starts_with("Bearer "), "{challenge}");
        assert!(
            challenge.contains(&format!("resource_metadata=\"{metadata}\"")),
            "{challenge}"
        );
        assert_eq!(
            challenge.contains("invalid_token"),
            !headers.is_empty(),
            "{challenge}"
        );
        let body = refused.text().await.unwrap();
        assert!(!body.contains(&key("ada")), "{body}");
    }
    let right = format!("Bearer {}", key("ada"));
    assert_eq!(
        post(&gateway.url, &[("authorization", &right)])
            .await
            .status(),
        200
    );
    let document = client().get(&metadata).send().await.unwrap();
    let document: Value = document.text().await.unwrap().parse().unwrap();
    assert_eq!(
        document,
        json!({
            "resource": gateway.url,
            "authorization_servers": ["https://login.example"],
            "scopes_supported": ["tools"],
            "bearer_methods_supported": ["header"],
        })
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_names_of_this_machine_are_refused() {
    let server = shop_of(Era::Handshake);
    let gateway = TestGateway::before(&[("s", &server)]).await;
    let port = gateway.root().rsplit(':').next().unwrap();
    let localhost = format!("localhost:{port}");
    for (header, value, status) in [
        ("origin", "https://evil.example", 403),
        ("origin", "http://localhost:3000", 200),
        ("host", "evil.example", 403),
        ("host", "localhost:1", 403),
        ("host", &*localhost, 200),
    ] {
        let answer = post(&gateway.url, &[(header, value)]).await;
        assert_eq!(answer.status().as_u16(), status, "{header}: {value}");
    }
    gateway.stop().await;
}

/// A caller's token is not forwarded; a server gets its own credential.
#[tokio::test(flavor = "multi_thread")]
async fn credentials_do_not_mix() {
    for servers in super::ERAS {
        let server = shop_of(servers);
        let folder = tempfile::TempDir::new().unwrap();
        std::fs::write(folder.path().join("token"), "of-the-server\n").unwrap();
        let headers = json!({"headers": {"Authorization": "Bearer ${file:token}",
            "X-From": "${CARGO_MANIFEST_DIR}"}});
        let settings = json!({
            "servers": {"s": at_with(&server, headers)}, "identity": identity(&["ada"]),
        });
        let gateway = TestGateway::start_in(&settings, folder).await;
        for agents in super::ERAS {
            let ada = agent_of(
                agents,
                &gateway.url,
                "ada",
                &[("cookie", "c=1"), ("x-api-key-2", "k")],
            )
            .await;
            assert!(worked(&ada.call("s__echo", json!({})).await));
        }
        let seen = server.shop.seen().headers();
        assert!(seen.len() > 4);
        for headers in &seen {
            let get = |name: &str| {
                headers
                    .iter()
                    .find(|(it, _)| it == name)
                    .map(|(_, it)| it.as_str())
            };
            assert_eq!(
                get("authorization"),
                Some("Bearer of-the-server"),
                "{headers:?}"
            );
            assert_eq!(get("x-from"), Some(env!("CARGO_MANIFEST_DIR")));
            assert_eq!((get("cookie"), get("x-api-key-2")), (None, None));
            assert!(!headers.iter().any(|(_, value)| value.contains(&key("ada"))));
        }
        let shown = format!("{:?}", gateway.gateway.settings());
        assert!(!shown.contains("of-the-server"), "secrets are not shown");
        gateway.stop().await;
    }
}
