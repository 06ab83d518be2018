use std::time::Duration;

use reqwest::Url;
use serde_json::Value;

use crate::args::GatewayExplainArgs;
use crate::commands::watch::live_servers::runtime;
use crate::error::{CliError, GatewayCommandError, with_causes};

/// How long a gateway may take.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The largest answer that is read.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

/// What a gateway that runs says.
pub(super) fn query_gateway(base: &str, args: &GatewayExplainArgs) -> Result<Value, CliError> {
    let no_address = || GatewayCommandError::Address {
        url: base.to_owned(),
    };
    let mut url = Url::parse(base).map_err(|_| no_address())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(no_address().into());
    }
    // The address agents use will do.
    let path = url.path().trim_end_matches('/').trim_end_matches("/mcp");
    url.set_path(&format!("{path}/api/v1/explain"));
    {
        let mut query = url.query_pairs_mut();
        query.clear().append_pair("tool", &args.subject());
        if let Some(principal) = &args.principal {
            query.append_pair("principal", principal);
        }
        if let Some(session) = &args.session {
            query.append_pair("session", session);
        }
        if !args.groups.is_empty() {
            query.append_pair("groups", &args.groups.join(","));
        }
    }
    let key = args
        .key
        .clone()
        .or_else(|| std::env::var("TOOLWARDEN_KEY").ok());
    Ok(runtime()?.block_on(get(&url, key))?)
}

async fn get(url: &Url, key: Option<String>) -> Result<Value, GatewayCommandError> {
    let shown = toolwarden_http::display_url(url);
    let unreached = |error: &dyn std::error::Error| GatewayCommandError::Unreachable {
        url: shown.clone(),
        why: with_causes(error),
    };
    let client = toolwarden_http::client(url).map_err(|error| unreached(&error))?;
    let client = client.timeout(TIMEOUT).build();
    let client = client.map_err(|error| unreached(&error.without_url()))?;
    let mut request = client.get(url.clone());
    if let Some(key) = key.filter(|it| !it.is_empty()) {
        request = request.bearer_auth(key);
    }
    let sent = request.send().await;
    let mut response = sent.map_err(|error| unreached(&error.without_url()))?;
    let status = response.status();
    let mut body = Vec::new();
    loop {
        let part = response.chunk().await;
        let Some(part) = part.map_err(|error| unreached(&error.without_url()))? else {
            break;
        };
        body.extend_from_slice(&part);
        if body.len() > MAX_RESPONSE_BYTES {
            break;
        }
    }
    let told = serde_json::from_slice::<Value>(&body);
    match told {
        Ok(explained) if status.is_success() && explained.is_object() => Ok(explained),
        told => Err(GatewayCommandError::Refused {
            url: shown,
            status: status.as_u16(),
            why: refusal_reason(told.ok().as_ref()),
        }),
    }
}

/// What a refusal says for itself.
fn refusal_reason(told: Option<&Value>) -> String {
    let keys = [
        "/detail",
        "/message",
        "/reason",
        "/error/message",
        "/title",
        "/error",
    ];
    let said = |told: &Value| {
        keys.iter()
            .find_map(|at| told.pointer(at)?.as_str().map(str::to_owned))
    };
    told.and_then(said)
        .unwrap_or_else(|| "not what a gateway says; is this its address?".to_owned())
}
