use serde_json::Value;
use toolwarden_model::json;
use toolwarden_model::reply::{FinishClass, Reply, ReplyCall, StreamMode, WireApi};

use super::partial_json::loads;
use super::{
    ClientError, ClientLibrary, ClientOutcome, GENERATED_ID, HandedCall, HandedReply, HttpReply,
};

/// How a client fails on a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientFault {
    /// It raises an error, or the usual access to its result does.
    Raises,
    /// A call or a text does not reach the program.
    Loses,
    /// A call reaches the program with another id, name or arguments than the provider sent, or
    /// without an id of its own.
    Garbles,
}

impl ClientFault {
    /// Every fault.
    pub const ALL: [Self; 3] = [Self::Raises, Self::Loses, Self::Garbles];

    /// The stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Raises => "raises",
            Self::Loses => "loses",
            Self::Garbles => "garbles",
        }
    }

    /// The fault for a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

/// A client that fails on a reply, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFinding {
    /// The client.
    pub client: ClientLibrary,
    /// How it fails.
    pub fault: ClientFault,
    /// What it raises, loses or garbles.
    pub what: String,
}

impl ClientFinding {
    /// The rule of the note that reports it, which names the client.
    #[must_use]
    pub fn rule(&self) -> String {
        format!("{CLIENT_RULE_PREFIX}{}", self.client.as_str())
    }

    /// One sentence for the reader, with the release of the client.
    #[must_use]
    pub fn message(&self) -> String {
        let (client, version) = (self.client.as_str(), self.client.release().version);
        format!("{client} {version} {}: {}", self.fault.as_str(), self.what)
    }
}

/// What the rules of notes on clients begin with.
pub const CLIENT_RULE_PREFIX: &str = "client-";

/// The largest body that is replayed; a replay keeps all events of a stream in memory.
pub const MAX_REPLAYED_BYTES: usize = 8 << 20;

/// The clients of the wire that fail on a response, given the reply that a tolerant reader finds in it.
/// Bodies beyond [`MAX_REPLAYED_BYTES`] are not replayed.
#[must_use]
pub fn judge(
    wire: WireApi,
    mode: StreamMode,
    response: HttpReply<'_>,
    reply: &Reply,
) -> Vec<ClientFinding> {
    if response.body.len() > MAX_REPLAYED_BYTES {
        return Vec::new();
    }
    let clients = ClientLibrary::of_wire(wire).iter();
    let judged = clients.filter_map(|client| {
        let outcome = super::replay(*client, wire, mode, response)?;
        let (fault, what) = judge_outcome(*client, &outcome, reply)?;
        Some(ClientFinding {
            client: *client,
            fault,
            what,
        })
    });
    judged.collect()
}

fn judge_outcome(
    client: ClientLibrary,
    outcome: &ClientOutcome,
    reply: &Reply,
) -> Option<(ClientFault, String)> {
    match outcome {
        ClientOutcome::Raised(error) if reports_stop(error, reply) => None,
        ClientOutcome::Raised(ClientError { class, what }) => {
            Some((ClientFault::Raises, format!("{class}: {what}")))
        }
        ClientOutcome::Handed(handed) => judge_handed(client, handed, reply),
    }
}

/// Whether an error is the client's documented report of a reply that was cut off or filtered.
fn reports_stop(error: &ClientError, reply: &Reply) -> bool {
    let stopped = matches!(
        reply.finish_class,
        FinishClass::Length | FinishClass::Filtered | FinishClass::Failed
    );
    let reports = matches!(
        error.class,
        "LengthFinishReasonError" | "ContentFilterFinishReasonError" | "RuntimeError"
    );
    stopped && reports
}

fn judge_handed(
    client: ClientLibrary,
    handed: &HandedReply,
    reply: &Reply,
) -> Option<(ClientFault, String)> {
    let mut left: Vec<&HandedCall> = handed.calls.iter().collect();
    let mut unmatched: Vec<&ReplyCall> = Vec::new();
    for call in &reply.calls {
        let same = |it: &&HandedCall| {
            it.name == call.name.as_str() && has_id(it, call) && has_arguments(client, it, call)
        };
        match left.iter().position(same) {
            Some(at) => {
                left.remove(at);
            }
            None => unmatched.push(call),
        }
    }
    if let Some(call) = unmatched.first() {
        let by_name = left.iter().find(|it| it.name == call.name.as_str());
        let by_id = left.iter().find(|it| call.id.as_ref() == Some(&it.id));
        let other = by_name.or(by_id).or(left.first());
        return Some(match other {
            None => (
                ClientFault::Loses,
                format!("the call of `{}` does not reach the program", call.name),
            ),
            Some(other) => (ClientFault::Garbles, difference(client, other, call)),
        });
    }
    if let Some(call) = left.first() {
        let name = call.name.as_str().filter(|it| !it.is_empty());
        let what = match name {
            Some(name) => format!("the program gets a call of `{name}` that was not sent"),
            None => "the program gets a call without a name".to_owned(),
        };
        return Some((ClientFault::Garbles, what));
    }
    judge_ids(handed).or_else(|| judge_text(handed, reply))
}

/// A result is returned by the id of its call, so each call needs one of its own.
fn judge_ids(handed: &HandedReply) -> Option<(ClientFault, String)> {
    for (at, call) in handed.calls.iter().enumerate() {
        let name = call.name.as_str().unwrap_or_default();
        let Some(id) = call.id.as_str().filter(|it| !it.is_empty()) else {
            let what = format!("the call of `{name}` has no id to return its result with");
            return Some((ClientFault::Garbles, what));
        };
        let before = handed.calls.get(..at).unwrap_or_default();
        if id != GENERATED_ID && before.iter().any(|it| it.id == id) {
            let what = format!("two calls have the id `{id}`, so their results are mixed up");
            return Some((ClientFault::Garbles, what));
        }
    }
    None
}

fn judge_text(handed: &HandedReply, reply: &Reply) -> Option<(ClientFault, String)> {
    let sent = reply.text.trim();
    // Declined requests have a member of their own in every client.
    let declined = reply.notes.iter().any(|it| it.rule == "refusal-text");
    if sent.is_empty() || declined {
        return None;
    }
    match &handed.text {
        Value::String(text) if text.trim().is_empty() => Some((
            ClientFault::Loses,
            "the text does not reach the program".to_owned(),
        )),
        Value::String(text) if sent.contains(text.trim()) || text.contains(sent) => None,
        Value::String(_) => Some((
            ClientFault::Garbles,
            "the program gets another text".to_owned(),
        )),
        other => Some((
            ClientFault::Garbles,
            format!("the program gets {} as the text", json::type_name(other)),
        )),
    }
}

fn has_id(handed: &HandedCall, sent: &ReplyCall) -> bool {
    let blank = |id: &Value| id.is_null() || id == "";
    match &sent.id {
        Some(id) if !blank(id) => handed.id == *id,
        _ => blank(&handed.id) || handed.id == GENERATED_ID,
    }
}

fn has_arguments(client: ClientLibrary, handed: &HandedCall, sent: &ReplyCall) -> bool {
    if !client.parses_arguments() {
        return match (&handed.arguments, &sent.arguments) {
            (Value::String(handed), Some(Value::String(sent))) => handed == sent,
            (Value::String(handed), None | Some(Value::Null)) => handed.is_empty(),
            _ => false,
        };
    }
    let Value::Object(arguments) = &handed.arguments else {
        return false;
    };
    match &sent.arguments {
        None | Some(Value::Null) => arguments.is_empty(),
        Some(Value::String(text)) if text.trim().is_empty() => arguments.is_empty(),
        Some(Value::String(text)) => loads(text).as_ref() == Some(&handed.arguments),
        Some(value) => *value == handed.arguments,
    }
}

fn difference(client: ClientLibrary, handed: &HandedCall, sent: &ReplyCall) -> String {
    let name = &sent.name;
    if handed.name != name.as_str() {
        let shown = handed.name.as_str().unwrap_or_default();
        return format!("the call of `{name}` reaches the program as a call of `{shown}`");
    }
    if !has_id(handed, sent) {
        return format!("the call of `{name}` reaches the program with another id");
    }
    if client.parses_arguments() && !handed.arguments.is_object()
        || !client.parses_arguments() && !handed.arguments.is_string()
    {
        let kind = json::type_name(&handed.arguments);
        let wanted = if client.parses_arguments() {
            "an object"
        } else {
            "a text"
        };
        return format!(
            "the arguments of `{name}` reach the program as {kind} instead of {wanted}"
        );
    }
    format!("the arguments of `{name}` reach the program changed")
}
