//! Which session a request uses, and its outcome.

use std::sync::atomic::Ordering;

use serde_json::json;
use toolwarden_live_guard::CallParams;
use toolwarden_mcp::McpRequest;

use super::http_server::TestHttpServer;
use super::observer::{agent, call, decide, raw, until, upstream};
use super::settings::{key, settings, shared};
use crate::upstream::{LinkKey, LinkRoute, UpstreamError};

/// Facts, item 7: an expired session is renewed transparently.
#[tokio::test]
async fn an_expired_session_is_opened_anew_and_the_request_sent_once_more() {
    let allowed_hosts = TestHttpServer::open().await;
    let (server, diary) = upstream(shared(allowed_hosts.endpoint()));
    let first = call(&server, &key("a"), "t").await.unwrap();
    allowed_hosts.behavior.expire();
    let second = call(&server, &key("a"), "t").await.unwrap();
    assert_eq!(first, json!({"session": "session-1"}));
    assert_eq!(second, json!({"session": "session-2"}));
    assert_eq!(allowed_hosts.behavior.count("initialize"), 2);
    assert_eq!(server.status().restarts, 1);
    assert_eq!(
        diary.links(),
        ["connected main", "lost main", "connected main"]
    );
    server.close().await;
    assert_eq!(allowed_hosts.behavior.open_sessions(), 0);
}

#[tokio::test]
async fn many_requests_of_an_expired_session_share_the_new_one() {
    let allowed_hosts = TestHttpServer::open().await;
    let (server, _) = upstream(shared(allowed_hosts.endpoint()));
    call(&server, &LinkKey::Main, "t").await.unwrap();
    allowed_hosts.behavior.expire();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let server = server.clone();
        calls.spawn(async move { call(&server, &LinkKey::Main, "t").await.unwrap() });
    }
    for answer in calls.join_all().await {
        assert_eq!(answer, json!({"session": "session-2"}));
    }
    assert_eq!(allowed_hosts.behavior.count("initialize"), 2);
}

#[tokio::test]
async fn a_session_that_always_expires_is_given_up() {
    let allowed_hosts = TestHttpServer::open().await;
    let (server, _) = upstream(shared(allowed_hosts.endpoint()));
    allowed_hosts
        .behavior
        .forgets
        .store(true, Ordering::Release);
    let error = call(&server, &LinkKey::Main, "t").await.unwrap_err();
    let is_expired = matches!(error, UpstreamError::SessionExpired { was_sent: true, .. });
    assert!(is_expired, "{error}");
    assert_eq!(allowed_hosts.behavior.count("tools/call"), 2);
}

/// Whether a call may be sent again is up to its permit, so the upstream never does it by itself.
#[tokio::test]
async fn a_call_of_an_expired_session_is_written_once() {
    let allowed_hosts = TestHttpServer::open().await;
    let (server, _) = upstream(shared(allowed_hosts.endpoint()));
    call(&server, &LinkKey::Main, "t").await.unwrap();
    allowed_hosts.behavior.expire();
    let params = raw(&json!({"name": "t"}));
    let params = CallParams::read(&params).unwrap();
    let mut open = decide(server.name(), &params);
    let permitted = open.permitted_call(&params, "").unwrap();
    let (key, info) = (LinkKey::Main, agent());
    let request = McpRequest::new("tools/call", None);
    let (_sent, answer) = server
        .call(permitted, LinkRoute::new(&key, &info), request)
        .await;
    let error = answer.unwrap_err();
    assert!(
        matches!(error, UpstreamError::SessionExpired { was_sent: true, .. }),
        "{error}"
    );
    assert_eq!(allowed_hosts.behavior.count("tools/call"), 2);
    assert_eq!(allowed_hosts.behavior.count("initialize"), 1);
    open.report_success_unchecked();
}

#[tokio::test]
async fn a_permit_is_for_one_server() {
    let allowed_hosts = TestHttpServer::open().await;
    let (server, _) = upstream(shared(allowed_hosts.endpoint()));
    let params = raw(&json!({"name": "t"}));
    let params = CallParams::read(&params).unwrap();
    let mut open = decide("another", &params);
    let permitted = open.permitted_call(&params, "").unwrap();
    let (key, info) = (LinkKey::Main, agent());
    let request = McpRequest::new("tools/call", None);
    let (_sent, answer) = server
        .call(permitted, LinkRoute::new(&key, &info), request)
        .await;
    assert!(matches!(answer, Err(UpstreamError::NeedsPermit { .. })));
    assert_eq!(allowed_hosts.behavior.count("initialize"), 0);
    open.report_success_unchecked();
}

/// Facts, item 13: what one conversation does to its session, another never sees.
#[tokio::test]
async fn conversations_have_sessions_of_their_own_unless_they_are_shared() {
    for (is_shared, sessions) in [
        (false, ["session-2", "session-3", "session-2"]),
        (true, ["session-1", "session-1", "session-1"]),
    ] {
        let allowed_hosts = TestHttpServer::open().await;
        let settings = if is_shared {
            shared(allowed_hosts.endpoint())
        } else {
            settings(allowed_hosts.endpoint())
        };
        let (server, _) = upstream(settings);
        let mut seen = Vec::new();
        for name in ["a", "b", "a"] {
            let answer = call(&server, &key(name), "t").await.unwrap();
            seen.push(answer["session"].as_str().unwrap().to_owned());
        }
        assert_eq!(seen, sessions);
        let open = allowed_hosts.behavior.open_sessions();
        server.close_conversation_link(&key("a"));
        server.close_conversation_link(&key("unknown"));
        server.close_conversation_link(&LinkKey::Main);
        let left = open - usize::from(!is_shared);
        until("the session is deleted", || {
            allowed_hosts.behavior.open_sessions() == left
        })
        .await;
        assert_eq!(server.status().links, left);
    }
}

#[tokio::test]
async fn a_server_of_the_stateless_era_needs_one_link() {
    let allowed_hosts = TestHttpServer::open().await;
    allowed_hosts
        .behavior
        .stateless
        .store(true, Ordering::Release);
    let (server, diary) = upstream(settings(allowed_hosts.endpoint()));
    for name in ["a", "b"] {
        let answer = call(&server, &key(name), "t").await.unwrap();
        assert_eq!(answer, json!({"session": ""}));
    }
    assert_eq!(diary.links(), ["connected main"]);
    assert_eq!(server.description().unwrap().protocol_version, "2026-07-28");
}

#[tokio::test]
async fn only_a_permit_calls_a_tool() {
    let allowed_hosts = TestHttpServer::open().await;
    let (server, _) = upstream(shared(allowed_hosts.endpoint()));
    let params = raw(&json!({"name": "t"}));
    let request = McpRequest::new("tools/call", Some(&params));
    let (key, info) = (LinkKey::Main, agent());
    let refused = server.ask(LinkRoute::new(&key, &info), request).await;
    assert!(matches!(refused, Err(UpstreamError::NeedsPermit { .. })));
    let refused = server.notify(&LinkKey::Main, "tools/call", Some(&params));
    assert!(matches!(
        refused.await,
        Err(UpstreamError::NeedsPermit { .. })
    ));
    assert_eq!(allowed_hosts.behavior.count("tools/call"), 0);
}

#[tokio::test]
async fn notifications_open_nothing() {
    let allowed_hosts = TestHttpServer::open().await;
    let (server, _) = upstream(shared(allowed_hosts.endpoint()));
    let method = "notifications/roots/list_changed";
    let refused = server.notify(&LinkKey::Main, method, None).await;
    assert!(matches!(refused, Err(UpstreamError::NoLink { .. })));
    call(&server, &LinkKey::Main, "t").await.unwrap();
    server.notify(&LinkKey::Main, method, None).await.unwrap();
    assert_eq!(allowed_hosts.behavior.count(method), 1);
    let (id, nothing) = (raw(&json!(7)), raw(&json!({})));
    let answer = server.answer(&LinkKey::Main, &id, Ok(&nothing));
    answer.await.unwrap();
    assert_eq!(allowed_hosts.behavior.count(""), 1);
}
