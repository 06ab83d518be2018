//! Servers that fail to start: permanently, or for a while.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use toolwarden_settings::{RestartSettings, ServerSettings, StartMode};

use super::counter::{command, counter};
use super::http_server::TestHttpServer;
use super::observer::{call, until, upstream};
use super::settings::{key, settings, shared};
use crate::upstream::{LinkKey, UpstreamError, UpstreamHealth};

/// Facts, item 9: reported at once, by type, without a wait.
#[tokio::test]
async fn a_program_that_does_not_exist_is_a_permanent_failure() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("no-such-server");
    let path = program.to_str().unwrap().to_owned();
    let (server, diary) = upstream(ServerSettings {
        start: StartMode::Eager,
        restart: RestartSettings {
            first: Duration::from_millis(1),
            max_delay: Duration::from_millis(1),
        },
        ..settings(command(&path, Vec::new()))
    });
    server.keep_open();
    until("it has failed", || {
        server.status().health == UpstreamHealth::Failed
    })
    .await;
    let began = Instant::now();
    for _ in 0..2 {
        let error = call(&server, &key("a"), "t").await.unwrap_err();
        assert!(matches!(error, UpstreamError::Permanent { .. }), "{error}");
        assert_eq!(
            error.to_string(),
            format!(
                "server `s` cannot be used: program `{path}` not found; install it or give its full path"
            )
        );
        let retry_after = error.retry_after().unwrap();
        assert!((Duration::from_secs(58)..=Duration::from_secs(60)).contains(&retry_after));
    }
    assert!(began.elapsed() < Duration::from_secs(1));
    // No loop: it started once and failed once.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(diary.lines(), ["starting", "failed"]);

    let script = format!(
        "#!/bin/sh\nexec python3 -c '{}' x\n",
        include_str!("counter.py")
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    server.retry();
    until("it is up", || server.status().health == UpstreamHealth::Up).await;
    call(&server, &key("a"), "t").await.unwrap();
    server.close().await;
}

#[tokio::test]
async fn a_program_that_crashes_is_tried_again_later_and_its_last_words_are_not_for_agents() {
    let (server, _) = upstream(shared(counter("crash", None)));
    let error = call(&server, &LinkKey::Main, "t").await.unwrap_err();
    let UpstreamError::Down { source, .. } = &error else {
        panic!("{error}");
    };
    assert!(source.to_string().contains("no database"), "{source}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
    let status = server.status();
    assert_eq!((status.health, status.links), (UpstreamHealth::Down, 0));
    assert!(status.last_error.unwrap().text.contains("no database"));
}

#[tokio::test]
async fn while_it_waits_nobody_starts_it() {
    let (server, diary) = upstream(shared(counter("crash", None)));
    for _ in 0..3 {
        let began = Instant::now();
        let error = call(&server, &LinkKey::Main, "t").await.unwrap_err();
        let retry_after = error.retry_after().unwrap();
        assert!(matches!(error, UpstreamError::Down { .. }), "{error}");
        assert!(retry_after <= Duration::from_secs(20));
        // With luck the wait is over already; then it is started.
        if retry_after > Duration::from_millis(500) {
            let again = call(&server, &LinkKey::Main, "t").await.unwrap_err();
            assert!(again.retry_after().unwrap() <= retry_after);
            assert!(began.elapsed() < Duration::from_secs(10));
        }
    }
    assert_eq!(diary.links(), [""; 0]);
}

#[tokio::test]
async fn an_eager_server_that_is_not_there_yet_is_reached_when_it_is() {
    let allowed_hosts = TestHttpServer::open().await;
    let endpoint = allowed_hosts.endpoint();
    let refused = 503;
    allowed_hosts
        .behavior
        .refuses
        .store(refused, std::sync::atomic::Ordering::Release);
    let (server, _) = upstream(ServerSettings {
        start: StartMode::Eager,
        restart: RestartSettings {
            first: Duration::from_millis(20),
            max_delay: Duration::from_millis(50),
        },
        ..shared(endpoint)
    });
    server.keep_open();
    until("it is tried", || {
        allowed_hosts.behavior.count("initialize") >= 3
    })
    .await;
    assert_eq!(server.status().health, UpstreamHealth::Down);
    allowed_hosts
        .behavior
        .refuses
        .store(0, std::sync::atomic::Ordering::Release);
    until("it is up", || server.status().health == UpstreamHealth::Up).await;
    call(&server, &LinkKey::Main, "t").await.unwrap();
}

#[tokio::test]
async fn a_server_that_wants_other_credentials_is_a_permanent_failure() {
    let allowed_hosts = TestHttpServer::open().await;
    allowed_hosts
        .behavior
        .refuses
        .store(401, std::sync::atomic::Ordering::Release);
    let (server, _) = upstream(shared(allowed_hosts.endpoint()));
    let error = call(&server, &LinkKey::Main, "t").await.unwrap_err();
    assert!(matches!(error, UpstreamError::Permanent { .. }), "{error}");
    assert_eq!(server.status().health, UpstreamHealth::Failed);
}
