//! Servers over HTTP: both eras, JSON and event streams, the older transport, and failures.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwarden_mcp::{Endpoint, Era, McpClient, McpError, ProtocolFault, ServerUrl};

use crate::support::{HttpServer, fixture_tools, refusal, scratch, short, texts};

async fn connect(server: &HttpServer) -> McpClient {
    McpClient::connect(&server.endpoint("/mcp"), &short())
        .await
        .unwrap()
}

/// The requests that the fixture saw, read through a tool call.
async fn seen(client: &McpClient, name: &str, arguments: Value) -> Vec<Value> {
    let result = client.call_tool(name, &arguments).await.unwrap();
    let result: Value = serde_json::from_str(result.get()).unwrap();
    result["seen"].as_array().unwrap().clone()
}

#[tokio::test]
async fn json_answers_in_a_session() {
    let path = scratch("deleted.json");
    let server = HttpServer::fixture("json", &[path.to_str().unwrap()]);
    let client = connect(&server).await;
    assert_eq!(client.server().era, Era::Handshake);
    assert_eq!(
        texts(&client.list_tools().await.unwrap().tools),
        fixture_tools()
    );
    let session = json!({
        "mcp-session-id": "s-1", "mcp-protocol-version": "2025-11-25", "authorization": "Bearer t"});
    assert_eq!(
        seen(&client, "t", json!({})).await,
        [
            json!(["POST", {"mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover",
                "authorization": "Bearer t"}, "server/discover"]),
            json!(["POST", {"authorization": "Bearer t"}, "initialize"]),
            json!(["POST", session, "notifications/initialized"]),
            json!(["POST", session, "tools/list"]),
            json!(["POST", session, "tools/call"]),
        ]
    );
    client.close().await;
    let deleted: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(deleted, json!(["DELETE", session, null]));
}

#[tokio::test]
async fn event_streams_with_everything_in_them() {
    let server = HttpServer::fixture("events", &[]);
    let client = connect(&server).await;
    assert_eq!(
        texts(&client.list_tools().await.unwrap().tools),
        fixture_tools()
    );
    let session = json!({
        "mcp-session-id": "s-1", "mcp-protocol-version": "2025-11-25", "authorization": "Bearer t"});
    let seen = seen(&client, "t", json!({})).await;
    assert_eq!(
        seen.last_chunk(),
        Some(&[
            json!(["POST", session, "tools/list"]),
            // The client refuses the server's own request.
            json!(["POST", session, -32601]),
            json!(["POST", session, "tools/call"]),
        ])
    );
    client.close().await;
}

#[tokio::test]
async fn ended_streams_are_resumed() {
    let server = HttpServer::fixture("resume", &[]);
    let client = connect(&server).await;
    assert_eq!(
        texts(&client.list_tools().await.unwrap().tools),
        fixture_tools()
    );
    client.close().await;
}

#[tokio::test]
async fn stateless_headers_match_the_body() {
    let server = HttpServer::fixture("stateless", &[]);
    let client = connect(&server).await;
    assert_eq!(client.server().era, Era::Stateless);
    assert_eq!(client.server().name, None);
    client.list_tools().await.unwrap();
    let seen = seen(&client, "t", json!({"region": "eu"})).await;
    assert_eq!(
        seen.last().unwrap(),
        &json!(["POST", {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call",
            "mcp-name": "t", "mcp-param-region": "eu", "authorization": "Bearer t"}, "tools/call"])
    );
    client.close().await;
}

#[tokio::test]
async fn the_older_transport_is_found() {
    let server = HttpServer::fixture("legacy_sse", &[]);
    let client = McpClient::connect(&server.endpoint("/sse"), &short())
        .await
        .unwrap();
    assert_eq!(client.server().name.as_deref(), Some("http"));
    assert_eq!(
        texts(&client.list_tools().await.unwrap().tools),
        fixture_tools()
    );
    client.close().await;
}

#[tokio::test]
async fn the_older_transport_stays_on_its_origin() {
    let server = HttpServer::fixture("foreign_sse", &[]);
    let error = refusal(&server.endpoint("/sse"), &short()).await;
    assert!(
        matches!(error, McpError::Http { status: 404, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn statuses_tell_the_remedy() {
    for (mode, text) in [
        (
            "unauthorized",
            "HTTP status 401 for `server/discover`: the server wants credentials; add an Authorization header: <html> <b>no</b></html>",
        ),
        (
            "forbidden",
            "HTTP status 403 for `server/discover`: the credentials do not permit this, or the server rejects this Origin or Host: <html> <b>no</b></html>",
        ),
        (
            "missing",
            "HTTP status 404 for `initialize`: nothing there, or the session ended; check the path (often /mcp), then connect again: <html> <b>no</b></html>",
        ),
        (
            "no_post",
            "HTTP status 405 for `initialize`: the address does not take this method; check the path (often /mcp): <html> <b>no</b></html>",
        ),
        (
            "broken",
            "HTTP status 500 for `initialize`: the server failed; see its log: <html> <b>no</b></html>",
        ),
        (
            "unavailable",
            "HTTP status 503 for `initialize`: the server is not available; try again later: <html> <b>no</b></html>",
        ),
        (
            "html",
            "the answer to `initialize` breaks the protocol: content type `text/html` is neither application/json nor text/event-stream; is this the address of an MCP server?",
        ),
        (
            "accepts_all",
            "the answer to `initialize` breaks the protocol: HTTP status 202 without an answer",
        ),
        (
            "wrong_id",
            "the answer to `initialize` breaks the protocol: it has the id 4711, expected 2",
        ),
        (
            "redirect_away",
            "HTTP status 307 redirects to `http://example.com/mcp`, which is not followed; use that address if it is the intended server",
        ),
    ] {
        let server = HttpServer::fixture(mode, &[]);
        let error = refusal(&server.endpoint("/mcp"), &short()).await;
        assert_eq!(error.to_string(), text, "{mode}");
    }
}

#[tokio::test]
async fn redirects_on_the_origin_are_followed() {
    let server = HttpServer::fixture("redirect_near", &[]);
    let client = connect(&server).await;
    assert_eq!(client.list_tools().await.unwrap().tools.len(), 3);
    client.close().await;
}

#[tokio::test]
async fn a_lost_session_and_an_ended_stream() {
    let server = HttpServer::fixture("session_lost", &[]);
    let client = connect(&server).await;
    let error = client.list_tools().await.unwrap_err();
    assert!(
        matches!(error, McpError::Http { status: 404, .. }),
        "{error:?}"
    );
    client.close().await;
    let server = HttpServer::fixture("stream_ends", &[]);
    let client = connect(&server).await;
    let error = client.list_tools().await.unwrap_err();
    assert!(
        matches!(
            error,
            McpError::Protocol {
                fault: ProtocolFault::NoAnswer,
                ..
            }
        ),
        "{error:?}"
    );
    client.close().await;
}

#[tokio::test]
async fn silence_and_floods_end() {
    let started = Instant::now();
    let server = HttpServer::fixture("silent", &[]);
    let error = refusal(&server.endpoint("/mcp"), &short()).await;
    assert!(matches!(error, McpError::Timeout { .. }), "{error:?}");
    let server = HttpServer::fixture("huge", &[]);
    let error = refusal(&server.endpoint("/mcp"), &short()).await;
    assert!(matches!(error, McpError::TooLarge { .. }), "{error:?}");
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn unreachable_server_or_no_tls() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let error = refusal(
        &Endpoint::url(&format!("http://127.0.0.1:{port}/mcp?key=s3cret")).unwrap(),
        &short(),
    )
    .await;
    assert_eq!(
        error.to_string(),
        format!(
            "no connection to `http://127.0.0.1:{port}/mcp`: Connection refused (os error 111)"
        )
    );
    let server = HttpServer::fixture("json", &[]);
    let url = format!("https://127.0.0.1:{}/mcp", server.port);
    let error = refusal(&Endpoint::url(&url).unwrap(), &short()).await;
    assert!(
        matches!(
            error,
            McpError::Tls { .. } | McpError::CertificateStore { .. }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn bad_headers_are_named_without_their_value() {
    let endpoint = Endpoint::Url(ServerUrl {
        url: "http://127.0.0.1:9/".to_owned(),
        headers: vec![("X-Key".to_owned(), "s3\ncret".to_owned())],
    });
    let error = refusal(&endpoint, &short()).await;
    assert_eq!(
        error.to_string(),
        "the header `X-Key` has an invalid name or value"
    );
}
