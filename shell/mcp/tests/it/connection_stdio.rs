//! Links to programs: the audience receives all messages that the program sends on its own.

use std::fs;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::timeout;
use toolwarden_mcp::protocol::with_client_meta;
use toolwarden_mcp::{Era, McpError, RpcError};

use crate::connection::{call, client_info, open, raw, tool_call, value};
use crate::support::{scratch, stdio_fixture};

#[tokio::test]
async fn requests_of_the_server_are_passed_on_and_answered() {
    let (link, mut heard) = open(&stdio_fixture("handshake", &[])).await;
    assert!(link.has_shared_stream());
    let asked = value(&link, "asks");
    let answers = async {
        let (id, method) = heard.request().await;
        assert_eq!((id.get(), method.as_str()), (r#""p-1""#, "ping"));
        link.answer(&id, Ok(&raw("{\n\"late\":1.0}")))
            .await
            .unwrap();
        assert_eq!(
            heard.next_notification().await,
            ("notifications/message".to_owned(), "{}".to_owned())
        );
        let (id, method) = heard.request().await;
        assert_eq!((id.get(), method.as_str()), ("7", "roots/list"));
        let refusal = RpcError {
            code: -1,
            message: "no \"roots\"".to_owned(),
            data: Some(raw("[ 1 ]")),
        };
        link.answer(&id, Err(&refusal)).await.unwrap();
    };
    let (answered, ()) = tokio::join!(asked, answers);
    assert_eq!(
        answered,
        json!([
            {"jsonrpc": "2.0", "id": "p-1", "result": {"late": 1.0}},
            {"jsonrpc": "2.0", "id": 7, "error":
                {"code": -1, "message": "no \"roots\"", "data": [1]}},
        ])
    );
    link.close().await;
}

#[tokio::test]
async fn errors_keep_their_data() {
    let (link, _heard) = open(&stdio_fixture("handshake", &[])).await;
    let error = call(&link, "fails").await.unwrap().unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (-32050, "no such thing")
    );
    assert_eq!(error.data.unwrap().get(), r#"{"b": 1, "a": 2}"#);
    link.close().await;
}

#[tokio::test]
async fn the_stateless_era_sends_what_it_is_given() {
    let (link, _heard) = open(&stdio_fixture("stateless", &[])).await;
    assert_eq!(link.server().era, Era::Stateless);
    let bare = raw(r#"{"name":"echo"}"#);
    let refused = link.ask(tool_call(Some(&bare), 5000)).await.unwrap();
    assert!(refused.unwrap_err().message.starts_with("envelope missing"));
    let params = with_client_meta(Some(&bare), &client_info());
    let result = link
        .ask(tool_call(Some(&params), 5000))
        .await
        .unwrap()
        .unwrap();
    let result: Value = serde_json::from_str(result.get()).unwrap();
    assert_eq!(
        result["echo"],
        serde_json::from_str::<Value>(params.get()).unwrap()
    );
    link.close().await;
}

#[tokio::test]
async fn progress_starts_the_wait_anew() {
    let (link, mut heard) = open(&stdio_fixture("handshake", &[])).await;
    let params = raw(r#"{"name":"progresses"}"#);
    // Without `extend_timeout` the request times out.
    let started = Instant::now();
    let error = link.ask(tool_call(Some(&params), 500)).await.unwrap_err();
    assert!(matches!(error, McpError::Timeout { .. }), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(1));
    while timeout(Duration::from_millis(600), heard.next())
        .await
        .is_ok()
    {}

    let number = Mutex::new(0);
    let sent = |id: i64| *number.lock().unwrap() = id;
    let mut patient = tool_call(Some(&params), 500);
    patient.on_sent = Some(&sent);
    let keep = async {
        for done in 0..6 {
            let (method, params) = heard.next_notification().await;
            assert_eq!(method, "notifications/progress");
            assert_eq!(
                params,
                format!(r#"{{ "progressToken":"x","progress":{done}}}"#)
            );
            let id = *number.lock().unwrap();
            link.extend_timeout(id);
        }
    };
    let (outcome, ()) = tokio::join!(link.ask(patient), keep);
    assert_eq!(outcome.unwrap().unwrap().get(), "{}");
    link.close().await;
}

#[tokio::test]
async fn a_dropped_request_is_cancelled() {
    let path = scratch("dropped.json");
    let endpoint = stdio_fixture("handshake", &[path.to_str().unwrap()]);
    let (link, _heard) = open(&endpoint).await;
    let dropped = timeout(Duration::from_millis(100), call(&link, "slow")).await;
    assert!(dropped.is_err());
    // The fixture answers requests one at a time.
    call(&link, "echo").await.unwrap().unwrap();
    let notice: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(
        notice,
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 3, "reason": "given up"}})
    );
    link.close().await;
}

#[tokio::test]
async fn program_exit_is_reported() {
    let (link, _heard) = open(&stdio_fixture("dies_later", &[])).await;
    let pid = link.pid().unwrap();
    assert!(fs::exists(format!("/proc/{pid}")).unwrap());
    assert!(!link.is_closed());
    let mut listing = tool_call(None, 5000);
    listing.method = "tools/list";
    let (outcome, ()) = tokio::join!(link.ask(listing), link.closed());
    let error = outcome.unwrap_err();
    assert!(matches!(error, McpError::Exited { .. }), "{error:?}");
    assert!(link.is_closed());
    assert!(!error.is_permanent());
    link.close().await;
}

#[tokio::test]
async fn a_closed_link_is_closed_for_all() {
    let (link, _heard) = open(&stdio_fixture("handshake", &[])).await;
    let other = link.clone();
    let waiting = tokio::spawn(async move { call(&other, "asks").await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let kept = link.clone();
    link.close().await;
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(error, McpError::Closed), "{error:?}");
    let error = kept.notify("notifications/x", None).await.unwrap_err();
    assert!(matches!(error, McpError::Closed), "{error:?}");
}
