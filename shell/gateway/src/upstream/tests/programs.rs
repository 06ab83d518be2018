//! Programs are started, started again, and never left behind.

use std::fs;
use std::time::Duration;

use toolwarden_settings::{RestartSettings, ServerSettings, StartMode};

use super::counter::{counter, is_alive, is_gone, kill, log_in, parse_answer};
use super::observer::{agent, call, until, upstream};
use super::settings::{key, settings, shared};
use crate::upstream::{LinkKey, UpstreamError, UpstreamHealth};

/// Facts, items 12 and 14: a program that ended is started again for the next call, and a dead link is
/// never used.
#[tokio::test]
async fn a_program_that_was_killed_is_started_again_for_the_next_call() {
    let (server, diary) = upstream(shared(counter("", None)));
    let mut pids = Vec::new();
    for round in 1..=3 {
        let (count, pid) = parse_answer(&call(&server, &LinkKey::Main, "t").await.unwrap());
        assert_eq!(count, 1);
        pids.push(pid);
        kill(pid);
        until("the end is noticed", || server.status().links == 0).await;
        assert_eq!(server.status().health, UpstreamHealth::Down);
        assert_eq!(diary.links().len(), 2 * round);
    }
    assert_eq!(server.status().restarts, 2);
    until("all are reaped", || pids.iter().copied().all(is_gone)).await;
    server.close().await;
}

/// Whether a killed program is noticed before or after the request is sent: the answer is true.
#[tokio::test]
async fn a_call_right_after_the_end_is_answered_or_lost_and_the_next_answered() {
    let (server, _) = upstream(shared(counter("", None)));
    for _ in 0..5 {
        let (_, pid) = parse_answer(&call(&server, &LinkKey::Main, "t").await.unwrap());
        kill(pid);
        match call(&server, &LinkKey::Main, "t").await {
            Ok(answer) => assert_ne!(parse_answer(&answer).1, pid),
            Err(error) => assert!(matches!(error, UpstreamError::Lost { .. }), "{error}"),
        }
    }
    call(&server, &LinkKey::Main, "t").await.unwrap();
    server.close().await;
}

#[tokio::test]
async fn a_call_under_which_the_program_ends_is_not_made_twice() {
    let directory = tempfile::tempdir().unwrap();
    let log = log_in(&directory);
    let (server, _) = upstream(shared(counter("", Some(&log))));
    let error = call(&server, &LinkKey::Main, "die").await.unwrap_err();
    assert!(matches!(error, UpstreamError::Lost { .. }), "{error}");
    assert_eq!(error.retry_after(), None);
    assert_eq!(
        error.to_string(),
        "server `s` was lost during the request, which may have been carried out: it exited (exit status: 3) before answering `tools/call`"
    );
    call(&server, &LinkKey::Main, "t").await.unwrap();
    assert_eq!(fs::read_to_string(log).unwrap(), "die\nt\n");
    server.close().await;
}

#[tokio::test]
async fn an_eager_server_is_started_at_once_and_again_by_itself() {
    let (server, _) = upstream(ServerSettings {
        start: StartMode::Eager,
        restart: RestartSettings {
            first: Duration::from_millis(100),
            max_delay: Duration::from_millis(100),
        },
        ..settings(counter("", None))
    });
    server.keep_open();
    server.keep_open();
    until("it is up", || server.status().health == UpstreamHealth::Up).await;
    let first = server.status().pids;
    assert_eq!(first.len(), 1);
    kill(first[0]);
    until("it is up again", || {
        let pids = server.status().pids;
        pids.len() == 1 && pids != first
    })
    .await;
    assert_eq!(server.status().restarts, 1);
    server.close().await;
    assert_eq!(server.status().health, UpstreamHealth::Closed);
    let refused = server.link(&LinkKey::Main, &agent()).await;
    assert!(matches!(refused, Err(UpstreamError::Closed { .. })));
}

/// Facts, item 11: children never pile up.
#[tokio::test]
async fn fifty_conversations_leave_no_program_behind() {
    let (server, _) = upstream(settings(counter("", None)));
    let mut pids = Vec::new();
    for number in 0..50 {
        let key = key(&number.to_string());
        let (count, pid) = parse_answer(&call(&server, &key, "t").await.unwrap());
        assert_eq!(count, 1);
        pids.push(pid);
        server.close_conversation_link(&key);
    }
    pids.extend(server.status().pids);
    assert_eq!(pids.len(), 51);
    server.close().await;
    let left: Vec<u32> = pids.into_iter().filter(|pid| !is_gone(*pid)).collect();
    assert_eq!(left, [0; 0]);
}

#[tokio::test]
async fn dropping_the_server_ends_its_programs() {
    let (server, _) = upstream(settings(counter("", None)));
    server.keep_open();
    let mut pids = Vec::new();
    for name in ["a", "b"] {
        pids.push(parse_answer(&call(&server, &key(name), "t").await.unwrap()).1);
    }
    pids.extend(server.status().pids);
    drop(server);
    until("all have ended", || !pids.iter().copied().any(is_alive)).await;
}
