//! Programs on standard streams: both eras and every way to fail.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwarden_mcp::{
    Command, ConnectionLimits, Endpoint, Era, McpClient, McpError, ProtocolFault, ServerDiagnostics,
};

use crate::support::{fixture_tools, refusal, scratch, short, stdio_fixture, texts};

async fn connect(mode: &str) -> McpClient {
    McpClient::connect(&stdio_fixture(mode, &[]), &short())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_handshake_server_is_listed_byte_for_byte() {
    let client = connect("handshake").await;
    let listing = client.list_tools().await.unwrap();
    assert_eq!(texts(&listing.tools), fixture_tools());
    let server = listing.server;
    assert_eq!(server.era, Era::Handshake);
    assert_eq!(server.protocol_version, "2025-11-25");
    assert_eq!(server.name.as_deref(), Some("fixture"));
    assert_eq!(server.version.as_deref(), Some("1"));
    assert_eq!(server.title.as_deref(), Some("F"));
    assert_eq!(server.instructions.as_deref(), Some("use it"));
    assert_eq!(
        server.info.unwrap().get(),
        r#"{"version":"1","name":"fixture","title":"F"}"#
    );
    assert_eq!(server.capabilities.unwrap().get(), r#"{ "tools":{}}"#);
    assert!(server.connect_request.get().contains(r#""x-extra":1.0,"#));
    client.close().await;
}

#[tokio::test]
async fn a_stateless_server_gets_its_envelope() {
    let client = connect("stateless").await;
    assert_eq!(client.server().era, Era::Stateless);
    assert_eq!(client.server().protocol_version, "2026-07-28");
    assert_eq!(client.server().name.as_deref(), Some("fixture"));
    assert_eq!(
        texts(&client.list_tools().await.unwrap().tools),
        fixture_tools()
    );
    client.close().await;
}

#[tokio::test]
async fn calls_keep_arguments_and_results() {
    let client = connect("handshake").await;
    let arguments: Value = serde_json::from_str(r#"{"b":1,"a":"ü"}"#).unwrap();
    let result = client.call_tool("echo", &arguments).await.unwrap();
    assert_eq!(
        result.get(),
        r#"{"content":[ ],"echo":{"name": "echo", "arguments": {"b": 1, "a": "\u00fc"}},"isError":false}"#
    );
    client.close().await;
}

#[tokio::test]
async fn requests_of_the_server_are_answered() {
    let client = connect("handshake").await;
    let answers = client.call_tool("asks", &json!({})).await.unwrap();
    let answers: Value = serde_json::from_str(answers.get()).unwrap();
    assert_eq!(
        answers,
        json!([
            {"jsonrpc": "2.0", "id": "p-1", "result": {}},
            {"jsonrpc": "2.0", "id": 7, "error": {
                "code": -32601, "message": "method `roots/list` is not offered by this client"}},
        ])
    );
    client.close().await;
}

#[tokio::test]
async fn errors_of_the_server_keep_their_data() {
    let client = connect("handshake").await;
    let error = client.call_tool("fails", &json!({})).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server refused `tools/call` with error -32050: no such thing"
    );
    let McpError::Rpc {
        data: Some(data), ..
    } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!(data.get(), r#"{"b": 1, "a": 2}"#);
    client.close().await;
}

#[tokio::test]
async fn old_servers_that_dislike_discover_are_reached() {
    let started = Instant::now();
    for mode in [
        "exits_on_discover",
        "ignores_discover",
        "blocks_on_discover",
        "slow_handshake",
    ] {
        let client = connect(mode).await;
        assert_eq!(client.server().era, Era::Handshake, "{mode}");
        assert_eq!(client.list_tools().await.unwrap().tools.len(), 3, "{mode}");
        client.close().await;
    }
    assert!(started.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn a_slow_stateless_server_stays_stateless() {
    let client = connect("slow_stateless").await;
    assert_eq!(client.server().era, Era::Stateless);
    client.close().await;
}

#[tokio::test]
async fn unknown_versions_are_refused() {
    let error = refusal(&stdio_fixture("modern_only", &[]), &short()).await;
    assert!(
        matches!(&error, McpError::NoCommonVersion { offered } if *offered == ["2027-01-01"]),
        "{error:?}"
    );
    let error = refusal(&stdio_fixture("unknown_version", &[]), &short()).await;
    assert!(
        matches!(&error, McpError::NoCommonVersion { offered } if *offered == ["2999-01-01"]),
        "{error:?}"
    );
}

#[tokio::test]
async fn missing_programs_and_directories() {
    let error = refusal(
        &Endpoint::command_line("no-such-program-x --a").unwrap(),
        &short(),
    )
    .await;
    assert_eq!(
        error.to_string(),
        "program `no-such-program-x` not found; install it or give its full path"
    );
    let Endpoint::Command(command) = stdio_fixture("handshake", &[]) else {
        panic!("not a command");
    };
    let lost = Command {
        directory: Some("/no/such".into()),
        shows_errors: false,
        ..command
    };
    let error = refusal(&Endpoint::Command(lost), &short()).await;
    assert_eq!(error.to_string(), "working directory `/no/such` not found");
    let error = refusal(&Endpoint::command_line("/etc/passwd").unwrap(), &short()).await;
    assert!(matches!(error, McpError::Spawn { .. }), "{error:?}");
}

#[tokio::test]
async fn an_exit_shows_status_and_error_output() {
    let error = refusal(&stdio_fixture("exits", &[]), &short()).await;
    let McpError::Exited {
        method,
        status,
        evidence,
    } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!(method, "initialize");
    assert_eq!(status.and_then(|status| status.code()), Some(2));
    assert!(evidence.stderr.ends_with("Error: API_KEY is not set\n"));
    // The word that was cut in two is missing.
    assert!((7_168..=8_192).contains(&evidence.stderr.len()));
}

#[tokio::test]
async fn exit_between_requests_is_detected() {
    let client = connect("dies_later").await;
    let error = client.list_tools().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server exited (exit status: 7) before answering `tools/list`; its error output ends:\nTraceback: disk on fire"
    );
    let again = client.list_tools().await.unwrap_err();
    assert!(matches!(again, McpError::Exited { .. }), "{again:?}");
    client.close().await;
}

#[tokio::test]
async fn a_closed_output_is_an_end() {
    let error = refusal(&stdio_fixture("closes_output", &[]), &short()).await;
    assert!(
        matches!(error, McpError::Exited { status: None, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn noise_is_skipped_up_to_a_limit() {
    let client = connect("noisy").await;
    assert_eq!(client.list_tools().await.unwrap().tools.len(), 3);
    assert_eq!(
        client.diagnostics(),
        ServerDiagnostics {
            stderr: String::new(),
            skipped_lines: 51,
            last_skipped: r#"{"level":30,"msg":"pino"}"#.to_owned(),
        }
    );
    client.close().await;
    let error = refusal(&stdio_fixture("flood", &[]), &short()).await;
    assert_eq!(
        error.to_string(),
        "the server sent more than 1048576 bytes that are not JSON-RPC"
    );
}

#[tokio::test]
async fn silence_is_a_timeout_with_evidence() {
    let started = Instant::now();
    let error = refusal(&stdio_fixture("silent", &[]), &short()).await;
    let McpError::Timeout {
        method, evidence, ..
    } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!(method, "initialize");
    assert_eq!(
        *evidence,
        ServerDiagnostics {
            stderr: "waiting for the database\n".to_owned(),
            skipped_lines: 1,
            last_skipped: "starting...".to_owned(),
        }
    );
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn the_total_limit_ends_everything() {
    let limits = ConnectionLimits {
        total: Duration::from_secs(1),
        ..short()
    };
    let started = Instant::now();
    let error = refusal(&stdio_fixture("silent", &[]), &limits).await;
    assert!(matches!(error, McpError::Timeout { .. }), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn wrong_ids_are_named() {
    let error = refusal(&stdio_fixture("wrong_id", &[]), &short()).await;
    assert!(
        matches!(&error, McpError::Protocol { fault: ProtocolFault::WrongId { expected: 2, got }, .. } if got == "1002"),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_huge_line_is_refused() {
    let error = refusal(&stdio_fixture("huge", &[]), &short()).await;
    assert!(
        matches!(error, McpError::TooLarge { limit: 67_108_864 }),
        "{error:?}"
    );
}

#[tokio::test]
async fn listings_end() {
    let text = async |mode: &str, limits: &ConnectionLimits| {
        let client = McpClient::connect(&stdio_fixture(mode, &[]), limits)
            .await
            .unwrap();
        let error = client.list_tools().await.unwrap_err().to_string();
        client.close().await;
        error
    };
    assert_eq!(
        text("cursor_loop", &short()).await,
        "the answer to `tools/list` breaks the protocol: the cursor `same` came twice"
    );
    assert_eq!(
        text(
            "endless_pages",
            &ConnectionLimits {
                pages: 20,
                ..short()
            }
        )
        .await,
        "the server sent more than 20 pages"
    );
    assert_eq!(
        text(
            "endless_pages",
            &ConnectionLimits {
                tools: 20,
                ..short()
            }
        )
        .await,
        "the server sent more than 20 tools"
    );
    assert!(
        text("no_tools_member", &short())
            .await
            .contains("the result is not as specified: missing field `tools`")
    );
}

#[tokio::test]
async fn a_timed_out_request_is_cancelled() {
    let path = scratch("cancelled.json");
    let limits = ConnectionLimits {
        request: Duration::from_millis(300),
        ..short()
    };
    let endpoint = stdio_fixture("handshake", &[path.to_str().unwrap()]);
    let client = McpClient::connect(&endpoint, &limits).await.unwrap();
    let error = client.call_tool("slow", &json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), "no answer to `tools/call` within 300ms");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let notice: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(notice["method"], "notifications/cancelled");
    assert_eq!(notice["params"]["requestId"], 3);
    // The late answer has no effect.
    assert_eq!(client.list_tools().await.unwrap().tools.len(), 3);
    client.close().await;
}

#[tokio::test]
async fn requests_run_concurrently() {
    let client = connect("handshake").await;
    let calls: Vec<_> = (0..20).map(|n| json!({ "n": n })).collect();
    let results = async {
        let mut set = tokio::task::JoinSet::new();
        let client = std::sync::Arc::new(client);
        for call in calls {
            let client = std::sync::Arc::clone(&client);
            set.spawn(
                async move { (call.clone(), client.call_tool("echo", &call).await.unwrap()) },
            );
        }
        set.join_all().await
    };
    for (call, result) in results.await {
        let result: Value = serde_json::from_str(result.get()).unwrap();
        assert_eq!(result["echo"]["arguments"], call);
    }
}
