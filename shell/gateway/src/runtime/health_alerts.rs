//! Alerts when a server goes down, and when it recovers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use toolwarden_model::Severity;
use toolwarden_notify::{Notice, NoticeKind, Notifier};

use crate::gateway::Gateway;
use crate::upstream::{Upstream, UpstreamHealth, UpstreamStatus};

use super::background::upgrade;

/// The minimum time between alerts about a server that goes down repeatedly.
const MIN_NOTICE_INTERVAL: Duration = Duration::from_secs(600);

pub(super) fn send_health_alerts(gateway: &Gateway, notifier: Notifier) {
    let mut news = gateway.subscribe_health();
    let shared = Arc::downgrade(&gateway.shared);
    tokio::spawn(async move {
        let mut told = HealthNotices::default();
        let mut look = |upstream: &Upstream| {
            let notice = told.notice(upstream.name(), &upstream.status(), Instant::now());
            if let Some(notice) = notice {
                // A notice that does not fit into the queue is counted.
                let _queued = notifier.send(notice);
            }
        };
        loop {
            // At first, and after missed events: a server may have failed before the subscription began.
            let Some(gateway) = upgrade(&shared) else {
                return;
            };
            for catalog in gateway.server_catalogs().iter() {
                look(&catalog.upstream);
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

/// What was reported last.
#[derive(Default)]
struct HealthNotices {
    /// When the last alert about each server that went down was sent.
    last_down_notice: BTreeMap<String, Instant>,
    /// Whether each server was last reported as down.
    reported_down: BTreeMap<String, bool>,
}

impl HealthNotices {
    fn notice(&mut self, server: &str, status: &UpstreamStatus, now: Instant) -> Option<Notice> {
        let is_gone = match status.health {
            UpstreamHealth::Down | UpstreamHealth::Failed => true,
            UpstreamHealth::Up => false,
            // None of these means that the server recovered.
            UpstreamHealth::Idle
            | UpstreamHealth::Starting
            | UpstreamHealth::Degraded
            | UpstreamHealth::Closed => return None,
        };
        let believed = self.reported_down.get(server).copied().unwrap_or_default();
        let is_quiet = |at: &Instant| now.saturating_duration_since(*at) < MIN_NOTICE_INTERVAL;
        if is_gone == believed || is_gone && self.last_down_notice.get(server).is_some_and(is_quiet)
        {
            return None;
        }
        self.reported_down.insert(server.to_owned(), is_gone);
        if is_gone {
            self.last_down_notice.insert(server.to_owned(), now);
        }
        Some(health_notice(server, status))
    }
}

fn health_notice(server: &str, status: &UpstreamStatus) -> Notice {
    let (severity, title) = match status.health {
        UpstreamHealth::Failed => (
            Severity::Breaking,
            format!("server {server} cannot be used until an operator fixes the cause"),
        ),
        UpstreamHealth::Down => (Severity::Warning, format!("server {server} is down")),
        _ => (Severity::Info, format!("server {server} is back")),
    };
    let error = status.last_error.as_ref().map(|it| it.text.as_str());
    let text = match status.health {
        UpstreamHealth::Up => "It answers again.",
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

/// Includes the error only for a server that is down; once it has recovered, the error is history.
fn details(status: &UpstreamStatus) -> serde_json::Value {
    let error = status.last_error.as_ref().map(|it| it.text.as_str());
    let (health, restarts) = (status.health.as_str(), status.restarts);
    match status.health {
        UpstreamHealth::Up => {
            json!({"health": health, "restarts": restarts, "previous_error": error})
        }
        _ => json!({"health": health, "restarts": restarts, "last_error": error}),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::upstream::{BreakerStatus, LastUpstreamError};

    fn status(health: UpstreamHealth) -> UpstreamStatus {
        UpstreamStatus {
            health,
            since: Timestamp::UNIX_EPOCH,
            links: 0,
            in_flight: 0,
            restarts: 0,
            breaker: BreakerStatus::Closed,
            last_error: Some(LastUpstreamError {
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
        let down = health_notice("shop", &status(UpstreamHealth::Down));
        assert_eq!(down.details["last_error"], "it ended");
        let back = health_notice("shop", &status(UpstreamHealth::Up));
        assert_eq!(
            back.details,
            json!({"health": "up", "restarts": 0, "previous_error": "it ended"})
        );
        assert!(!back.text.contains("it ended"), "{}", back.text);
    }

    #[test]
    fn people_are_told_once_and_left_alone_about_what_comes_and_goes() {
        let start = Instant::now();
        let mut told = HealthNotices::default();
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
        assert_eq!(at(UpstreamHealth::Starting, 0), None);
        assert_eq!(at(UpstreamHealth::Up, 0), None);
        assert_eq!(at(UpstreamHealth::Down, 1), Some(down.clone()));
        assert_eq!(at(UpstreamHealth::Down, 2), None);
        assert_eq!(at(UpstreamHealth::Degraded, 3), None);
        assert_eq!(at(UpstreamHealth::Up, 4), Some(back));
        assert_eq!(
            at(UpstreamHealth::Down, 5),
            None,
            "too soon to be reported again"
        );
        assert_eq!(
            at(UpstreamHealth::Up, 6),
            None,
            "it was not reported as down"
        );
        assert_eq!(at(UpstreamHealth::Down, 602), Some(down));
    }
}
