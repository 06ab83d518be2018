//! What the common client libraries do with the bytes of a provider's response.
//!
//! Each file does what one client does, step by step, with its mistakes: it hands calls to the
//! program, or raises. [`judge`] compares that with what the provider sent, as [`reply`](super::reply)
//! reads it with every tolerance. Tests compare each file with the published client on the same bytes.

mod anthropic_python;
mod events;
mod langchain;
mod langchain_anthropic;
mod langchain_openai;
mod langchain_responses;
mod openai_node;
mod openai_node_responses;
mod openai_python;
mod openai_python_chat;
mod openai_python_responses;
mod partial_json;
mod python_object;
mod verdict;

use serde_json::Value;
use toolwarden_model::reply::{StreamMode, WireApi};

pub use verdict::{CLIENT_RULE_PREFIX, ClientFault, ClientFinding, MAX_REPLAYED_BYTES, judge};

/// A client library whose behaviour is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientLibrary {
    /// OpenAI's library for Python.
    OpenaiPython,
    /// OpenAI's library for Node.js.
    OpenaiNode,
    /// Anthropic's library for Python.
    AnthropicPython,
    /// LangChain's integration of OpenAI, for Python.
    LangchainOpenai,
    /// LangChain's integration of Anthropic, for Python.
    LangchainAnthropic,
}

/// The release of a client that the behaviour was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientRelease {
    /// The package, as its registry names it.
    pub package: &'static str,
    /// The version.
    pub version: &'static str,
    /// The day on which the behaviour was compared with that version.
    pub checked: &'static str,
}

/// The day on which all clients were last compared with their releases.
const CHECKED: &str = "2026-11-18";

impl ClientLibrary {
    /// Every client.
    pub const ALL: [Self; 5] = [
        Self::OpenaiPython,
        Self::OpenaiNode,
        Self::AnthropicPython,
        Self::LangchainOpenai,
        Self::LangchainAnthropic,
    ];

    /// The clients that speak a wire.
    #[must_use]
    pub const fn of_wire(wire: WireApi) -> &'static [Self] {
        match wire {
            WireApi::OpenaiChat | WireApi::OpenaiResponses => {
                &[Self::OpenaiPython, Self::OpenaiNode, Self::LangchainOpenai]
            }
            WireApi::Anthropic => &[Self::AnthropicPython, Self::LangchainAnthropic],
            WireApi::Gemini => &[],
        }
    }

    /// The stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiPython => "openai-python",
            Self::OpenaiNode => "openai-node",
            Self::AnthropicPython => "anthropic-python",
            Self::LangchainOpenai => "langchain-openai",
            Self::LangchainAnthropic => "langchain-anthropic",
        }
    }

    /// The release that the behaviour was taken from.
    #[must_use]
    pub const fn release(self) -> ClientRelease {
        let (package, version) = match self {
            Self::OpenaiPython => ("openai", "3.51.0"),
            Self::OpenaiNode => ("openai", "6.49.0"),
            Self::AnthropicPython => ("anthropic", "2.10.0"),
            Self::LangchainOpenai => ("langchain-openai", "1.7.3"),
            Self::LangchainAnthropic => ("langchain-anthropic", "1.7.7"),
        };
        ClientRelease {
            package,
            version,
            checked: CHECKED,
        }
    }

    /// Whether the client parses arguments before it hands them to the program.
    const fn parses_arguments(self) -> bool {
        match self {
            Self::OpenaiPython | Self::OpenaiNode => false,
            Self::AnthropicPython | Self::LangchainOpenai | Self::LangchainAnthropic => true,
        }
    }
}

/// A successful HTTP response, as received.
#[derive(Clone, Copy, Debug)]
pub struct HttpReply<'b> {
    /// The value of `content-type`, empty if there is none.
    pub content_type: &'b str,
    /// The body, decompressed.
    pub body: &'b [u8],
}

/// What a client made of a response.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientOutcome {
    /// It handed this to the program.
    Handed(HandedReply),
    /// It raised an error, or the usual access to its result does.
    Raised(ClientError),
}

/// What the program gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HandedReply {
    /// The calls.
    pub calls: Vec<HandedCall>,
    /// The text; not a string if the client hands over something else.
    pub text: Value,
}

/// One call as the program gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct HandedCall {
    /// The id, null if there is none, [`GENERATED_ID`] if the client made one up.
    pub id: Value,
    /// The name, null if there is none.
    pub name: Value,
    /// The arguments: a text or an object, depending on the client.
    pub arguments: Value,
}

/// Stands for an id that a client makes up.
pub const GENERATED_ID: &str = "<generated>";

/// An error of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// The class of the error.
    pub class: &'static str,
    /// What the client, or the program that reads its result, trips over.
    pub what: String,
}

/// What a client does with a response to a request on this wire. `None` if it does not speak the wire.
#[must_use]
pub fn replay(
    client: ClientLibrary,
    wire: WireApi,
    mode: StreamMode,
    reply: HttpReply<'_>,
) -> Option<ClientOutcome> {
    use StreamMode::{Nonstream, Stream};
    use WireApi::{Anthropic, OpenaiChat, OpenaiResponses};
    let handed = match (client, wire, mode) {
        (ClientLibrary::OpenaiPython, OpenaiChat, Nonstream) => openai_python::chat(reply),
        (ClientLibrary::OpenaiPython, OpenaiChat, Stream) => openai_python_chat::stream(reply),
        (ClientLibrary::OpenaiPython, OpenaiResponses, Nonstream) => {
            openai_python::responses(reply)
        }
        (ClientLibrary::OpenaiPython, OpenaiResponses, Stream) => {
            openai_python_responses::stream(reply)
        }
        (ClientLibrary::OpenaiNode, OpenaiChat, Nonstream) => openai_node::chat(reply),
        (ClientLibrary::OpenaiNode, OpenaiChat, Stream) => openai_node::stream(reply),
        (ClientLibrary::OpenaiNode, OpenaiResponses, Nonstream) => {
            openai_node_responses::whole(reply)
        }
        (ClientLibrary::OpenaiNode, OpenaiResponses, Stream) => {
            openai_node_responses::stream(reply)
        }
        (ClientLibrary::LangchainOpenai, OpenaiChat, Nonstream) => langchain_openai::chat(reply),
        (ClientLibrary::LangchainOpenai, OpenaiChat, Stream) => langchain_openai::stream(reply),
        (ClientLibrary::LangchainOpenai, OpenaiResponses, Nonstream) => {
            langchain_responses::whole(reply)
        }
        (ClientLibrary::LangchainOpenai, OpenaiResponses, Stream) => {
            langchain_responses::stream(reply)
        }
        (ClientLibrary::AnthropicPython, Anthropic, Nonstream) => anthropic_python::whole(reply),
        (ClientLibrary::AnthropicPython, Anthropic, Stream) => anthropic_python::stream(reply),
        (ClientLibrary::LangchainAnthropic, Anthropic, Nonstream) => {
            langchain_anthropic::whole(reply)
        }
        (ClientLibrary::LangchainAnthropic, Anthropic, Stream) => {
            langchain_anthropic::stream(reply)
        }
        _ => return None,
    };
    Some(match handed {
        Ok(handed) => ClientOutcome::Handed(handed),
        Err(error) => ClientOutcome::Raised(error),
    })
}

/// The result of a step of a client.
type ClientResult<T> = Result<T, ClientError>;

/// Sets a member of an object; any other value stays.
fn set_member(value: &mut Value, key: &str, new: Value) {
    if let Value::Object(members) = value {
        members.insert(key.to_owned(), new);
    }
}

fn raise<T>(class: &'static str, what: impl Into<String>) -> ClientResult<T> {
    Err(ClientError {
        class,
        what: what.into(),
    })
}
