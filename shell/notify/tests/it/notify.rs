//! Delivery of notices to real servers on this machine.

mod formats;
mod mail;
mod restart;
mod retries;
mod webhook_receiver;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;
use toolwarden_live_guard::{Clock, ManualClock};
use toolwarden_model::Severity;
use toolwarden_notify::{
    Notice, NoticeKind, Notifier, NotifierOptions, NotifierStatus, RetryPolicy,
};
use toolwarden_settings::{AlertChannel, AlertTarget};
use toolwarden_store::{Delivery, DeliveryFilter};

const NOW: &str = "2026-11-16T10:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// Attempts follow each other fast, and the clock stands still.
fn options(targets: &[AlertTarget]) -> NotifierOptions {
    NotifierOptions {
        targets: targets.to_vec(),
        retry: RetryPolicy {
            timeout: Duration::from_secs(10),
            first: Duration::from_millis(1),
            multiplier: 1,
            jitter: || 1.0,
            ..RetryPolicy::default()
        },
        clock: Arc::new(Clock::Manual(ManualClock::at(now()))),
        ..NotifierOptions::default()
    }
}

fn target(name: &str, channel: AlertChannel) -> AlertTarget {
    AlertTarget {
        name: name.to_owned(),
        channel,
        min_severity: Severity::Info,
    }
}

fn webhook(name: &str, url: &str) -> AlertTarget {
    let url = url.to_owned();
    target(name, AlertChannel::Webhook { url, secret: None })
}

/// Names and texts of a malicious server.
fn notice(id: &str) -> Notice {
    Notice {
        id: id.to_owned(),
        kind: NoticeKind::Drift,
        server: "browser".to_owned(),
        tool: Some("cl*ck\u{202e}".to_owned()),
        severity: Severity::Breaking,
        title: "tool `click` <!channel> drifted".to_owned(),
        text: "Was: a & b\n# Now: [free](http://evil.example) <@all>\u{1b}".to_owned(),
        at: "2026-11-16T09:59:58.250Z".parse().unwrap(),
        details: json!({"changes": [{"pointer": "/description"}]}),
        link: Some("https://warden.example/alerts?id=1&x=(2)".to_owned()),
    }
}

/// Waits until every target has its notices, and none is pending.
async fn wait_until_idle(notifier: &Notifier) -> NotifierStatus {
    let begun = Instant::now();
    loop {
        let status = notifier.status().await.unwrap();
        let mut targets = status.targets.iter();
        if targets.all(|it| it.pending == 0 && it.delivered + it.failed > 0) {
            return status;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{status:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn deliveries(notifier: &Notifier) -> Vec<Delivery> {
    let all = DeliveryFilter::default();
    notifier.deliveries(all).await.unwrap()
}
