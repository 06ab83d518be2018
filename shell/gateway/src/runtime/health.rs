//! Tells people of servers that are gone, and of those that are back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use toolwarden_drift::Severity;
use toolwarden_warden::notify::{Notice, NoticeKind, Notifier};

use crate::gateway::Gateway;
use crate::upstream::{Health, Upstream, UpstreamStatus};

use super::background::upgrade;

/// How long people are left alone about a server that comes and goes.
const QUIET: Duration = Duration::from_secs(600);

pub(super) fn tell(gateway: &Gateway, notifier: Notifier) {
    let mut news = gateway.subscribe_health();
    let shared = Arc::downgrade(&gateway.shared);
    tokio::spawn(async move {
        let mut told = Told::default();
        let mut look = |upstream: &Upstream| {
            let notice = told.notice(upstream.name(), &upstream.status(), Instant::now());
            if let Some(notice) = notice {
                // One that finds no room is counted.
                let _queued = notifier.send(notice);
            }
        };
        loop {
            // At first, and where news were missed: a server may have failed before anyone listened.
            let Some(gateway) = upgrade(&shared) else {
                return;
            };
            for shelf in gateway.shelves().iter() {
                look(&shelf.upstream);
            }
            drop(gateway);
            loop {
                match news.recv().await {
                    Ok(upstream) => look(&upstream),
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return,
                }
            }
        }
    });
}

/// What people know.
#[derive(Default)]
struct Told {
    /// When they were last told that a server is gone.
    gone: BTreeMap<String, Instant>,
    /// Whether they believe that it still is.
    believed: BTreeMap<String, bool>,
}

impl Told {
    fn notice(&mut self, server: &str, status: &UpstreamStatus, now: Instant) -> Option<Notice> {
        let is_gone = match status.health {
            Health::Down | Health::Failed => true,
            Health::Up => false,
            // None of these says that it is back.
            Health::Idle | Health::Starting | Health::Degraded | Health::Closed => return None,
        };
        let believed = self.believed.get(server).copied().unwrap_or_default();
        let is_quiet = |at: &Instant| now.saturating_duration_since(*at) < QUIET;
        if is_gone == believed || is_gone && self.gone.get(server).is_some_and(is_quiet) {
            return None;
        }
        self.believed.insert(server.to_owned(), is_gone);
        if is_gone {
            self.gone.insert(server.to_owned(), now);
        }
        Some(notice_of(server, status))
    }
}

fn notice_of(server: &str, status: &UpstreamStatus) -> Notice {
    let (severity, title) = match status.health {
        Health::Failed => (
            Severity::High,
            format!("server {server} cannot be used until somebody changes something"),
        ),
        Health::Down => (Severity::Medium, format!("server {server} is down")),
        _ => (Severity::Low, format!("server {server} is back")),
    };
    let error = status.last_error.as_ref().map(|it| it.text.as_str());
    let text = match status.health {
        Health::Up => "It answers again.",
        _ => error.unwrap_or("It does not answer."),
    };
    Notice {
        id: format!("upstream/{server}/{}", status.since.as_millisecond()),
        kind: NoticeKind::Upstream,
        server: server.to_owned(),
        tool: None,
        severity,
        title,
        text: text.to_owned(),
        at: status.since,
        details: details(status),
        link: None,
    }
}

/// An error belongs to a server that is down; of one that is back it is history.
fn details(status: &UpstreamStatus) -> serde_json::Value {
    let error = status.last_error.as_ref().map(|it| it.text.as_str());
    let (health, restarts) = (status.health.as_str(), status.restarts);
    match status.health {
        Health::Up => json!({"health": health, "restarts": restarts, "previous_error": error}),
        _ => json!({"health": health, "restarts": restarts, "last_error": error}),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::upstream::{BreakerStatus, LastError};

    fn status(health: Health) -> UpstreamStatus {
        UpstreamStatus {
            health,
            since: Timestamp::UNIX_EPOCH,
            links: 0,
            in_flight: 0,
            restarts: 0,
            breaker: BreakerStatus::Closed,
            last_error: Some(LastError {
                at: Timestamp::UNIX_EPOCH,
                text: "it ended".to_owned(),
            }),
            era: None,
            protocol_version: None,
            pids: Vec::new(),
            latency: None,
        }
    }

    #[test]
    fn a_server_that_is_back_has_no_error() {
        let down = notice_of("shop", &status(Health::Down));
        assert_eq!(down.details["last_error"], "it ended");
        let back = notice_of("shop", &status(Health::Up));
        assert_eq!(
            back.details,
            json!({"health": "up", "restarts": 0, "previous_error": "it ended"})
        );
        assert!(!back.text.contains("it ended"), "{}", back.text);
    }

    #[test]
    fn people_are_told_once_and_left_alone_about_what_comes_and_goes() {
        let start = Instant::now();
        let mut told = Told::default();
        let mut at = |health, seconds| {
            let now = start + Duration::from_secs(seconds);
            let notice = told.notice("shop", &status(health), now);
            notice.map(|it| (it.title, it.text))
        };
        let down = ("server shop is down".to_owned(), "it ended".to_owned());
        let back = (
            "server shop is back".to_owned(),
            "It answers again.".to_owned(),
        );
        assert_eq!(at(Health::Starting, 0), None);
        assert_eq!(at(Health::Up, 0), None);
        assert_eq!(at(Health::Down, 1), Some(down.clone()));
        assert_eq!(at(Health::Down, 2), None);
        assert_eq!(at(Health::Degraded, 3), None);
        assert_eq!(at(Health::Up, 4), Some(back));
        assert_eq!(at(Health::Down, 5), None, "too soon to be told again");
        assert_eq!(at(Health::Up, 6), None, "nobody knows that it was gone");
        assert_eq!(at(Health::Down, 602), Some(down));
    }
}
