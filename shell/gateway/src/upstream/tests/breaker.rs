//! The circuit breaker of a failing server.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use toolwarden_mcp::McpRequest;
use toolwarden_settings::{BreakerSettings, ServerSettings};

use super::counter::{counter, is_alive, parse_answer};
use super::http_server::TestHttpServer;
use super::observer::{agent, call, call_within, until, upstream};
use super::settings::{number, settings, shared};
use crate::upstream::{BreakerStatus, LinkKey, LinkRoute, UpstreamError, UpstreamHealth};

const PAUSE: Duration = Duration::from_millis(500);
const SOON: Option<Duration> = Some(Duration::from_millis(150));

fn nervous(settings: ServerSettings) -> ServerSettings {
    ServerSettings {
        breaker: BreakerSettings {
            failures: number(2),
            pause: PAUSE,
        },
        ..settings
    }
}

#[tokio::test]
async fn time_outs_open_it_and_one_request_tries_again() {
    let allowed_hosts = TestHttpServer::open().await;
    let (server, diary) = upstream(nervous(shared(allowed_hosts.endpoint())));
    let main = LinkKey::Main;
    call(&server, &main, "t").await.unwrap();
    allowed_hosts.behavior.hangs.store(true, Ordering::Release);
    for health in [UpstreamHealth::Degraded, UpstreamHealth::Down] {
        let error = call_within(&server, &main, "t", SOON).await.unwrap_err();
        assert!(matches!(error, UpstreamError::Timeout { .. }), "{error}");
        assert_eq!(server.status().health, health);
    }
    let sent = allowed_hosts.behavior.count("tools/call");
    let began = Instant::now();
    let error = call(&server, &main, "t").await.unwrap_err();
    assert!(began.elapsed() < Duration::from_millis(50));
    assert!(
        matches!(error, UpstreamError::BreakerOpen { .. }),
        "{error}"
    );
    assert!(error.retry_after().unwrap() <= PAUSE);
    assert_eq!(allowed_hosts.behavior.count("tools/call"), sent);

    tokio::time::sleep(PAUSE).await;
    assert_eq!(server.status().breaker, BreakerStatus::HalfOpen);
    // One tries, and the others are refused; it fails, and all are.
    let trial = call_within(&server, &main, "t", SOON);
    let other = async {
        until("the trial is sent", || {
            allowed_hosts.behavior.count("tools/call") > sent
        })
        .await;
        call(&server, &main, "t").await
    };
    let (trial, other) = tokio::join!(trial, other);
    assert!(matches!(trial, Err(UpstreamError::Timeout { .. })));
    assert!(matches!(other, Err(UpstreamError::BreakerOpen { .. })));
    assert!(matches!(
        call(&server, &main, "t").await,
        Err(UpstreamError::BreakerOpen { .. })
    ));

    tokio::time::sleep(PAUSE).await;
    allowed_hosts.behavior.hangs.store(false, Ordering::Release);
    call(&server, &main, "t").await.unwrap();
    let status = server.status();
    assert_eq!(
        (status.health, status.breaker),
        (UpstreamHealth::Up, BreakerStatus::Closed)
    );
    assert_eq!(
        diary.lines(),
        ["starting", "up", "connected main", "degraded", "down", "up"]
    );
}

#[tokio::test]
async fn errors_of_the_server_are_answers_and_refusals_of_a_request_no_failures() {
    let allowed_hosts = TestHttpServer::open().await;
    let (server, _) = upstream(nervous(shared(allowed_hosts.endpoint())));
    for _ in 0..5 {
        let request = McpRequest::new("no/such/method", None);
        let (key, info) = (LinkKey::Main, agent());
        let answer = server.ask(LinkRoute::new(&key, &info), request).await;
        let answer = answer.unwrap();
        assert_eq!(answer.unwrap_err().code, -32601);
    }
    allowed_hosts.behavior.refuses.store(422, Ordering::Release);
    for _ in 0..5 {
        let error = call(&server, &LinkKey::Main, "t").await.unwrap_err();
        assert!(matches!(error, UpstreamError::Protocol { .. }), "{error}");
    }
    allowed_hosts.behavior.refuses.store(503, Ordering::Release);
    for _ in 0..2 {
        let error = call(&server, &LinkKey::Main, "t").await.unwrap_err();
        assert!(matches!(error, UpstreamError::Down { .. }), "{error}");
    }
    let error = call(&server, &LinkKey::Main, "t").await.unwrap_err();
    assert!(
        matches!(error, UpstreamError::BreakerOpen { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_trial_that_is_given_up_leaves_room_for_another() {
    let allowed_hosts = TestHttpServer::open().await;
    let (server, _) = upstream(nervous(shared(allowed_hosts.endpoint())));
    let main = LinkKey::Main;
    allowed_hosts.behavior.hangs.store(true, Ordering::Release);
    for _ in 0..2 {
        call_within(&server, &main, "t", SOON).await.unwrap_err();
    }
    tokio::time::sleep(PAUSE).await;
    let given_up = tokio::time::timeout(Duration::from_millis(50), call(&server, &main, "t"));
    given_up.await.unwrap_err();
    allowed_hosts.behavior.hangs.store(false, Ordering::Release);
    call(&server, &main, "t").await.unwrap();
}

/// A program that hangs does not recover on its own: the next trial uses a new one.
#[tokio::test]
async fn a_program_that_hangs_is_ended() {
    let (server, _) = upstream(nervous(settings(counter("", None))));
    let main = LinkKey::Main;
    let (_, first) = parse_answer(&call(&server, &main, "t").await.unwrap());
    for _ in 0..2 {
        call_within(&server, &main, "hang", SOON).await.unwrap_err();
    }
    until("it is ended", || !is_alive(first)).await;
    tokio::time::sleep(PAUSE).await;
    let (count, second) = parse_answer(&call(&server, &main, "t").await.unwrap());
    assert_eq!(count, 1);
    assert_ne!(first, second);
    server.close().await;
}
