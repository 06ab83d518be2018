//! Background tasks of a running gateway.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::json;
use tokio::sync::broadcast;
use toolwarden_drift::ToolwatchChangeType;
use toolwarden_mcp::adopted_processes;
use toolwarden_notify::{Notice, NoticeKind, Notifier};
use toolwarden_watch::inline::WatchAlert;

use super::{health_alerts, misuse_alerts, store_quota_alerts};
use crate::catalog::ServerCatalog;
use crate::gateway::{Gateway, GatewayInner};

/// The interval of the check for idle conversations.
const EXPIRE_INTERVAL: Duration = Duration::from_secs(5);
/// The interval at which the gateway reaps processes that servers left behind.
const REAP_INTERVAL: Duration = Duration::from_secs(1);

/// Starts the background tasks; they end with the gateway.
pub(super) fn start(gateway: &Gateway, notifier: &Notifier) {
    spawn_expiry(gateway);
    reap_orphans(gateway);
    refresh_on_approval(gateway);
    send_drift_alerts(gateway, notifier.clone());
    health_alerts::send_health_alerts(gateway, notifier.clone());
    store_quota_alerts::send_quota_alerts(gateway, notifier.clone());
    misuse_alerts::send_alerts(gateway, notifier.clone());
}

fn spawn_expiry(gateway: &Gateway) {
    let shared = Arc::downgrade(&gateway.shared);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(EXPIRE_INTERVAL).await;
            let Some(gateway) = upgrade(&shared) else {
                return;
            };
            gateway.expire_conversations();
            gateway.guard().record_denials();
        }
    });
}

/// Reaps processes that servers left behind, if this process adopts them.
fn reap_orphans(gateway: &Gateway) {
    if !adopted_processes::is_adopting() {
        return;
    }
    let shared = Arc::downgrade(&gateway.shared);
    tokio::spawn(async move {
        while shared.strong_count() > 0 {
            tokio::time::sleep(REAP_INTERVAL).await;
            // If it panicked, the next round tries again.
            let _reaped = tokio::task::spawn_blocking(adopted_processes::reap).await;
        }
    });
}

/// Fetches the tools of a server regularly, with jitter so that not all servers are queried at once.
pub(super) fn spawn_refresh_loop(gateway: &Gateway, catalog: &Arc<ServerCatalog>) {
    let shared = Arc::downgrade(&gateway.shared);
    let catalog = Arc::downgrade(catalog);
    tokio::spawn(async move {
        loop {
            let Some(wait) = catalog.upgrade().map(|catalog| catalog.time_to_refresh()) else {
                return;
            };
            tokio::time::sleep(with_jitter(wait)).await;
            let (Some(gateway), Some(catalog)) = (upgrade(&shared), catalog.upgrade()) else {
                return;
            };
            // An idle server is not started only to fetch its tools.
            if catalog.upstream.status().links > 0 {
                // An error shows in the health of the server.
                drop(gateway.refresh_tools(&catalog, Some(Duration::ZERO)).await);
            }
        }
    });
}

/// A duration with ten percent jitter either way.
fn with_jitter(wait: Duration) -> Duration {
    let drawn = getrandom::u32().unwrap_or(u32::MAX / 2);
    let share = f64::from(drawn) / f64::from(u32::MAX);
    wait.mul_f64(0.9 + 0.2 * share)
        .max(Duration::from_millis(10))
}

/// Refreshes servers after an approval.
fn refresh_on_approval(gateway: &Gateway) {
    let shared = Arc::downgrade(&gateway.shared);
    let mut revisions = gateway.watch().revisions();
    tokio::spawn(async move {
        while revisions.changed().await.is_ok() {
            let Some(gateway) = upgrade(&shared) else {
                return;
            };
            for catalog in gateway.server_catalogs().iter() {
                catalog.recheck();
                if catalog.upstream.status().links > 0 {
                    gateway.refresh_in_background(Arc::clone(catalog));
                }
            }
        }
    });
}

fn send_drift_alerts(gateway: &Gateway, notifier: Notifier) {
    let mut alerts = gateway.watch().subscribe_alerts();
    tokio::spawn(async move {
        loop {
            match alerts.recv().await {
                Ok(raised) => drop(notifier.send(alert_notice(&raised))),
                // Missed alerts are in the store and shown from there.
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            }
        }
    });
}

fn alert_notice(raised: &WatchAlert) -> Notice {
    let WatchAlert { server, tool, .. } = raised;
    let outcome = raised.drift.get("outcome");
    let is_finding = outcome == Some(&json!("text"));
    let is_of_definition = outcome == Some(&json!("finding"));
    let kind = match raised.change_type {
        ToolwatchChangeType::Response if is_finding => NoticeKind::Finding,
        ToolwatchChangeType::Response => NoticeKind::ResultDrift,
        _ if is_of_definition => NoticeKind::Finding,
        _ => NoticeKind::Drift,
    };
    let title = match kind {
        NoticeKind::Finding if is_of_definition => {
            format!("{tool} of server {server} looks suspicious next to other tools")
        }
        NoticeKind::Finding => format!("a result of {tool} of server {server} is suspicious"),
        NoticeKind::ResultDrift => format!("results of {tool} of server {server} drifted"),
        _ => format!("{tool} of server {server} drifted"),
    };
    // A repeated finding has the same id; the hour in the id of the notice limits it to one notice per hour.
    let id = match kind {
        NoticeKind::Finding if !is_of_definition => {
            format!("{}/{}", raised.id, raised.at.as_second() / 3_600)
        }
        _ => raised.id.clone(),
    };
    Notice {
        id,
        kind,
        server: server.clone(),
        tool: Some(tool.clone()),
        severity: raised.severity,
        title,
        text: raised.summary.clone(),
        at: raised.at,
        details: raised.drift.clone(),
        link: None,
    }
}

pub(super) fn upgrade(shared: &Weak<GatewayInner>) -> Option<Gateway> {
    shared.upgrade().map(|shared| Gateway { shared })
}
