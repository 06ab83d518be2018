//! Sends alerts about misuse.

use jiff::Timestamp;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use toolwarden_live_guard::{MisuseAlert, MisuseRule};
use toolwarden_model::Severity;
use toolwarden_notify::{Notice, NoticeKind, Notifier};

use crate::gateway::Gateway;

/// Sends alerts about misuse until the gateway ends.
pub(super) fn send_alerts(gateway: &Gateway, notifier: Notifier) {
    let mut alerts = gateway.guard().subscribe_misuse();
    tokio::spawn(async move {
        loop {
            match alerts.recv().await {
                // A notice that does not fit into the queue is counted.
                Ok(alert) => drop(notifier.send(misuse_notice(&alert))),
                // The records behind missed alerts are in the audit log.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    });
}

fn misuse_notice(alert: &MisuseAlert) -> Notice {
    let MisuseAlert {
        principal,
        rule,
        summary,
        record,
        at_ms,
    } = alert;
    let severity = match rule {
        MisuseRule::ForeignSessions | MisuseRule::Escalations => Severity::Breaking,
        MisuseRule::Denials | MisuseRule::NewGroups => Severity::Warning,
    };
    Notice {
        id: format!("misuse/{}/{record}", rule.as_str()),
        kind: NoticeKind::Misuse,
        server: "gateway".to_owned(),
        tool: None,
        severity,
        title: format!(
            "principal {principal} may misuse the gateway ({})",
            rule.as_str()
        ),
        text: format!(
            "principal {principal} {summary}; `toolwarden audit list --principal …` has the records"
        ),
        at: Timestamp::from_millisecond(*at_ms).unwrap_or(Timestamp::UNIX_EPOCH),
        details: json!({"principal": principal, "rule": rule.as_str(), "record": record}),
        link: None,
    }
}
