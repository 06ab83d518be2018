//! What an agent says of itself.

use serde_json::value::RawValue;
use toolwarden_mcp::serve::ladder::StatelessEnvelope;
use toolwarden_mcp::{Era, Face};

/// How an agent speaks, and what it can do for servers.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The era of its messages.
    pub era: Era,
    /// The version it speaks.
    pub version: String,
    /// What servers are told of it.
    pub face: Face,
    /// The least level of log messages it wants, where it said so.
    pub log_level: Option<String>,
}

impl Agent {
    /// An agent as a request of the stateless era describes it.
    pub(crate) fn of_envelope(envelope: StatelessEnvelope) -> Self {
        Self {
            era: Era::Stateless,
            version: envelope.version,
            face: Face {
                capabilities: envelope.capabilities.into(),
                info: envelope.info.unwrap_or_else(nothing).into(),
            },
            log_level: envelope.log_level,
        }
    }

    /// Whether it says it has a capability (`sampling`, `elicitation`, `roots`).
    #[must_use]
    pub fn has(&self, capability: &str) -> bool {
        let capabilities = toolwarden_mcp::Members::of(&self.face.capabilities);
        capabilities.is_ok_and(|it| it.get(capability).is_some_and(|value| value != "null"))
    }

    /// Whether servers may send it requests while they answer one of its own.
    #[must_use]
    pub fn answers_requests(&self) -> bool {
        self.era == Era::Handshake
    }
}

/// An empty object.
pub(crate) fn nothing() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
