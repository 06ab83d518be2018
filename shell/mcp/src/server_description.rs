//! A server's description of itself.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::protocol::Era;

/// A server's description of itself when the connection was opened.
#[derive(Debug, Clone)]
pub struct ServerDescription {
    /// Its name; absent if it does not state one (the stateless era permits that).
    pub name: Option<String>,
    /// Its own version.
    pub version: Option<String>,
    /// A name for people.
    pub title: Option<String>,
    /// Advice to models on how to use it.
    pub instructions: Option<String>,
    /// The protocol version in use.
    pub protocol_version: String,
    /// The era of that version.
    pub era: Era,
    /// Its capabilities, byte for byte.
    pub capabilities: Option<Box<RawValue>>,
    /// Its `serverInfo`, byte for byte.
    pub info: Option<Box<RawValue>>,
    /// The whole result that opened the connection, byte for byte.
    pub connect_request: Box<RawValue>,
}

/// The members of `serverInfo` that are displayed. Members of the wrong type count as absent: the
/// description is for display only, and the original bytes are kept.
#[derive(Deserialize, Default)]
struct Info {
    #[serde(default)]
    name: OptionalText,
    #[serde(default)]
    version: OptionalText,
    #[serde(default)]
    title: OptionalText,
}

/// A member that is displayed if it is a string.
#[derive(Deserialize, Default)]
#[serde(untagged)]
pub(crate) enum OptionalText {
    String(String),
    #[default]
    #[serde(skip_deserializing)]
    Absent,
    Other(serde::de::IgnoredAny),
}

impl OptionalText {
    pub(crate) fn into_option(self) -> Option<String> {
        match self {
            Self::String(text) => Some(text),
            Self::Absent | Self::Other(_) => None,
        }
    }
}

/// What both ways of opening a connection return.
#[derive(Debug)]
pub(crate) struct NegotiationResult {
    pub(crate) era: Era,
    pub(crate) protocol_version: String,
    pub(crate) capabilities: Option<Box<RawValue>>,
    pub(crate) info: Option<Box<RawValue>>,
    pub(crate) instructions: Option<String>,
    pub(crate) result: Box<RawValue>,
}

impl From<NegotiationResult> for ServerDescription {
    fn from(connect_request: NegotiationResult) -> Self {
        let NegotiationResult {
            era,
            protocol_version,
            capabilities,
            info,
            instructions,
            result,
        } = connect_request;
        let shown: Info = info
            .as_ref()
            .and_then(|info| serde_json::from_str(info.get()).ok())
            .unwrap_or_default();
        Self {
            name: shown.name.into_option(),
            version: shown.version.into_option(),
            title: shown.title.into_option(),
            instructions,
            protocol_version,
            era,
            capabilities,
            info,
            connect_request: result,
        }
    }
}
