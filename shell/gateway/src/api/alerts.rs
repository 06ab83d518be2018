//! Alerts, and what became of telling people of them.

use serde_json::{Value, json};
use toolwarden_store::{AlertFilter, AlertStatus, Delivery, DeliveryFilter};
use toolwarden_warden::document;
use toolwarden_warden::notify::TargetStatus;

use super::answer::{Answer, time};
use super::asking::Asking;
use super::error::ApiError;
use super::page::page;
use super::route::Handled;

/// The most deliveries of one alert that are shown.
const MOST_DELIVERIES: u32 = 1_000;

/// `GET /alerts`
pub(super) async fn list(asking: Asking) -> Handled {
    let given = &asking.given;
    let texts = |name: &str| {
        let names = given.names(name).unwrap_or_default();
        names.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let words = [
        AlertStatus::Open,
        AlertStatus::Approved,
        AlertStatus::Closed,
    ];
    let status = given.text("status");
    let filter = AlertFilter {
        since: given.time("since"),
        severities: texts("severity"),
        tools: texts("tool"),
        servers: texts("server"),
        status: words.into_iter().find(|it| Some(it.as_str()) == status),
    };
    let mut alerts = asking.gateway().watch().alerts(filter).await?;
    // The newest first, so that a page does not move when alerts come.
    alerts.reverse();
    let count = alerts.len();
    let (alerts, next) = page(alerts, given, |alert| alert.id.clone())?;
    let alerts: Vec<Value> = alerts.iter().map(document::alert).collect();
    Ok(Answer::document(
        "alerts",
        json!({"alerts": alerts, "count": count, "next": next}),
    ))
}

/// `GET /alerts/{id}`
pub(super) async fn one(asking: Asking) -> Handled {
    let id = asking.given.needed("id")?.to_owned();
    match asking.gateway().watch().alert(id.clone()).await? {
        Some(alert) => {
            let alert = document::alert(&alert);
            Ok(Answer::document("alert", json!({"alert": alert})))
        }
        None => Err(unknown(&id)),
    }
}

/// `GET /alerts/{id}/deliveries`
pub(super) async fn deliveries(asking: Asking) -> Handled {
    let id = asking.given.needed("id")?.to_owned();
    let filter = DeliveryFilter {
        notice: Some(id.clone()),
        limit: Some(MOST_DELIVERIES),
        ..DeliveryFilter::default()
    };
    let deliveries = asking.api.notifier.deliveries(filter).await?;
    if deliveries.is_empty() && asking.gateway().watch().alert(id.clone()).await?.is_none() {
        return Err(unknown(&id));
    }
    let deliveries: Vec<Value> = deliveries.iter().map(delivery).collect();
    Ok(Answer::document(
        "deliveries",
        json!({"alert": id, "deliveries": deliveries}),
    ))
}

/// `GET /deliveries/status`
pub(super) async fn status(asking: Asking) -> Handled {
    let status = asking.api.notifier.status().await?;
    let targets: Vec<Value> = status.targets.iter().map(target).collect();
    Ok(Answer::document(
        "delivery-status",
        json!({
            "targets": targets,
            "dropped": status.dropped,
            "overflowed": status.overflowed,
            "repeated": status.repeated,
            "store_error": status.store_error,
        }),
    ))
}

fn unknown(id: &str) -> ApiError {
    ApiError::not_found(
        format!("there is no alert `{id}`"),
        "`GET /api/v1/alerts` lists the alerts.",
    )
}

fn delivery(delivery: &Delivery) -> Value {
    json!({
        "target": delivery.target,
        "status": delivery.status.as_str(),
        "tries": delivery.tries,
        "error": delivery.error,
        "at": time(delivery.at),
    })
}

fn target(target: &TargetStatus) -> Value {
    let error = target.last_error.as_ref();
    json!({
        "name": target.name,
        "channel": target.channel,
        "host": target.host,
        "pending": target.pending,
        "delivered": target.delivered,
        "failed": target.failed,
        "last_success": target.last_success.map(time),
        "last_error": error.map(|it| json!({"at": time(it.at), "error": it.error})),
        "next_try": target.next_try.map(time),
    })
}
