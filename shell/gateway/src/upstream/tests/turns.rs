//! The limit of requests in flight.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use toolwarden_settings::ServerSettings;

use super::http_server::TestHttpServer;
use super::observer::{call, call_within, until, upstream};
use super::settings::{key, number, settings, shared};
use crate::upstream::{BusyReason, LinkKey, UpstreamError};

#[tokio::test]
async fn requests_wait_for_their_turn() {
    let allowed_hosts = TestHttpServer::open().await;
    allowed_hosts.behavior.millis.store(50, Ordering::Release);
    let (server, _) = upstream(ServerSettings {
        concurrency: number(2),
        ..settings(allowed_hosts.endpoint())
    });
    let mut calls = tokio::task::JoinSet::new();
    for name in ["a", "b", "c", "a", "b", "c"] {
        let server = server.clone();
        calls.spawn(async move { call(&server, &key(name), "t").await.unwrap() });
    }
    calls.join_all().await;
    assert_eq!(allowed_hosts.behavior.most.load(Ordering::Acquire), 2);
    assert!(server.status().latency.unwrap() >= Duration::from_millis(50));
    assert_eq!(server.status().in_flight, 0);
}

#[tokio::test]
async fn whoever_waits_too_long_is_told_and_whoever_gives_up_gives_way() {
    let allowed_hosts = TestHttpServer::open().await;
    let (server, _) = upstream(ServerSettings {
        concurrency: number(1),
        ..shared(allowed_hosts.endpoint())
    });
    let main = LinkKey::Main;
    allowed_hosts.behavior.hangs.store(true, Ordering::Release);
    let hung = tokio::spawn({
        let server = server.clone();
        async move { call(&server, &LinkKey::Main, "t").await }
    });
    until("it hangs", || {
        allowed_hosts.behavior.count("tools/call") == 1
    })
    .await;
    let soon = Some(Duration::from_millis(50));
    let error = call_within(&server, &main, "t", soon).await.unwrap_err();
    let what = BusyReason::Requests { limit: 1 };
    assert!(
        matches!(&error, UpstreamError::Busy { what: it, .. } if *it == what),
        "{error}"
    );
    assert!(error.retry_after().is_some());
    allowed_hosts.behavior.hangs.store(false, Ordering::Release);
    hung.abort();
    call(&server, &main, "t").await.unwrap();
}

#[tokio::test]
async fn a_server_that_hangs_delays_no_other() {
    let (bad, good) = (TestHttpServer::open().await, TestHttpServer::open().await);
    bad.behavior.hangs.store(true, Ordering::Release);
    let (hung, _) = upstream(shared(bad.endpoint()));
    let (well, _) = upstream(shared(good.endpoint()));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let hung = hung.clone();
        calls.spawn(async move { call(&hung, &LinkKey::Main, "t").await });
    }
    until("all hang", || bad.behavior.count("tools/call") == 64).await;
    let began = Instant::now();
    call(&well, &LinkKey::Main, "t").await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1));
    calls.shutdown().await;
}
