//! Alerts when the store is nearly full, before the gateway can no longer record anything.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use toolwarden_live_guard::audit::StoreUsage;
use toolwarden_model::Severity;
use toolwarden_notify::{Notice, NoticeKind, Notifier};

use crate::gateway::Gateway;

/// The interval of the check.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The level that was reported last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum QuotaLevel {
    Fine,
    NearlyFull,
    Full,
}

impl QuotaLevel {
    const fn of(usage: StoreUsage) -> Self {
        if usage.is_full() {
            Self::Full
        } else if usage.is_nearly_full() {
            Self::NearlyFull
        } else {
            Self::Fine
        }
    }
}

pub(super) fn send_quota_alerts(gateway: &Gateway, notifier: Notifier) {
    let shared = Arc::downgrade(&gateway.shared);
    tokio::spawn(async move {
        let mut told = QuotaLevel::Fine;
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let Some(shared) = shared.upgrade() else {
                return;
            };
            let gateway = Gateway { shared };
            let Some(usage) = gateway.guard().log().usage() else {
                return;
            };
            let level = QuotaLevel::of(usage);
            if level > told {
                // A notice that does not fit into the queue is counted.
                let _queued = notifier.send(notice(level, usage));
            }
            told = level;
        }
    });
}

fn notice(level: QuotaLevel, usage: StoreUsage) -> Notice {
    let at = Timestamp::now();
    let StoreUsage { used, quota } = usage;
    let (severity, title) = match level {
        QuotaLevel::Full => (Severity::Breaking, "the store is full; nothing is recorded"),
        QuotaLevel::NearlyFull | QuotaLevel::Fine => {
            (Severity::Warning, "the store is nearly full")
        }
    };
    Notice {
        id: format!("store-quota/{}", at.as_second()),
        kind: NoticeKind::Audit,
        server: String::new(),
        tool: None,
        severity,
        title: title.to_owned(),
        text: format!(
            "It uses {used} of its quota of {quota} bytes (`store_quota`). Remove old records with `toolwarden \
             audit prune`, or raise the quota."
        ),
        at,
        details: json!({"used": used, "quota": quota}),
        link: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_comes_before_the_end() {
        let level = |used| QuotaLevel::of(StoreUsage { used, quota: 100 });
        assert_eq!(level(89), QuotaLevel::Fine);
        assert_eq!(level(90), QuotaLevel::NearlyFull);
        assert_eq!(level(100), QuotaLevel::Full);
        let usage = StoreUsage {
            used: 90,
            quota: 100,
        };
        assert_eq!(
            notice(QuotaLevel::NearlyFull, usage).severity,
            Severity::Warning
        );
    }
}
