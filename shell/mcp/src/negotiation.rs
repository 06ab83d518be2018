//! Finds out which era a server speaks.
//!
//! Unless the handshake era is preferred, the client tries `server/discover` first, as the SDKs do.
//! Anything but a clear sign of the stateless era leads to `initialize`. Servers older than
//! `server/discover` react differently to it. Most answer with an error. Some never answer, so
//! `initialize` follows after a while on the same connection. Some exit, so they are restarted for
//! `initialize` alone.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;
use toolwarden_model::json::RawObject;

use crate::client_info::ClientInfo;
use crate::connection_limits::ConnectionLimits;
use crate::endpoint::{Command, Endpoint, ServerUrl};
use crate::error::{McpError, ProtocolFault, ServerDiagnostics};
use crate::error_codes::UNSUPPORTED_VERSION;
use crate::mcp_request::McpRequest;
use crate::message_handler::MessageDispatcher;
use crate::protocol::{
    Era, EraPreference, HANDSHAKE_VERSIONS, NEWEST_HANDSHAKE_VERSION, STATELESS_VERSION,
    with_client_meta,
};
use crate::rpc_channel::RpcChannel;
use crate::server_description::{NegotiationResult, OptionalText};
use crate::transport::{LegacySse, ServerHttpClient, Stdio, StreamableHttp, Transport};

const DISCOVER: &str = "server/discover";
const INITIALIZE: &str = "initialize";

/// Opens a connection to the endpoint in the preferred era that both sides speak.
pub(crate) async fn open(
    endpoint: &Endpoint,
    limits: &ConnectionLimits,
    client_info: &ClientInfo,
    ear: &Arc<MessageDispatcher>,
    preference: EraPreference,
) -> Result<(RpcChannel, NegotiationResult), McpError> {
    match endpoint {
        Endpoint::Command(command) => {
            open_command(command, limits, client_info, ear, preference).await
        }
        Endpoint::Url(url) => open_url(url, limits, client_info, ear, preference).await,
    }
}

async fn open_command(
    command: &Command,
    limits: &ConnectionLimits,
    client_info: &ClientInfo,
    ear: &Arc<MessageDispatcher>,
    preference: EraPreference,
) -> Result<(RpcChannel, NegotiationResult), McpError> {
    let wire = start(command, limits, ear)?;
    let first = match open_preferred(&wire, client_info, limits.start, preference).await {
        Ok(connect_request) => return Ok((wire, connect_request)),
        Err(error) => error,
    };
    wire.close().await;
    let unread = matches!(first, McpError::Exited { .. } | McpError::Timeout { .. });
    // A program that exits on the first request of the wrong era is restarted once for the other
    // era.
    let second = match preference {
        EraPreference::Newest => EraPreference::Only(Era::Handshake),
        EraPreference::Handshake => EraPreference::Only(Era::Stateless),
        EraPreference::Only(_) => return Err(first),
    };
    if !unread {
        return Err(first);
    }
    let wire = start(command, limits, ear)?;
    // The program has already downloaded what it needs, so the second start is fast.
    match open_preferred(&wire, client_info, limits.connect, second).await {
        Ok(connect_request) => Ok((wire, connect_request)),
        Err(second) => {
            wire.close().await;
            Err(second)
        }
    }
}

fn start(
    command: &Command,
    limits: &ConnectionLimits,
    ear: &Arc<MessageDispatcher>,
) -> Result<RpcChannel, McpError> {
    let stdio = Stdio::start(command, limits, ear)?;
    Ok(RpcChannel::new(Transport::Stdio(Box::new(stdio)), limits))
}

async fn open_url(
    url: &ServerUrl,
    limits: &ConnectionLimits,
    client_info: &ClientInfo,
    ear: &Arc<MessageDispatcher>,
    preference: EraPreference,
) -> Result<(RpcChannel, NegotiationResult), McpError> {
    let base = ServerHttpClient::new(url, limits)?;
    let http = Transport::Http(StreamableHttp::new(base.clone(), ear));
    let wire = RpcChannel::new(http, limits);
    let refusal = match open_preferred(&wire, client_info, limits.request, preference).await {
        Ok(connect_request) => return Ok((wire, connect_request)),
        Err(error) => error,
    };
    // Servers of 2024-11-05 do not accept POST at the address of their event stream.
    let is_older = matches!(
        refusal,
        McpError::Http {
            status: 400 | 404 | 405,
            ..
        }
    );
    if !is_older || preference == EraPreference::Only(Era::Stateless) {
        return Err(refusal);
    }
    let Ok(Ok(sse)) = timeout(limits.connect, LegacySse::open(base, ear)).await else {
        return Err(refusal);
    };
    let wire = RpcChannel::new(Transport::LegacySse(Box::new(sse)), limits);
    let connect_request = initialize(&wire, client_info, limits.request).await?;
    Ok((wire, connect_request))
}

/// Opens one connection in the preferred era, or in the other era if allowed.
async fn open_preferred(
    wire: &RpcChannel,
    client_info: &ClientInfo,
    limit: Duration,
    preference: EraPreference,
) -> Result<NegotiationResult, McpError> {
    match preference {
        EraPreference::Newest => open_either(wire, client_info, limit).await,
        EraPreference::Only(Era::Handshake) => initialize(wire, client_info, limit).await,
        EraPreference::Only(Era::Stateless) => {
            let discovered = discover(wire, client_info, limit).await?;
            discovered.ok_or_else(|| McpError::NoCommonVersion {
                offered: Vec::new(),
            })
        }
        EraPreference::Handshake => match initialize(wire, client_info, limit).await {
            Err(refusal) if suggests_other_era(&refusal) => {
                let discovered = discover(wire, client_info, limit).await?;
                discovered.ok_or(refusal)
            }
            outcome => outcome,
        },
    }
}

/// Whether a failed `initialize` may mean only that the server has no handshake.
fn suggests_other_era(error: &McpError) -> bool {
    match error {
        McpError::NoCommonVersion { .. } => true,
        McpError::Timeout { .. } => false,
        error => suggests_unknown_method(error),
    }
}

/// Tries both eras on one connection, the stateless one first.
async fn open_either(
    wire: &RpcChannel,
    client_info: &ClientInfo,
    limit: Duration,
) -> Result<NegotiationResult, McpError> {
    let mut discovery = pin!(discover(wire, client_info, limit));
    if let Ok(outcome) = timeout(wire.limits.probe, &mut discovery).await {
        return match outcome? {
            Some(connect_request) => Ok(connect_request),
            None => initialize(wire, client_info, limit).await,
        };
    }
    // Both requests are in flight now. A stateless server that started slowly answers the first and
    // refuses the second; an old server does the opposite.
    let mut handshake = pin!(initialize(wire, client_info, limit));
    tokio::select! {
        discovered = &mut discovery => match discovered {
            Ok(Some(connect_request)) => Ok(connect_request),
            Ok(None) => handshake.await,
            Err(error) => Err(error),
        },
        shaken = &mut handshake => match shaken {
            Err(McpError::Rpc { code: UNSUPPORTED_VERSION, method, message, data }) => {
                let refusal = McpError::Rpc { code: UNSUPPORTED_VERSION, method, message, data };
                discovery.await?.ok_or(refusal)
            }
            outcome => outcome,
        },
    }
}

/// Sends `server/discover`. `None` means that the server shows no sign of the stateless era.
async fn discover(
    wire: &RpcChannel,
    client_info: &ClientInfo,
    limit: Duration,
) -> Result<Option<NegotiationResult>, McpError> {
    let params = with_client_meta(None, client_info);
    let result = match request(wire, Era::Stateless, DISCOVER, &params, limit).await {
        Ok(result) => result,
        Err(McpError::Rpc {
            code: UNSUPPORTED_VERSION,
            data,
            ..
        }) => return handshake_after_version_error(data.as_deref()),
        Err(error) if suggests_unknown_method(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    // A result of another form does not indicate the stateless era.
    let Ok(discovered) = serde_json::from_str::<DiscoverResult>(result.get()) else {
        return Ok(None);
    };
    if !discovered
        .supported_versions
        .iter()
        .any(|version| version == STATELESS_VERSION)
    {
        return handshake_if_supported(discovered.supported_versions);
    }
    wire.transport.adopt_version(STATELESS_VERSION);
    Ok(Some(NegotiationResult {
        era: Era::Stateless,
        protocol_version: STATELESS_VERSION.to_owned(),
        capabilities: discovered.capabilities,
        info: discovered
            .meta
            .and_then(|meta| meta.server_info)
            .or(discovered.server_info),
        instructions: discovered.instructions.into_option(),
        result,
    }))
}

/// Opens a session of the handshake era.
async fn initialize(
    wire: &RpcChannel,
    client_info: &ClientInfo,
    limit: Duration,
) -> Result<NegotiationResult, McpError> {
    let mut params = RawObject::default();
    params.set("protocolVersion", format!("\"{NEWEST_HANDSHAKE_VERSION}\""));
    params.set("capabilities", client_info.capabilities.get());
    params.set("clientInfo", client_info.info.get());
    let params = params.to_raw();
    let result = request(wire, Era::Handshake, INITIALIZE, &params, limit).await?;
    let initialized: InitializeResult =
        serde_json::from_str(result.get()).map_err(|source| McpError::Protocol {
            method: INITIALIZE.to_owned(),
            fault: ProtocolFault::Result { source },
            evidence: Box::<ServerDiagnostics>::default(),
        })?;
    if !HANDSHAKE_VERSIONS.contains(&initialized.protocol_version.as_str()) {
        return Err(McpError::NoCommonVersion {
            offered: vec![initialized.protocol_version],
        });
    }
    wire.transport.adopt_version(&initialized.protocol_version);
    // Some servers answer this with an error status although they continue; if it matters, the next
    // request fails.
    let _refused = wire
        .notify(Era::Handshake, "notifications/initialized", None)
        .await;
    Ok(NegotiationResult {
        era: Era::Handshake,
        protocol_version: initialized.protocol_version,
        capabilities: initialized.capabilities,
        info: initialized.server_info,
        instructions: initialized.instructions.into_option(),
        result,
    })
}

async fn request(
    wire: &RpcChannel,
    era: Era,
    method: &str,
    params: &RawValue,
    limit: Duration,
) -> Result<Box<RawValue>, McpError> {
    let mut mcp_request = McpRequest::new(method, Some(params));
    mcp_request.era = era;
    mcp_request.timeout = Some(limit);
    let outcome = wire.request(mcp_request).await?;
    outcome.map_err(|error| McpError::from_rpc(method, error))
}

/// Whether a failure of the first request may only mean that the server is older than that request.
fn suggests_unknown_method(error: &McpError) -> bool {
    match error {
        // These statuses concern the user's credentials or the load, not the method.
        McpError::Http { status, .. } => !matches!(status, 401 | 403 | 407 | 429),
        McpError::Rpc { .. } | McpError::Protocol { .. } | McpError::Timeout { .. } => true,
        _ => false,
    }
}

/// Reads the versions from a refusal; a refusal that lists none indicates no era.
fn handshake_after_version_error(
    data: Option<&RawValue>,
) -> Result<Option<NegotiationResult>, McpError> {
    let supported =
        data.and_then(|data| serde_json::from_str::<SupportedVersions>(data.get()).ok());
    supported.map_or(Ok(None), |supported| {
        handshake_if_supported(supported.supported)
    })
}

/// Continues with the handshake if it can negotiate one of the versions.
fn handshake_if_supported(offered: Vec<String>) -> Result<Option<NegotiationResult>, McpError> {
    let shared = offered
        .iter()
        .any(|version| HANDSHAKE_VERSIONS.contains(&version.as_str()));
    if shared || offered.is_empty() {
        Ok(None)
    } else {
        Err(McpError::NoCommonVersion { offered })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoverResult {
    supported_versions: Vec<String>,
    capabilities: Option<Box<RawValue>>,
    server_info: Option<Box<RawValue>>,
    #[serde(default)]
    instructions: OptionalText,
    #[serde(rename = "_meta")]
    meta: Option<DiscoverMeta>,
}

#[derive(Deserialize)]
struct DiscoverMeta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    protocol_version: String,
    capabilities: Option<Box<RawValue>>,
    server_info: Option<Box<RawValue>>,
    #[serde(default)]
    instructions: OptionalText,
}

#[derive(Deserialize)]
struct SupportedVersions {
    supported: Vec<String>,
}
