//! What keeps going while a gateway runs.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::json;
use tokio::sync::broadcast;
use toolwarden_drift::ChangeType;
use toolwarden_mcp::orphans;
use toolwarden_warden::inline::RaisedNotice;
use toolwarden_warden::notify::{Notice, NoticeKind, Notifier};

use super::{health, misuse, store_quota};
use crate::catalogue::Shelf;
use crate::gateway::{Gateway, Shared};

/// How often conversations are looked through.
const TIDY_EVERY: Duration = Duration::from_secs(5);
/// How often processes are waited for that servers left behind.
const REAP_EVERY: Duration = Duration::from_secs(1);

/// Starts what keeps going; it ends with the gateway.
pub(super) fn start(gateway: &Gateway, notifier: &Notifier) {
    tidy(gateway);
    reap_orphans(gateway);
    follow_approvals(gateway);
    tell_alerts(gateway, notifier.clone());
    health::tell(gateway, notifier.clone());
    store_quota::watch(gateway, notifier.clone());
    misuse::send_alerts(gateway, notifier.clone());
}

fn tidy(gateway: &Gateway) {
    let shared = Arc::downgrade(&gateway.shared);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(TIDY_EVERY).await;
            let Some(gateway) = upgrade(&shared) else {
                return;
            };
            gateway.expire_conversations();
            gateway.guard().record_denials();
        }
    });
}

/// Waits for processes that servers left behind, where this process adopts them.
fn reap_orphans(gateway: &Gateway) {
    if !orphans::is_adopting() {
        return;
    }
    let shared = Arc::downgrade(&gateway.shared);
    tokio::spawn(async move {
        while shared.strong_count() > 0 {
            tokio::time::sleep(REAP_EVERY).await;
            // One that panicked is tried again.
            let _reaped = tokio::task::spawn_blocking(orphans::reap).await;
        }
    });
}

/// Looks at a server again and again, a little off the beat so that not all are asked at once.
pub(super) fn look_regularly(gateway: &Gateway, shelf: &Arc<Shelf>) {
    let shared = Arc::downgrade(&gateway.shared);
    let shelf = Arc::downgrade(shelf);
    tokio::spawn(async move {
        loop {
            let Some(wait) = shelf.upgrade().map(|shelf| shelf.next_look()) else {
                return;
            };
            tokio::time::sleep(off_beat(wait)).await;
            let (Some(gateway), Some(shelf)) = (upgrade(&shared), shelf.upgrade()) else {
                return;
            };
            // A server that nobody needs at present is not started to be looked at.
            if shelf.upstream.status().links > 0 {
                // What goes wrong shows in the health of the server.
                drop(gateway.look_at(&shelf, Some(Duration::ZERO)).await);
            }
        }
    });
}

/// Between nine and eleven tenths of a time.
fn off_beat(wait: Duration) -> Duration {
    let drawn = getrandom::u32().unwrap_or(u32::MAX / 2);
    let share = f64::from(drawn) / f64::from(u32::MAX);
    wait.mul_f64(0.9 + 0.2 * share)
        .max(Duration::from_millis(10))
}

/// Looks again where somebody approved something.
fn follow_approvals(gateway: &Gateway) {
    let shared = Arc::downgrade(&gateway.shared);
    let mut revisions = gateway.watch().revisions();
    tokio::spawn(async move {
        while revisions.changed().await.is_ok() {
            let Some(gateway) = upgrade(&shared) else {
                return;
            };
            for shelf in gateway.shelves().iter() {
                shelf.recheck();
                if shelf.upstream.status().links > 0 {
                    gateway.look_soon(Arc::clone(shelf));
                }
            }
        }
    });
}

fn tell_alerts(gateway: &Gateway, notifier: Notifier) {
    let mut alerts = gateway.watch().subscribe_alerts();
    tokio::spawn(async move {
        loop {
            match alerts.recv().await {
                Ok(raised) => drop(notifier.send(notice_of_alert(&raised))),
                // They are in the store, and shown there.
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            }
        }
    });
}

fn notice_of_alert(raised: &RaisedNotice) -> Notice {
    let RaisedNotice { server, tool, .. } = raised;
    let outcome = raised.drift.get("outcome");
    let is_finding = outcome == Some(&json!("text"));
    let is_of_definition = outcome == Some(&json!("finding"));
    let kind = match raised.change_type {
        ChangeType::Response if is_finding => NoticeKind::Finding,
        ChangeType::Response => NoticeKind::ResultDrift,
        _ if is_of_definition => NoticeKind::Finding,
        _ => NoticeKind::Drift,
    };
    let title = match kind {
        NoticeKind::Finding if is_of_definition => {
            format!("{tool} of server {server} looks suspicious beside other tools")
        }
        NoticeKind::Finding => format!("a result of {tool} of server {server} is suspicious"),
        NoticeKind::ResultDrift => format!("results of {tool} of server {server} drifted"),
        _ => format!("{tool} of server {server} drifted"),
    };
    // A finding has the same id whenever it is found again, which is raised once an hour at most.
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

pub(super) fn upgrade(shared: &Weak<Shared>) -> Option<Gateway> {
    shared.upgrade().map(|shared| Gateway { shared })
}
