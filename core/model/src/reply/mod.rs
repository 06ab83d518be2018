//! What a model returned to one request, as it was sent: nothing repaired, nothing guessed.

mod arguments;
mod failure;
mod id;
mod leak;
mod wire;

use serde_json::Value;

use crate::json::Pointer;

pub use arguments::ArgumentsClass;
pub use failure::{Failure, NotMeasured};
pub use id::IdClass;
pub use leak::{Leak, LeakPlace};
pub use wire::{Mode, UnknownWire, Wire};

/// What a model returned to one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The model that answered, by its own word.
    pub model: Option<String>,
    /// The tool calls, in the order they were begun.
    pub calls: Vec<ReplyCall>,
    /// What it said to the user.
    pub text: String,
    /// What it thought aloud.
    pub reasoning: String,
    /// Why it stopped, as sent.
    pub finish: Option<Value>,
    /// What that means.
    pub finish_class: FinishClass,
    /// The tokens it says it used.
    pub usage: Usage,
    /// What was odd about the reply, and each repair that reading it took.
    pub notes: Vec<ReplyNote>,
}

/// One call of a tool, as the model sent it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyCall {
    /// The tool; never blank.
    pub name: String,
    /// The id, as sent.
    pub id: Option<Value>,
    /// The arguments, as sent: a string on most wires. None if the member is missing.
    pub arguments: Option<Value>,
    /// Where the call stands in the reply; in a stream, in the message that its pieces make.
    pub pointer: Pointer,
}

/// Why a model stopped, told by what the word means on its wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FinishClass {
    /// To have tools called.
    Calls,
    /// It was done. On wires that have no word for calls, also to have tools called.
    Done,
    /// It ran out of tokens.
    Length,
    /// What it said was held back.
    Filtered,
    /// It failed.
    Failed,
    /// A word the wire does not know.
    Other,
    /// It did not say.
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

/// How many tokens a reply took, as far as the provider says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the request.
    pub input: Option<u64>,
    /// Of the reply, reasoning included.
    pub output: Option<u64>,
    /// Of the reasoning.
    pub reasoning: Option<u64>,
    /// Of the request, taken from a cache.
    pub cached: Option<u64>,
}

/// Something odd about a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyNote {
    /// What it is, as a stable word in kebab case.
    pub rule: &'static str,
    /// Where it stands.
    pub pointer: Pointer,
    /// What a reader should know, in a sentence.
    pub message: String,
}
