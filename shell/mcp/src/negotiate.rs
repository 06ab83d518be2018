//! Which era a server speaks.
//!
//! Unless the handshake era is preferred, `server/discover` is tried first, as the SDKs do: whatever is
//! no clear sign of the stateless era leads to `initialize`. Servers older than `server/discover` differ in how they take it.
//! Most answer with an error; some never answer, so `initialize` follows after a while on the
//! same connection; some exit, so they are started again for `initialize` alone.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::audience::Ear;
use crate::codes::UNSUPPORTED_VERSION;
use crate::endpoint::{Command, Endpoint, Url};
use crate::error::{Evidence, McpError, ProtocolFault};
use crate::face::Face;
use crate::limits::Limits;
use crate::members::Members;
use crate::protocol::{
    Era, EraPreference, HANDSHAKE_VERSIONS, NEWEST_HANDSHAKE_VERSION, STATELESS_VERSION, stamped,
};
use crate::server::{Opening, Text};
use crate::transport::{Http, HttpBase, LegacySse, Stdio, Transport};
use crate::wire::{Asking, Wire};

const DISCOVER: &str = "server/discover";
const INITIALIZE: &str = "initialize";

/// Opens a connection to the endpoint in the preferred era of those that both sides speak.
pub(crate) async fn open(
    endpoint: &Endpoint,
    limits: &Limits,
    face: &Face,
    ear: &Arc<Ear>,
    preference: EraPreference,
) -> Result<(Wire, Opening), McpError> {
    match endpoint {
        Endpoint::Command(command) => open_command(command, limits, face, ear, preference).await,
        Endpoint::Url(url) => open_url(url, limits, face, ear, preference).await,
    }
}

async fn open_command(
    command: &Command,
    limits: &Limits,
    face: &Face,
    ear: &Arc<Ear>,
    preference: EraPreference,
) -> Result<(Wire, Opening), McpError> {
    let wire = start(command, limits, ear)?;
    let first = match open_preferred(&wire, face, limits.start, preference).await {
        Ok(opening) => return Ok((wire, opening)),
        Err(error) => error,
    };
    wire.close().await;
    let unread = matches!(first, McpError::Exited { .. } | McpError::Timeout { .. });
    // A program that ends on the first request of the wrong era is started once more for the other.
    let second = match preference {
        EraPreference::Newest => EraPreference::Only(Era::Handshake),
        EraPreference::Handshake => EraPreference::Only(Era::Stateless),
        EraPreference::Only(_) => return Err(first),
    };
    if !unread {
        return Err(first);
    }
    let wire = start(command, limits, ear)?;
    // What the program needed to download is there now, so the second start is quick.
    match open_preferred(&wire, face, limits.connect, second).await {
        Ok(opening) => Ok((wire, opening)),
        Err(second) => {
            wire.close().await;
            Err(second)
        }
    }
}

fn start(command: &Command, limits: &Limits, ear: &Arc<Ear>) -> Result<Wire, McpError> {
    let stdio = Stdio::start(command, limits, ear)?;
    Ok(Wire::new(Transport::Stdio(Box::new(stdio)), limits))
}

async fn open_url(
    url: &Url,
    limits: &Limits,
    face: &Face,
    ear: &Arc<Ear>,
    preference: EraPreference,
) -> Result<(Wire, Opening), McpError> {
    let base = HttpBase::new(url, limits)?;
    let http = Transport::Http(Http::new(base.clone(), ear));
    let wire = Wire::new(http, limits);
    let refusal = match open_preferred(&wire, face, limits.request, preference).await {
        Ok(opening) => return Ok((wire, opening)),
        Err(error) => error,
    };
    // Servers of 2024-11-05 take no POST at the address of their event stream.
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
    let wire = Wire::new(Transport::LegacySse(Box::new(sse)), limits);
    let opening = initialize(&wire, face, limits.request).await?;
    Ok((wire, opening))
}

/// Opens one connection in the preferred era, or in the other where that is allowed.
async fn open_preferred(
    wire: &Wire,
    face: &Face,
    limit: Duration,
    preference: EraPreference,
) -> Result<Opening, McpError> {
    match preference {
        EraPreference::Newest => open_either(wire, face, limit).await,
        EraPreference::Only(Era::Handshake) => initialize(wire, face, limit).await,
        EraPreference::Only(Era::Stateless) => {
            let discovered = discover(wire, face, limit).await?;
            discovered.ok_or_else(|| McpError::NoCommonVersion {
                offered: Vec::new(),
            })
        }
        EraPreference::Handshake => match initialize(wire, face, limit).await {
            Err(refusal) if means_other_era(&refusal) => {
                let discovered = discover(wire, face, limit).await?;
                discovered.ok_or(refusal)
            }
            outcome => outcome,
        },
    }
}

/// Whether a failed `initialize` may mean only that the server has no handshake.
fn means_other_era(error: &McpError) -> bool {
    match error {
        McpError::NoCommonVersion { .. } => true,
        McpError::Timeout { .. } => false,
        error => means_unknown(error),
    }
}

/// Tries both eras on one connection, the stateless one first.
async fn open_either(wire: &Wire, face: &Face, limit: Duration) -> Result<Opening, McpError> {
    let mut discovery = pin!(discover(wire, face, limit));
    if let Ok(outcome) = timeout(wire.limits.probe, &mut discovery).await {
        return match outcome? {
            Some(opening) => Ok(opening),
            None => initialize(wire, face, limit).await,
        };
    }
    // Both are open now. A stateless server that started slowly answers the first and refuses
    // the second; an old one the other way round.
    let mut handshake = pin!(initialize(wire, face, limit));
    tokio::select! {
        discovered = &mut discovery => match discovered {
            Ok(Some(opening)) => Ok(opening),
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

/// Asks in the stateless era. `None` means that the server gives no sign of speaking it.
async fn discover(wire: &Wire, face: &Face, limit: Duration) -> Result<Option<Opening>, McpError> {
    let params = stamped(None, face);
    let result = match ask(wire, Era::Stateless, DISCOVER, &params, limit).await {
        Ok(result) => result,
        Err(McpError::Rpc {
            code: UNSUPPORTED_VERSION,
            data,
            ..
        }) => return refused_version(data.as_deref()),
        Err(error) if means_unknown(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    // A result of another form is no sign of the stateless era.
    let Ok(discovered) = serde_json::from_str::<Discovered>(result.get()) else {
        return Ok(None);
    };
    if !discovered
        .supported_versions
        .iter()
        .any(|version| version == STATELESS_VERSION)
    {
        return refused(discovered.supported_versions);
    }
    wire.transport.adopt_version(STATELESS_VERSION);
    Ok(Some(Opening {
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
async fn initialize(wire: &Wire, face: &Face, limit: Duration) -> Result<Opening, McpError> {
    let mut params = Members::default();
    params.set("protocolVersion", format!("\"{NEWEST_HANDSHAKE_VERSION}\""));
    params.set("capabilities", face.capabilities.get());
    params.set("clientInfo", face.info.get());
    let params = params.to_raw();
    let result = ask(wire, Era::Handshake, INITIALIZE, &params, limit).await?;
    let initialized: Initialized =
        serde_json::from_str(result.get()).map_err(|source| McpError::Protocol {
            method: INITIALIZE.to_owned(),
            fault: ProtocolFault::Result { source },
            evidence: Box::<Evidence>::default(),
        })?;
    if !HANDSHAKE_VERSIONS.contains(&initialized.protocol_version.as_str()) {
        return Err(McpError::NoCommonVersion {
            offered: vec![initialized.protocol_version],
        });
    }
    wire.transport.adopt_version(&initialized.protocol_version);
    // Some servers answer this with an error status though they go on; if it matters, the next
    // request fails.
    let _refused = wire
        .notify(Era::Handshake, "notifications/initialized", None)
        .await;
    Ok(Opening {
        era: Era::Handshake,
        protocol_version: initialized.protocol_version,
        capabilities: initialized.capabilities,
        info: initialized.server_info,
        instructions: initialized.instructions.into_option(),
        result,
    })
}

async fn ask(
    wire: &Wire,
    era: Era,
    method: &str,
    params: &RawValue,
    limit: Duration,
) -> Result<Box<RawValue>, McpError> {
    let asking = Asking {
        era,
        method,
        params: Some(params),
        headers: Vec::new(),
        limit,
        aside: None,
        sent: None,
    };
    let outcome = wire.ask(asking).await?;
    outcome.map_err(|error| error.for_method(method))
}

/// Whether a failure of the first request may mean only that the server is older than it.
fn means_unknown(error: &McpError) -> bool {
    match error {
        // These concern the user's credentials or the load, whatever the method.
        McpError::Http { status, .. } => !matches!(status, 401 | 403 | 407 | 429),
        McpError::Rpc { .. } | McpError::Protocol { .. } | McpError::Timeout { .. } => true,
        _ => false,
    }
}

/// Reads the versions out of a refusal; a refusal that lists none is no sign of any era.
fn refused_version(data: Option<&RawValue>) -> Result<Option<Opening>, McpError> {
    let supported = data.and_then(|data| serde_json::from_str::<Supported>(data.get()).ok());
    supported.map_or(Ok(None), |supported| refused(supported.supported))
}

/// Goes on with the handshake if one of the versions is reached by it.
fn refused(offered: Vec<String>) -> Result<Option<Opening>, McpError> {
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
struct Discovered {
    supported_versions: Vec<String>,
    capabilities: Option<Box<RawValue>>,
    server_info: Option<Box<RawValue>>,
    #[serde(default)]
    instructions: Text,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialized {
    protocol_version: String,
    capabilities: Option<Box<RawValue>>,
    server_info: Option<Box<RawValue>>,
    #[serde(default)]
    instructions: Text,
}

#[derive(Deserialize)]
struct Supported {
    supported: Vec<String>,
}
