use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::did_you_mean::did_you_mean;

/// The wire protocol of a provider's endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WireApi {
    /// `/chat/completions`, which most providers imitate.
    OpenaiChat,
    /// `/responses`.
    OpenaiResponses,
    /// `/messages`.
    Anthropic,
    /// `models/…:generateContent`.
    Gemini,
}

impl WireApi {
    /// Every wire.
    pub const ALL: [Self; 4] = [
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Gemini,
    ];

    /// The word used in files and options.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }
}

impl fmt::Display for WireApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that does not name a wire.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown wire `{word}`{suggestion}")]
pub struct UnknownWireApi {
    word: String,
    suggestion: String,
}

impl FromStr for WireApi {
    type Err = UnknownWireApi;

    fn from_str(word: &str) -> Result<Self, UnknownWireApi> {
        let found = Self::ALL.into_iter().find(|wire| wire.as_str() == word);
        found.ok_or_else(|| UnknownWireApi {
            word: word.to_owned(),
            suggestion: did_you_mean(word, Self::ALL.map(Self::as_str)),
        })
    }
}

/// Whether a reply is streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamMode {
    /// One JSON document.
    Nonstream,
    /// Server-sent events.
    Stream,
}

impl StreamMode {
    /// Both modes.
    pub const ALL: [Self; 2] = [Self::Nonstream, Self::Stream];

    /// The word used in files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nonstream => "nonstream",
            Self::Stream => "stream",
        }
    }
}
