//! The audit log: its records and its verification.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_guard::audit::ChainLink;
use toolwarden_live_guard::audit::verify as verify_log;
use toolwarden_store::{RecordFilter, RecordRow, Store, StoreError};

use super::error::{ApiError, ApiErrorKind};
use super::page::{limit, unknown_cursor};
use super::request::ApiRequest;
use super::response::{ApiResponse, time_text};
use super::route::HandlerResult;

/// How long a read of the log waits for a writer.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// `GET /audit`
pub(super) async fn list(api_request: ApiRequest) -> HandlerResult {
    let given = &api_request.params;
    let wanted = limit(given);
    let oldest_first = given.text("order") == Some("oldest");
    let cursor = given.text("cursor").map(str::parse::<u64>).transpose();
    let cursor = cursor.map_err(|_| unknown_cursor())?;
    let filter = RecordFilter {
        since_ms: given.time("since").map(|it| it.as_millisecond()),
        until_ms: given.time("until").map(|it| it.as_millisecond()),
        tool: given.owned_text("tool"),
        principal: given.owned_text("principal"),
        session: given.owned_text("session"),
        code: given.owned_text("code"),
        kind: given.owned_text("kind"),
        denied: given.flag("denied"),
        after_seq: cursor.filter(|_| oldest_first),
        before_seq: cursor.filter(|_| !oldest_first),
        // One more record shows whether there is a next page.
        limit: u64::try_from(wanted).ok().map(|it| it.saturating_add(1)),
        newest_first: !oldest_first,
    };
    let found = with_store(&api_request, move |store| {
        let mut records = Vec::new();
        store.records(&filter, |row| {
            records.push((row.seq, record_json(row)));
            ControlFlow::Continue(())
        })?;
        Ok(records)
    });
    let mut found = found.await?;
    let more = found.len() > wanted;
    found.truncate(wanted);
    let next = found
        .last()
        .filter(|_| more)
        .map(|(seq, _)| seq.to_string());
    let records: Vec<Value> = found.into_iter().map(|(_, record)| record).collect();
    Ok(ApiResponse::document(
        "audit",
        json!({"records": records, "next": next}),
    ))
}

/// `POST /audit/verify`
pub(super) async fn verify(api_request: ApiRequest) -> HandlerResult {
    let noted = api_request
        .params
        .text("head")
        .map(str::parse::<ChainLink>)
        .transpose();
    let noted = noted.map_err(|error| ApiError::invalid(format!("`head`: {error}")))?;
    let turn = Arc::clone(&api_request.api.verify_slot).try_acquire_owned();
    let Ok(turn) = turn else {
        return Err(ApiError::new(
            ApiErrorKind::TooMany,
            "the log is already being verified",
            "Wait until that is done.",
        )
        .retry_after(5));
    };
    let found = with_store(&api_request, move |store| {
        let found = verify_log(store, noted);
        drop(turn);
        found
    });
    Ok(ApiResponse::json(&found.await?.document(noted)))
}

/// Runs a long operation on the store over its own connection.
async fn with_store<T: Send + 'static>(
    api_request: &ApiRequest,
    work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, ApiError> {
    let path = api_request.gateway().settings().store.clone();
    let done = tokio::task::spawn_blocking(move || {
        let store = open(path)?;
        work(&store)
    });
    let done = done.await;
    Ok(done.map_err(|_| ApiError::internal("the store could not be read"))??)
}

fn open(path: PathBuf) -> Result<Store, StoreError> {
    let store = Store::open_existing(&path)?;
    let store = store.ok_or(StoreError::Gone { path })?;
    store.set_busy_timeout(STORE_TIMEOUT)?;
    Ok(store)
}

fn record_json(row: &RecordRow<'_>) -> Value {
    // INVARIANT: bodies are canonical JSON, and the parser preserves order and numbers.
    let body = serde_json::from_str(row.body).unwrap_or_else(|_| Value::from(row.body));
    let at = jiff::Timestamp::from_millisecond(row.at_ms);
    json!({
        "seq": row.seq,
        "at": at.ok().map(time_text),
        "kind": row.kind,
        "principal": row.principal,
        "tool": row.tool,
        "session": row.session,
        "code": row.code,
        "allowed": row.allowed,
        "body": body,
        "hash": row.hash.to_string(),
    })
}
