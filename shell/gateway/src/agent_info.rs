//! How an agent describes itself.

use serde_json::value::RawValue;
use toolwarden_mcp::serve::request_checks::StatelessEnvelope;
use toolwarden_mcp::{ClientInfo, Era};

/// An agent's protocol era and version, and what it can do for servers.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The era of its messages.
    pub era: Era,
    /// The version it speaks.
    pub version: String,
    /// How the gateway presents the agent to servers.
    pub client_info: ClientInfo,
    /// The minimum level of log messages it wants, if it set one.
    pub log_level: Option<String>,
}

impl Agent {
    /// An agent as a request of the stateless era describes it.
    pub(crate) fn from_envelope(envelope: StatelessEnvelope) -> Self {
        Self {
            era: Era::Stateless,
            version: envelope.version,
            client_info: ClientInfo {
                capabilities: envelope.capabilities.into(),
                info: envelope.info.unwrap_or_else(empty_object).into(),
            },
            log_level: envelope.log_level,
        }
    }

    /// Whether it declares a capability (`sampling`, `elicitation`, `roots`).
    #[must_use]
    pub fn has_capability(&self, capability: &str) -> bool {
        let capabilities = toolwarden_mcp::RawObject::parse(&self.client_info.capabilities);
        capabilities.is_ok_and(|it| it.get(capability).is_some_and(|value| value != "null"))
    }

    /// Whether servers may send it requests while they answer one of its own.
    #[must_use]
    pub fn accepts_requests(&self) -> bool {
        self.era == Era::Handshake
    }
}

/// An empty object.
pub(crate) fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
