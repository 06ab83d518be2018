//! Names the gateway answers to.

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use toolwarden_settings::ListenSettings;

use crate::identity::{AllowedHosts, OriginError};

fn listen(address: &str) -> ListenSettings {
    ListenSettings {
        address: address.parse().unwrap(),
        tls: None,
        public_url: None,
        hosts: Vec::new(),
        origins: Vec::new(),
        body_bytes: 1,
        batch: std::num::NonZeroU32::MIN,
        limits: toolwarden_settings::ListenLimits::default(),
    }
}

fn allowed_hosts(listen: &ListenSettings) -> AllowedHosts {
    AllowedHosts::new(listen, listen.address).unwrap()
}

fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(name.clone(), HeaderValue::try_from(*value).unwrap());
    }
    headers
}

/// `""` where it passes, else the name of the header that does not.
fn refused(allowed_hosts: &AllowedHosts, host: &str, origin: Option<&str>) -> &'static str {
    let mut sent = vec![(HOST, host)];
    sent.extend(origin.map(|origin| (ORIGIN, origin)));
    match allowed_hosts.check(&headers(&sent)) {
        Ok(()) => "",
        Err(OriginError::Host { .. }) => "host",
        Err(OriginError::Origin { .. }) => "origin",
    }
}

#[test]
fn a_loopback_gateway_answers_to_loopback_names() {
    let allowed_hosts = allowed_hosts(&listen("127.0.0.1:8080"));
    for (host, origin, expected) in [
        ("localhost:8080", None, ""),
        ("LocalHost.:8080", None, ""),
        ("127.0.0.1:8080", Some("http://127.0.0.1:8080"), ""),
        ("[::1]:8080", Some("http://[::1]:9"), ""),
        ("127.0.0.2:8080", None, ""),
        ("localhost:8080", Some("http://localhost:5173"), ""),
        ("localhost:8080", Some("https://localhost"), ""),
        ("localhost", None, "host"),
        ("localhost:80", None, "host"),
        ("localhost:99999", None, "host"),
        ("10.0.0.1:8080", None, "host"),
        // What the conformance suite sends.
        ("evil.example.com", Some("http://evil.example.com"), "host"),
        ("evil.example.com:8080", None, "host"),
        ("localhost.evil.example:8080", None, "host"),
        ("127.0.0.1.evil.example:8080", None, "host"),
        ("evil.example@localhost:8080", None, "host"),
        ("", None, "host"),
        ("localhost:8080", Some("http://evil.example.com"), "origin"),
        (
            "localhost:8080",
            Some("http://localhost.evil.example"),
            "origin",
        ),
        (
            "localhost:8080",
            Some("http://localhost@evil.example"),
            "origin",
        ),
        ("localhost:8080", Some("null"), "origin"),
        ("localhost:8080", Some(""), "origin"),
        ("localhost:8080", Some("file://"), "origin"),
    ] {
        assert_eq!(
            refused(&allowed_hosts, host, origin),
            expected,
            "{host} {origin:?}"
        );
    }
    assert!(allowed_hosts.check(&HeaderMap::new()).is_err());
    let twice = headers(&[(HOST, "localhost:8080"), (HOST, "localhost:8080")]);
    assert!(allowed_hosts.check(&twice).is_err());
    let twice = headers(&[
        (HOST, "localhost:8080"),
        (ORIGIN, "http://localhost"),
        (ORIGIN, "http://evil.example"),
    ]);
    assert!(allowed_hosts.check(&twice).is_err());
}

#[test]
fn a_gateway_for_others_answers_to_what_it_is_told() {
    let mut listen = listen("0.0.0.0:80");
    listen.hosts = vec!["Tools.Example".to_owned(), "alias.example:8443".to_owned()];
    listen.origins = vec![
        "https://App.Example:443/".to_owned(),
        "vscode-webview://x".to_owned(),
    ];
    listen.public_url = Some("https://gw.example/base/".to_owned());
    let allowed_hosts = allowed_hosts(&listen);
    for (host, origin, expected) in [
        ("tools.example", None, ""),
        ("tools.example:1234", Some("https://app.example"), ""),
        ("alias.example:8443", None, ""),
        ("alias.example", None, "host"),
        ("gw.example", Some("https://gw.example"), ""),
        ("tools.example", Some("vscode-webview://x"), ""),
        ("tools.example", Some("vscode-webview://y"), "origin"),
        // An address cannot be made to point elsewhere.
        ("10.1.2.3", None, ""),
        ("10.1.2.3:81", None, "host"),
        ("localhost", None, ""),
        // A page of the gateway itself.
        ("10.1.2.3", Some("http://10.1.2.3"), ""),
        ("10.1.2.3", Some("http://10.1.2.4"), "origin"),
        ("10.1.2.3", Some("https://10.1.2.3:80"), "origin"),
        // Others on the machine of the browser are not pages of this machine.
        ("tools.example", Some("http://localhost:3000"), "origin"),
        ("tools.example", Some("http://app.example"), "origin"),
    ] {
        assert_eq!(
            refused(&allowed_hosts, host, origin),
            expected,
            "{host} {origin:?}"
        );
    }
}

#[test]
fn the_base_url_is_the_public_one_or_the_one_used() {
    let mut listen = listen("127.0.0.1:8080");
    let sent = headers(&[(HOST, "localhost:8080")]);
    assert_eq!(
        allowed_hosts(&listen).base_url(&sent),
        "http://localhost:8080"
    );
    assert_eq!(
        allowed_hosts(&listen).base_url(&HeaderMap::new()),
        "http://127.0.0.1:8080"
    );
    listen.public_url = Some("https://gw.example/".to_owned());
    assert_eq!(allowed_hosts(&listen).base_url(&sent), "https://gw.example");
}

#[test]
fn mistakes_in_the_settings_are_told() {
    let mut listen = listen("127.0.0.1:8080");
    listen.hosts = vec!["https://gw.example".to_owned()];
    let message = |listen: &ListenSettings| {
        AllowedHosts::new(listen, listen.address)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message(&listen),
        "`https://gw.example` is not a host: write a name or an address, with or without a port"
    );
    listen.hosts.clear();
    listen.origins = vec!["app.example".to_owned()];
    assert_eq!(
        message(&listen),
        "`app.example` is not an origin: write it like `https://app.example.com`"
    );
    listen.origins.clear();
    listen.public_url = Some("gw.example".to_owned());
    assert_eq!(
        message(&listen),
        "`gw.example` is not an http or https address"
    );
}

#[tokio::test]
async fn a_refusal_names_the_remedy() {
    let allowed_hosts = allowed_hosts(&listen("127.0.0.1:8080"));
    let refusal = allowed_hosts
        .check(&headers(&[(HOST, "evil.example")]))
        .unwrap_err();
    let response = refusal.response();
    assert_eq!(response.status(), 403);
    let body = axum::body::to_bytes(response.into_body(), 10_000).await;
    let body: Value = serde_json::from_slice(&body.unwrap()).unwrap();
    assert_eq!(
        body,
        json!({
            "jsonrpc": "2.0",
            "error": {
                "code": -32000,
                "message": "`Host: evil.example` is not a name of this gateway: if it is meant to be one, add it to `hosts` under `listen`",
            },
        })
    );
}
