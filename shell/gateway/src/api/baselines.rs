//! What tools are held to, and what waits for approval.

use serde_json::{Value, json};
use toolwarden_warden::document;
use toolwarden_warden::inline::WatchError;

use super::answer::Answer;
use super::asking::Asking;
use super::error::ApiError;
use super::route::Handled;

/// `GET /baselines`
pub(super) async fn list(asking: Asking) -> Handled {
    let watch = asking.gateway().watch();
    let servers = match asking.given.owned("server") {
        Some(server) => vec![server],
        None => {
            let servers = watch.servers().await?.into_iter();
            let mut names: Vec<String> = servers.map(|it| it.server.key.name).collect();
            names.dedup();
            names
        }
    };
    let mut entries = Vec::new();
    for server in servers {
        let found = unless_new(&asking, &server, watch.baselines(server.clone()).await)?;
        entries.extend(
            found
                .iter()
                .map(|it| with_server(&server, document::baseline(it))),
        );
    }
    Ok(Answer::document("baselines", json!({"baselines": entries})))
}

/// `GET /baselines/{server}/{tool}`
pub(super) async fn one(asking: Asking) -> Handled {
    let server = asking.given.needed("server")?.to_owned();
    let tool = asking.given.needed("tool")?.to_owned();
    let watch = asking.gateway().watch();
    let history = watch.history(server.clone(), tool.clone()).await?;
    let (baseline, definition) = match watch.pinned(server.clone(), tool.clone()).await {
        Ok(pinned) => (Some(document::baseline(&pinned.baseline)), pinned.text),
        // It was alerted about, and never pinned.
        Err(WatchError::NoSuchTool { .. }) => (None, None),
        Err(error) => return Err(error.into()),
    };
    // What is no JSON is shown as the text it is.
    let definition = definition.map(|text| match serde_json::from_str(&text) {
        Ok(definition) => definition,
        Err(_) => Value::from(text),
    });
    let baselines = history.baselines.iter().map(document::baseline);
    let alerts = history.alerts.iter().map(document::alert);
    Ok(Answer::document(
        "baseline",
        json!({
            "server": server,
            "tool": tool,
            "baseline": baseline,
            "definition": definition,
            "history": baselines.collect::<Vec<_>>(),
            "alerts": alerts.collect::<Vec<_>>(),
        }),
    ))
}

/// `GET /changes`
pub(super) async fn changes(asking: Asking) -> Handled {
    let watch = asking.gateway().watch();
    let changes = match asking.given.owned("server") {
        Some(server) => unless_new(&asking, &server, watch.changes(Some(server.clone())).await)?,
        None => watch.changes(None).await?,
    };
    let changes: Vec<Value> = changes.iter().map(document::waiting).collect();
    Ok(Answer::document("changes", json!({"changes": changes})))
}

/// Nothing, of a server that is configured and was never looked at.
fn unless_new<T>(
    asking: &Asking,
    server: &str,
    found: Result<Vec<T>, WatchError>,
) -> Result<Vec<T>, ApiError> {
    match found {
        Err(WatchError::NoSuchServer { .. }) if asking.gateway().shelf(server).is_some() => {
            Ok(Vec::new())
        }
        found => Ok(found?),
    }
}

fn with_server(server: &str, mut entry: Value) -> Value {
    if let Value::Object(members) = &mut entry {
        members.insert("server".to_owned(), server.into());
    }
    entry
}
