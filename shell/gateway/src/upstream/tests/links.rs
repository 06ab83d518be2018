//! The number and lifetime of links.

use std::time::Duration;

use toolwarden_mcp::Era;
use toolwarden_settings::{ServerSettings, StartMode};

use super::counter::{counter, is_alive, parse_answer};
use super::observer::{agent, call, until, upstream};
use super::settings::{key, number, settings, shared};
use crate::upstream::{BusyReason, LinkKey, UpstreamError, UpstreamHealth, gateway_client_info};

#[tokio::test]
async fn whoever_wants_the_same_link_shares_one_attempt() {
    let (server, _) = upstream(shared(counter("", None)));
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..8 {
        let server = server.clone();
        calls.spawn(async move {
            let key = key(&number.to_string());
            parse_answer(&call(&server, &key, "t").await.unwrap())
        });
    }
    // A request that is cancelled takes nothing from the others.
    let impatient =
        tokio::time::timeout(Duration::from_millis(1), call(&server, &LinkKey::Main, "t"));
    impatient.await.unwrap_err();
    let mut answers = calls.join_all().await;
    answers.sort_unstable();
    let pid = server.status().pids[0];
    let expected: Vec<(u64, u32)> = (1..=8).map(|count| (count, pid)).collect();
    assert_eq!(answers, expected);
    server.close().await;
}

#[tokio::test]
async fn programs_of_conversations_are_apart_and_end_with_them() {
    let (server, diary) = upstream(settings(counter("", None)));
    let mut seen = Vec::new();
    for name in ["a", "a", "b"] {
        seen.push(parse_answer(&call(&server, &key(name), "t").await.unwrap()));
    }
    let counts: Vec<u64> = seen.iter().map(|it| it.0).collect();
    assert_eq!(counts, [1, 2, 1]);
    let (a, b) = (seen[0].1, seen[2].1);
    assert_ne!(a, b);
    server.close_conversation_link(&key("a"));
    until("its program has ended", || !is_alive(a)).await;
    assert!(is_alive(b));
    assert_eq!(
        diary.links(),
        ["connected main", "connected a", "connected b"]
    );
    server.close().await;
}

#[tokio::test]
async fn the_agent_s_face_is_shown_on_its_own_link_only() {
    let (server, _) = upstream(settings(counter("", None)));
    let said =
        |open_link: &crate::upstream::OpenLink| open_link.server().instructions.clone().unwrap();
    let own = server.link(&key("a"), &agent()).await.unwrap();
    let main = server
        .link(&LinkKey::Main, &server.client_info())
        .await
        .unwrap();
    assert_eq!(said(&own), r#"{"roots": {}}"#);
    assert_eq!(
        said(&main),
        r#"{"roots": {"listChanged": true}, "sampling": {}, "elicitation": {}}"#
    );
    server.close().await;
    let (server, _) = upstream(shared(counter("", None)));
    server.set_client_info(&agent(), Era::Handshake);
    let main = server
        .link(&key("a"), &gateway_client_info())
        .await
        .unwrap();
    assert_eq!(said(&main), r#"{"roots": {}}"#);
    server.close().await;
}

#[tokio::test]
async fn the_longest_idle_link_makes_room_and_one_in_use_does_not() {
    let (server, diary) = upstream(ServerSettings {
        max_links: number(3),
        ..settings(counter("", None))
    });
    let mut pids = Vec::new();
    for name in ["a", "b", "a", "c"] {
        pids.push(parse_answer(&call(&server, &key(name), "t").await.unwrap()).1);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(
        diary.links(),
        [
            "connected main",
            "connected a",
            "connected b",
            "lost b",
            "connected c"
        ]
    );
    assert!(!is_alive(pids[1]));
    let mut busy = tokio::task::JoinSet::new();
    for name in ["a", "c"] {
        let server = server.clone();
        busy.spawn(async move { call(&server, &key(name), "work").await.unwrap() });
    }
    until("both are at work", || server.status().in_flight == 2).await;
    // The main link is closed last.
    call(&server, &key("d"), "t").await.unwrap();
    let open_link = server.clone();
    busy.spawn(async move { call(&open_link, &key("d"), "work").await.unwrap() });
    until("all are at work", || server.status().in_flight == 3).await;
    let error = call(&server, &key("e"), "t").await.unwrap_err();
    let what = BusyReason::Links { limit: 3 };
    assert!(
        matches!(&error, UpstreamError::Busy { what: it, .. } if *it == what),
        "{error}"
    );
    busy.join_all().await;
    call(&server, &key("e"), "t").await.unwrap();
    assert!(server.status().links <= 3);
    server.close().await;
}

#[tokio::test]
async fn idle_links_are_closed_but_not_the_main_link_of_an_eager_server() {
    for (start, left) in [(StartMode::Lazy, 0), (StartMode::Eager, 1)] {
        let mut settings = settings(counter("", None));
        settings.start = start;
        settings.timeouts.idle = Duration::from_millis(300);
        let (server, diary) = upstream(settings);
        let (_, pid) = parse_answer(&call(&server, &key("a"), "t").await.unwrap());
        // A request in flight counts as use, however long it takes.
        let (_, same) = parse_answer(&call(&server, &key("a"), "rest").await.unwrap());
        assert_eq!(pid, same);
        until("idle links are closed", || server.status().links == left).await;
        until("the program has ended", || !is_alive(pid)).await;
        assert!(diary.links().contains(&"lost a".to_owned()));
        let health = server.status().health;
        let expected = [UpstreamHealth::Idle, UpstreamHealth::Up][left];
        assert_eq!(health, expected);
        let (count, again) = parse_answer(&call(&server, &key("a"), "t").await.unwrap());
        assert_eq!(count, 1);
        assert_ne!(pid, again);
        assert_eq!(server.status().restarts, 0);
        server.close().await;
    }
}

#[tokio::test]
async fn a_conversation_that_ends_while_its_link_is_opened_leaves_nothing() {
    let (server, _) = upstream(settings(counter("", None)));
    server
        .link(&LinkKey::Main, &server.client_info())
        .await
        .unwrap();
    let connect_request = tokio::spawn({
        let server = server.clone();
        async move { server.link(&key("a"), &agent()).await.map(drop) }
    });
    tokio::time::sleep(Duration::from_millis(5)).await;
    server.close_conversation_link(&key("a"));
    let error = connect_request.await.unwrap().unwrap_err();
    assert!(matches!(error, UpstreamError::Closed { .. }), "{error}");
    assert_eq!(server.status().links, 1);
    server.close().await;
}
