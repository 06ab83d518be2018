//! The audit log: what it says, and whether it is whole.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_guard::audit::Link;
use toolwarden_store::{RecordFilter, RecordRow, Store, StoreError};
use toolwarden_warden::guard::audit::verify as verify_log;

use super::answer::{Answer, time};
use super::asking::Asking;
use super::error::{ApiError, ErrorKind};
use super::page::{limit, unknown};
use super::route::Handled;

/// How long a look at the log waits for whoever writes it.
const PATIENCE: Duration = Duration::from_secs(5);

/// `GET /audit`
pub(super) async fn list(asking: Asking) -> Handled {
    let given = &asking.given;
    let wanted = limit(given);
    let oldest_first = given.text("order") == Some("oldest");
    let cursor = given.text("cursor").map(str::parse::<u64>).transpose();
    let cursor = cursor.map_err(|_| unknown())?;
    let filter = RecordFilter {
        since_ms: given.time("since").map(|it| it.as_millisecond()),
        until_ms: given.time("until").map(|it| it.as_millisecond()),
        tool: given.owned("tool"),
        principal: given.owned("principal"),
        session: given.owned("session"),
        code: given.owned("code"),
        kind: given.owned("kind"),
        denied: given.flag("denied"),
        after_seq: cursor.filter(|_| oldest_first),
        before_seq: cursor.filter(|_| !oldest_first),
        // One more shows whether there is a next page.
        limit: u64::try_from(wanted).ok().map(|it| it.saturating_add(1)),
        newest_first: !oldest_first,
    };
    let found = with_store(&asking, move |store| {
        let mut records = Vec::new();
        store.records(&filter, |row| {
            records.push((row.seq, record(row)));
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
    Ok(Answer::document(
        "audit",
        json!({"records": records, "next": next}),
    ))
}

/// `POST /audit/verify`
pub(super) async fn verify(asking: Asking) -> Handled {
    let noted = asking
        .given
        .text("head")
        .map(str::parse::<Link>)
        .transpose();
    let noted = noted.map_err(|error| ApiError::invalid(format!("`head`: {error}")))?;
    let turn = Arc::clone(&asking.api.verifying).try_acquire_owned();
    let Ok(turn) = turn else {
        return Err(ApiError::new(
            ErrorKind::TooMany,
            "the log is being verified already",
            "Wait until that is done.",
        )
        .retry_after(5));
    };
    let found = with_store(&asking, move |store| {
        let found = verify_log(store, noted);
        drop(turn);
        found
    });
    Ok(Answer::json(&found.await?.document(noted)))
}

/// Does something with the store that may take a while, over a connection of its own.
async fn with_store<T: Send + 'static>(
    asking: &Asking,
    work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, ApiError> {
    let path = asking.gateway().settings().store.clone();
    let done = tokio::task::spawn_blocking(move || {
        let store = open(path)?;
        work(&store)
    });
    let done = done.await;
    Ok(done.map_err(|_| ApiError::internal("the store could not be looked at"))??)
}

fn open(path: PathBuf) -> Result<Store, StoreError> {
    let store = Store::open_existing(&path)?;
    let store = store.ok_or(StoreError::Gone { path })?;
    store.set_patience(PATIENCE)?;
    Ok(store)
}

fn record(row: &RecordRow<'_>) -> Value {
    // INVARIANT: bodies are canonical JSON, and what reads them keeps order and numbers as written.
    let body = serde_json::from_str(row.body).unwrap_or_else(|_| Value::from(row.body));
    let at = jiff::Timestamp::from_millisecond(row.at_ms);
    json!({
        "seq": row.seq,
        "at": at.ok().map(time),
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
