//! Replies of models, in every wire format.

use toolwarden_canon::reply::{ReplyLimits, read};
use toolwarden_model::reply::{StreamMode, WireApi};

const WIRES: [WireApi; 4] = [
    WireApi::OpenaiChat,
    WireApi::OpenaiResponses,
    WireApi::Anthropic,
    WireApi::Gemini,
];

/// A reply is read the same way twice, has no more calls than the limit, and is rejected above the limit of bytes.
pub fn model_reply(data: &[u8]) {
    let limits = ReplyLimits {
        body_bytes: 1 << 20,
        calls: 8,
        notes: 2,
    };
    let short = ReplyLimits {
        body_bytes: data.len().saturating_sub(1),
        ..limits
    };
    for wire in WIRES {
        for mode in [StreamMode::Stream, StreamMode::Nonstream] {
            let reply = read(wire, mode, data, &limits);
            assert_eq!(read(wire, mode, data, &limits), reply);
            if let Ok(reply) = &reply {
                assert!(reply.calls.len() <= limits.calls, "{wire}: {reply:?}");
            }
            if !data.is_empty() {
                let rejected = read(wire, mode, data, &short);
                assert!(rejected.is_err(), "{wire}: {rejected:?}");
            }
        }
    }
}
