use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::suggest::closest;

/// How a provider's endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wire {
    /// `/chat/completions`, which most providers imitate.
    OpenaiChat,
    /// `/responses`.
    OpenaiResponses,
    /// `/messages`.
    Anthropic,
    /// `models/…:generateContent`.
    Gemini,
}

impl Wire {
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

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no wire.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown wire `{word}`{suggestion}")]
pub struct UnknownWire {
    word: String,
    suggestion: String,
}

impl FromStr for Wire {
    type Err = UnknownWire;

    fn from_str(word: &str) -> Result<Self, UnknownWire> {
        let found = Self::ALL.into_iter().find(|wire| wire.as_str() == word);
        found.ok_or_else(|| UnknownWire {
            word: word.to_owned(),
            suggestion: closest(word, Self::ALL.map(Self::as_str)),
        })
    }
}

/// Whether a reply comes whole or in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// One JSON document.
    Nonstream,
    /// Server-sent events.
    Stream,
}

impl Mode {
    /// Both.
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
