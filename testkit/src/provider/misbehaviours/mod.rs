//! The catalogue of provider misbehaviours: replies that deviate from their wire, whole and streamed.

mod anthropic;
mod chat_messages;
mod chat_streams;
mod chat_transport;
mod gemini;
mod leaks;
mod responses;

use super::provider_response::ProviderResponse;

/// One deviation of a provider, as synthetic responses.
#[derive(Clone, Debug)]
pub struct Misbehaviour {
    /// Its stable id, which begins with the wire.
    pub id: &'static str,
    /// The word for the wire.
    pub wire: &'static str,
    /// What deviates.
    pub what: &'static str,
    /// The response where a whole reply was requested, unless only streams have the deviation.
    pub nonstream: Option<ProviderResponse>,
    /// The response where a stream was requested.
    pub stream: Option<ProviderResponse>,
}

/// Every deviation, by wire. The first row of each wire is a correct reply.
#[must_use]
pub fn misbehaviours() -> Vec<Misbehaviour> {
    let mut all = chat_messages::all();
    all.extend(leaks::all());
    all.extend(chat_streams::all());
    all.extend(chat_transport::all());
    all.extend(responses::all());
    all.extend(anthropic::all());
    all.extend(gemini::all());
    all
}

/// The word for chat completions.
const CHAT: &str = "openai-chat";

/// A deviation of streams.
const fn streamed(
    wire: &'static str,
    id: &'static str,
    what: &'static str,
    stream: ProviderResponse,
) -> Misbehaviour {
    Misbehaviour {
        id,
        wire,
        what,
        nonstream: None,
        stream: Some(stream),
    }
}

/// A deviation of whole replies.
const fn whole(
    wire: &'static str,
    id: &'static str,
    what: &'static str,
    nonstream: ProviderResponse,
) -> Misbehaviour {
    Misbehaviour {
        id,
        wire,
        what,
        nonstream: Some(nonstream),
        stream: None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_every_wire_has_whole_and_streamed_deviations() {
        let all = misbehaviours();
        let ids: BTreeSet<&str> = all.iter().map(|it| it.id).collect();
        assert_eq!(ids.len(), all.len());
        assert!(all.len() >= 60, "{}", all.len());
        for wire in ["openai-chat", "openai-responses", "anthropic", "gemini"] {
            let of_wire = all.iter().filter(|it| it.wire == wire);
            assert!(of_wire.clone().filter(|it| it.nonstream.is_some()).count() >= 6);
            assert!(of_wire.filter(|it| it.stream.is_some()).count() >= 6);
        }
    }
}
