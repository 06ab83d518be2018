//! A model's reply to one request, as sent: without repairs or guesses.

mod arguments;
mod call_id;
mod failure;
mod leak;
mod wire_api;

use serde_json::Value;

use crate::json::Pointer;

pub use arguments::ArgumentsClass;
pub use call_id::CallIdClass;
pub use failure::{NotMeasured, TrialFailure};
pub use leak::{Leak, LeakPlace};
pub use wire_api::{StreamMode, UnknownWireApi, WireApi};

/// A model's reply to one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The model that answered, as the reply names it.
    pub model: Option<String>,
    /// The tool calls, in the order they began.
    pub calls: Vec<ReplyCall>,
    /// The text for the user.
    pub text: String,
    /// The reasoning.
    pub reasoning: String,
    /// Why it stopped, as sent.
    pub finish: Option<Value>,
    /// The meaning of `finish`.
    pub finish_class: FinishClass,
    /// The tokens used, as reported.
    pub usage: TokenUsage,
    /// Oddities of the reply, and each repair that was needed to read it.
    pub notes: Vec<ReplyNote>,
}

/// One tool call, as the model sent it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyCall {
    /// The tool; never blank.
    pub name: String,
    /// The id, as sent.
    pub id: Option<Value>,
    /// The arguments, as sent: a string on most wires. `None` if the member is missing.
    pub arguments: Option<Value>,
    /// The location of the call in the reply; in a stream, in the assembled message.
    pub pointer: Pointer,
}

/// Why a model stopped, by the meaning of the word on its wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FinishClass {
    /// To call tools.
    Calls,
    /// It was done. On wires without a word for calls, also to call tools.
    Done,
    /// It ran out of tokens.
    Length,
    /// Its text was filtered.
    Filtered,
    /// It failed.
    Failed,
    /// A word that the wire does not define.
    Other,
    /// Not stated.
    #[default]
    Absent,
}

impl FinishClass {
    /// The word used in snapshots.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Done => "done",
            Self::Length => "length",
            Self::Filtered => "filtered",
            Self::Failed => "failed",
            Self::Other => "other",
            Self::Absent => "absent",
        }
    }
}

/// The tokens that a reply used, as far as the provider reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens of the request.
    pub input: Option<u64>,
    /// Tokens of the reply, reasoning included.
    pub output: Option<u64>,
    /// Tokens of the reasoning.
    pub reasoning: Option<u64>,
    /// Tokens of the request that came from a cache.
    pub cached: Option<u64>,
}

/// An oddity of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyNote {
    /// The kind, as a stable word in kebab case.
    pub rule: &'static str,
    /// Its location.
    pub pointer: Pointer,
    /// An explanation in one sentence.
    pub message: String,
}
