//! Alerts and their deliveries.

use serde_json::{Value, json};
use toolwarden_notify::TargetStatus;
use toolwarden_store::{AlertFilter, AlertStatus, Delivery, DeliveryFilter};
use toolwarden_watch::json_documents;

use super::error::ApiError;
use super::page::paginate;
use super::request::ApiRequest;
use super::response::{ApiResponse, time_text};
use super::route::HandlerResult;

/// The most deliveries shown for one alert.
const MAX_DELIVERIES: u32 = 1_000;

/// `GET /alerts`
pub(super) async fn list(api_request: ApiRequest) -> HandlerResult {
    let given = &api_request.params;
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
    let mut alerts = api_request.gateway().watch().alerts(filter).await?;
    // Newest first, so that a page does not move when alerts arrive.
    alerts.reverse();
    let count = alerts.len();
    let (alerts, next) = paginate(alerts, given, |alert| alert.id.clone())?;
    let alerts: Vec<Value> = alerts.iter().map(json_documents::alert).collect();
    Ok(ApiResponse::document(
        "alerts",
        json!({"alerts": alerts, "count": count, "next": next}),
    ))
}

/// `GET /alerts/{id}`
pub(super) async fn get(api_request: ApiRequest) -> HandlerResult {
    let id = api_request.params.required_text("id")?.to_owned();
    match api_request.gateway().watch().alert(id.clone()).await? {
        Some(alert) => {
            let alert = json_documents::alert(&alert);
            Ok(ApiResponse::document("alert", json!({"alert": alert})))
        }
        None => Err(unknown_alert(&id)),
    }
}

/// `GET /alerts/{id}/deliveries`
pub(super) async fn deliveries(api_request: ApiRequest) -> HandlerResult {
    let id = api_request.params.required_text("id")?.to_owned();
    let filter = DeliveryFilter {
        notice: Some(id.clone()),
        limit: Some(MAX_DELIVERIES),
        ..DeliveryFilter::default()
    };
    let deliveries = api_request.api.notifier.deliveries(filter).await?;
    if deliveries.is_empty()
        && api_request
            .gateway()
            .watch()
            .alert(id.clone())
            .await?
            .is_none()
    {
        return Err(unknown_alert(&id));
    }
    let deliveries: Vec<Value> = deliveries.iter().map(delivery_json).collect();
    Ok(ApiResponse::document(
        "deliveries",
        json!({"alert": id, "deliveries": deliveries}),
    ))
}

/// `GET /deliveries/status`
pub(super) async fn status(api_request: ApiRequest) -> HandlerResult {
    let status = api_request.api.notifier.status().await?;
    let targets: Vec<Value> = status.targets.iter().map(target_json).collect();
    Ok(ApiResponse::document(
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

fn unknown_alert(id: &str) -> ApiError {
    ApiError::not_found(
        format!("there is no alert `{id}`"),
        "`GET /api/v1/alerts` lists the alerts.",
    )
}

fn delivery_json(delivery: &Delivery) -> Value {
    json!({
        "target": delivery.target,
        "status": delivery.status.as_str(),
        "tries": delivery.tries,
        "error": delivery.error,
        "at": time_text(delivery.at),
    })
}

fn target_json(target: &TargetStatus) -> Value {
    let error = target.last_error.as_ref();
    json!({
        "name": target.name,
        "channel": target.channel,
        "host": target.host,
        "pending": target.pending,
        "delivered": target.delivered,
        "failed": target.failed,
        "last_success": target.last_success.map(time_text),
        "last_error": error.map(|it| json!({"at": time_text(it.at), "error": it.error})),
        "next_try": target.next_attempt.map(time_text),
    })
}
