//! Links over HTTP: messages that belong to a request arrive at its audience, all others on the
//! server's own stream.

use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use toolwarden_mcp::protocol::with_client_meta;
use toolwarden_mcp::{Era, McpError, ServerConnection};

use crate::connection::{RequestResult, call, client_info, open, queue, raw, tool_call, value};
use crate::support::HttpServer;

/// Waits until the fixture has seen an event.
async fn wait_until_seen(link: &ServerConnection, wanted: &Value) {
    let mut seen = Value::Null;
    for _ in 0..100 {
        seen = value(link, "seen").await["seen"].take();
        if seen.as_array().unwrap().contains(wanted) {
            return;
        }
        sleep(Duration::from_millis(30)).await;
    }
    panic!("{wanted} is not in {seen}");
}

#[tokio::test]
async fn the_stream_of_a_request_is_heard_beside_it() {
    let server = HttpServer::speaking("plain");
    let (link, mut others) = open(&server.endpoint("/mcp")).await;
    assert!(!link.has_shared_stream());
    let (aside, mut heard) = queue();
    let params = raw(r#"{"name":"asks"}"#);
    let mut beside = tool_call(Some(&params), 5000);
    beside.handler = Some(&*aside);
    let answers = async {
        assert_eq!(
            heard.next_notification().await,
            (
                "notifications/message".to_owned(),
                r#"{ "level":"info"}"#.to_owned()
            )
        );
        let (id, method) = heard.request().await;
        assert_eq!(
            (id.get(), method.as_str()),
            (r#""q-1""#, "elicitation/create")
        );
        link.answer(&id, Ok(&raw(r#"{"action":"accept"}"#)))
            .await
            .unwrap();
    };
    let (outcome, ()) = tokio::join!(link.ask(beside), answers);
    let answered: Value = serde_json::from_str(outcome.unwrap().unwrap().get()).unwrap();
    assert_eq!(
        answered,
        json!([["s-1", "2025-11-25"],
            {"jsonrpc": "2.0", "id": "q-1", "result": {"action": "accept"}}])
    );
    assert!(others.is_empty());
    // Without an audience of the request, the audience of the link receives it.
    let answers = async {
        others.next().await;
        let (id, _) = others.request().await;
        link.answer(&id, Ok(&raw("{}"))).await.unwrap();
    };
    tokio::join!(
        async { call(&link, "asks").await.unwrap().unwrap() },
        answers
    );
    link.close().await;
}

#[tokio::test]
async fn results_and_errors_stay_as_written() {
    let server = HttpServer::speaking("plain");
    let (link, _heard) = open(&server.endpoint("/mcp")).await;
    let params = raw("{ \"name\" : \"x\",\n\"n\":1.00 }");
    let result = link
        .ask(tool_call(Some(&params), 5000))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        result.get(),
        "{\n \"params\" : {\"name\": \"x\", \"n\": 1.0}\n}"
    );
    let error = call(&link, "refuses").await.unwrap().unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (-32602, "no \"x\""));
    assert_eq!(error.data.unwrap().get(), "{ \"b\": 1.0,\n\"a\":2}");
    // One connection is enough for sequential requests.
    assert_eq!(value(&link, "seen").await["ports"], 1);
    link.close().await;
}

#[tokio::test]
async fn progress_on_the_stream_starts_the_wait_anew() {
    let server = HttpServer::speaking("plain");
    let (link, _heard) = open(&server.endpoint("/mcp")).await;
    let params = raw(r#"{"name":"progresses"}"#);
    let result = link
        .ask(tool_call(Some(&params), 600))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(result.get(), "{}");
    link.close().await;
}

#[tokio::test]
async fn a_request_given_up_is_closed_and_cancelled() {
    let server = HttpServer::speaking("plain");
    let (link, _heard) = open(&server.endpoint("/mcp")).await;
    let params = raw(r#"{"name":"slow"}"#);
    let error = link.ask(tool_call(Some(&params), 200)).await.unwrap_err();
    assert!(matches!(error, McpError::Timeout { .. }), "{error:?}");
    wait_until_seen(&link, &json!("closed")).await;
    let notice = |reason: &str, id: i64| json!(["notifications/cancelled", {"requestId": id, "reason": reason}]);
    wait_until_seen(&link, &notice("time-out", 3)).await;

    let number = std::sync::Mutex::new(0);
    let sent = |id: i64| *number.lock().unwrap() = id;
    let mut dropped = tool_call(Some(&params), 5000);
    dropped.on_sent = Some(&sent);
    assert!(
        timeout(Duration::from_millis(200), link.ask(dropped))
            .await
            .is_err()
    );
    let id = *number.lock().unwrap();
    wait_until_seen(&link, &notice("given up", id)).await;
    link.close().await;
}

#[tokio::test]
async fn the_face_of_the_agent_is_shown() {
    let server = HttpServer::speaking("plain");
    let (link, _heard) = open(&server.endpoint("/mcp")).await;
    wait_until_seen(
        &link,
        &json!(["initialize", {"protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}}, "clientInfo": {"name": "agent", "version": "7"}}]),
    )
    .await;
    link.notify("notifications/roots/list_changed", Some(&raw("{ }")))
        .await
        .unwrap();
    wait_until_seen(&link, &json!(["notifications/roots/list_changed", {}])).await;
    link.close().await;
}

#[tokio::test]
async fn the_server_speaks_by_itself() {
    let server = HttpServer::speaking("plain");
    let (link, mut heard) = open(&server.endpoint("/mcp")).await;
    link.listen();
    link.listen();
    for after in [json!("GET s-1 None"), json!("GET s-1 e1")] {
        wait_until_seen(&link, &after).await;
        call(&link, "speaks").await.unwrap().unwrap();
        assert_eq!(
            heard.next_notification().await.0,
            "notifications/tools/list_changed"
        );
        let (id, method) = heard.request().await;
        assert_eq!((id.get(), method.as_str()), ("9", "ping"));
        link.answer(&id, Ok(&raw("{}"))).await.unwrap();
        assert_eq!(
            value(&link, "heard").await,
            json!([["s-1", "2025-11-25"], {"jsonrpc": "2.0", "id": 9, "result": {}}])
        );
        // The stream ends and is reopened after the last event.
        call(&link, "hangs_up").await.unwrap().unwrap();
    }
    link.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_speak_by_itself_still_answers() {
    for mode in ["mute", "deaf"] {
        let server = HttpServer::speaking(mode);
        let (link, _heard) = open(&server.endpoint("/mcp")).await;
        link.listen();
        wait_until_seen(&link, &json!("GET s-1 None")).await;
        sleep(Duration::from_millis(300)).await;
        assert!(!link.is_closed());
        call(&link, "echo").await.unwrap().unwrap();
        link.close().await;
    }
}

#[tokio::test]
async fn expired_session_is_reported() {
    for how in ["404", "404-rpc", "400-rpc"] {
        let server = HttpServer::speaking("plain");
        let (link, _heard) = open(&server.endpoint("/mcp")).await;
        let params = raw(&json!({"name": "forgets", "how": how}).to_string());
        link.ask(tool_call(Some(&params), 5000))
            .await
            .unwrap()
            .unwrap();
        assert!(!link.is_closed());
        let error = call(&link, "echo").await.unwrap_err();
        assert!(
            matches!(error, McpError::SessionExpired { .. }),
            "{error:?}"
        );
        assert!(!error.is_permanent());
        timeout(Duration::from_secs(1), link.closed())
            .await
            .unwrap();
        link.close().await;
    }
}

async fn ask_stateless(
    link: &ServerConnection,
    method: &str,
    params: Option<&RawValue>,
) -> RequestResult {
    let params = with_client_meta(params, &client_info());
    let mut mcp_request = tool_call(Some(&params), 5000);
    mcp_request.method = method;
    link.ask(mcp_request).await
}

#[tokio::test]
async fn the_stateless_era_has_headers_and_streams() {
    let server = HttpServer::speaking("stateless");
    let (link, mut others) = open(&server.endpoint("/mcp")).await;
    assert_eq!(link.server().era, Era::Stateless);
    // No stream is opened beside the requests.
    link.listen();
    for (method, params) in [
        ("tools/call", r#"{"name":"x"}"#),
        ("resources/read", r#"{"uri":"file:\/\/\/x"}"#),
        ("tools/list", "{}"),
    ] {
        let result = ask_stateless(&link, method, Some(&raw(params))).await;
        let result: Value = serde_json::from_str(result.unwrap().unwrap().get()).unwrap();
        assert_eq!(
            result["params"]["_meta"],
            json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "agent", "version": "7"},
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}})
        );
    }
    let error = ask_stateless(&link, "nothing", None).await;
    assert_eq!(error.unwrap().unwrap_err().code, -32601);

    let (aside, mut heard) = queue();
    let params = with_client_meta(None, &client_info());
    let mut subscription = tool_call(Some(&params), 1_000_000_000);
    subscription.method = "subscriptions/listen";
    subscription.handler = Some(&*aside);
    let listening = async {
        for number in 0..5 {
            assert_eq!(
                heard.next_notification().await,
                (
                    "notifications/tools/list_changed".to_owned(),
                    format!(r#"{{"n":{number}}}"#)
                )
            );
        }
    };
    tokio::select! {
        outcome = link.ask(subscription) => panic!("{outcome:?}"),
        () = listening => {}
    }
    // Closing the stream is how this era cancels.
    let mut seen = Value::Null;
    for _ in 0..100 {
        let result = ask_stateless(&link, "tools/call", Some(&raw(r#"{"name":"seen"}"#))).await;
        let result: Value = serde_json::from_str(result.unwrap().unwrap().get()).unwrap();
        seen = result["seen"].clone();
        if seen[1] == "closed" {
            break;
        }
        sleep(Duration::from_millis(30)).await;
    }
    assert_eq!(seen.as_array().unwrap().len(), 2, "{seen}");
    assert_eq!(
        (&seen[0][0], &seen[1]),
        (&json!("server/discover"), &json!("closed"))
    );
    assert!(others.is_empty());
    link.close().await;
}

#[tokio::test]
async fn the_older_transport_is_a_channel() {
    let server = HttpServer::fixture("legacy_sse", &[]);
    let (link, _heard) = open(&server.endpoint("/sse")).await;
    assert!(link.has_shared_stream());
    call(&link, "x").await.unwrap().unwrap();
    assert!(!link.is_closed());
    link.close().await;
}
