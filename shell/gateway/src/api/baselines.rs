//! The baselines of tools, and changes that are pending approval.

use serde_json::{Value, json};
use toolwarden_watch::inline::WatchError;
use toolwarden_watch::json_documents;

use super::error::ApiError;
use super::request::ApiRequest;
use super::response::ApiResponse;
use super::route::HandlerResult;

/// `GET /baselines`
pub(super) async fn list(api_request: ApiRequest) -> HandlerResult {
    let watch = api_request.gateway().watch();
    let servers = match api_request.params.owned_text("server") {
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
        let found = empty_if_new(&api_request, &server, watch.baselines(server.clone()).await)?;
        entries.extend(
            found
                .iter()
                .map(|it| with_server(&server, json_documents::baseline(it))),
        );
    }
    Ok(ApiResponse::document(
        "baselines",
        json!({"baselines": entries}),
    ))
}

/// `GET /baselines/{server}/{tool}`
pub(super) async fn get(api_request: ApiRequest) -> HandlerResult {
    let server = api_request.params.required_text("server")?.to_owned();
    let tool = api_request.params.required_text("tool")?.to_owned();
    let watch = api_request.gateway().watch();
    let history = watch.history(server.clone(), tool.clone()).await?;
    let (baseline, definition) = match watch.pinned_definition(server.clone(), tool.clone()).await {
        Ok(pinned) => (
            Some(json_documents::baseline(&pinned.baseline)),
            pinned.text,
        ),
        // The tool has alerts and was never pinned.
        Err(WatchError::UnknownTool { .. }) => (None, None),
        Err(error) => return Err(error.into()),
    };
    // A definition that is not valid JSON is shown as text.
    let definition = definition.map(|text| match serde_json::from_str(&text) {
        Ok(definition) => definition,
        Err(_) => Value::from(text),
    });
    let baselines = history.baselines.iter().map(json_documents::baseline);
    let alerts = history.alerts.iter().map(json_documents::alert);
    Ok(ApiResponse::document(
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
pub(super) async fn changes(api_request: ApiRequest) -> HandlerResult {
    let watch = api_request.gateway().watch();
    let changes = match api_request.params.owned_text("server") {
        Some(server) => empty_if_new(
            &api_request,
            &server,
            watch.pending_approvals(Some(server.clone())).await,
        )?,
        None => watch.pending_approvals(None).await?,
    };
    let changes: Vec<Value> = changes
        .iter()
        .map(json_documents::pending_approval)
        .collect();
    Ok(ApiResponse::document(
        "changes",
        json!({"changes": changes}),
    ))
}

/// An empty list for a server that is configured and was never observed.
fn empty_if_new<T>(
    api_request: &ApiRequest,
    server: &str,
    found: Result<Vec<T>, WatchError>,
) -> Result<Vec<T>, ApiError> {
    match found {
        Err(WatchError::UnknownServer { .. })
            if api_request.gateway().server_catalog(server).is_some() =>
        {
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
