use serde_json::Value;
use toolwarden_model::json::to_canonical_string;

use super::recording::{Recording, wants_stream};

/// The recordings, and which of them were served how often.
#[derive(Debug)]
pub(super) struct Shelf {
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    recording: Recording,
    body: String,
    served: u64,
}

/// What somebody asks for.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) path: String,
    pub(super) body: Value,
    /// Which trial it belongs to, if one of our runs asks.
    pub(super) trial: Option<String>,
}

impl Shelf {
    pub(super) fn new(recordings: Vec<Recording>) -> Self {
        let slots = recordings.into_iter().map(|recording| Slot {
            body: to_canonical_string(&recording.exchange.request.body),
            recording,
            served: 0,
        });
        Self {
            slots: slots.collect(),
        }
    }

    /// The recording that answers best: of those that fit equally well, the one served least often,
    /// the earliest first.
    pub(super) fn take(&mut self, question: &Question) -> Option<Recording> {
        let body = to_canonical_string(&question.body);
        let named = question.path.split('/').nth(1).unwrap_or_default();
        let is_known = self.slots.iter().any(|it| it.recording.provider == named);
        let fitting = self.slots.iter_mut().filter_map(|slot| {
            if is_known && slot.recording.provider != named {
                return None;
            }
            let fit = slot.fit(question, &body)?;
            Some((fit, slot))
        });
        // The first of equals wins.
        let best = fitting.min_by_key(|(fit, slot)| (std::cmp::Reverse(*fit), slot.served));
        let (_, slot) = best?;
        slot.served += 1;
        Some(slot.recording.clone())
    }
}

/// How well a recording answers a question, from badly to well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// The path.
    Path,
    /// The path, and whole or in pieces.
    Mode,
    /// The model too.
    Model,
    /// The request.
    Request,
    /// The request, in the same trial.
    Trial,
}

impl Slot {
    fn fit(&self, question: &Question, body: &str) -> Option<Fit> {
        let recorded = &self.recording.exchange.request;
        let ours = endpoint(&recorded.url_path);
        if ours != endpoint(&question.path) {
            return None;
        }
        if self.body == body && model(&recorded.url_path) == model(&question.path) {
            let same_trial = question.trial.is_some() && self.recording.trial == question.trial;
            return Some(if same_trial { Fit::Trial } else { Fit::Request });
        }
        if self.recording.wants_stream() != wants_stream(&question.path, &question.body) {
            return Some(Fit::Path);
        }
        let asked = question.body.get("model").and_then(Value::as_str);
        let asked = asked.or_else(|| model(&question.path));
        Some(if asked == Some(self.recording.model.as_str()) {
            Fit::Model
        } else {
            Fit::Mode
        })
    }
}

/// What a path asks of a provider, whatever stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint<'p> {
    Chat,
    Responses,
    Messages,
    Generate,
    Other(&'p str),
}

fn endpoint(path: &str) -> Endpoint<'_> {
    let path = path.split('?').next().unwrap_or_default();
    let path = path.trim_end_matches('/');
    if path.ends_with("/chat/completions") {
        Endpoint::Chat
    } else if path.ends_with("/responses") {
        Endpoint::Responses
    } else if path.ends_with("/messages") {
        Endpoint::Messages
    } else if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") {
        Endpoint::Generate
    } else {
        Endpoint::Other(path)
    }
}

/// The model in a path of Gemini.
fn model(path: &str) -> Option<&str> {
    let (_, rest) = path.split_once("/models/")?;
    rest.rsplit_once(':').map(|(model, _)| model)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolwarden_model::reply::{Mode, Wire};

    use super::*;

    fn ask(shelf: &mut Shelf, path: &str, body: Value) -> Option<String> {
        let question = Question {
            path: path.to_owned(),
            body,
            trial: None,
        };
        let found = shelf.take(&question)?;
        Some(String::from_utf8(found.exchange.body).unwrap())
    }

    #[test]
    fn the_closest_recording_answers_and_equals_take_turns() {
        let fixture = |wire, mode, model, body: &str| {
            Recording::fixture("p", wire, mode, model, body.as_bytes())
        };
        let mut shelf = Shelf::new(vec![
            fixture(Wire::OpenaiChat, Mode::Nonstream, "a", "a1"),
            fixture(Wire::OpenaiChat, Mode::Nonstream, "a", "a2"),
            fixture(Wire::OpenaiChat, Mode::Nonstream, "b", "b"),
            fixture(Wire::OpenaiChat, Mode::Stream, "b", "b stream"),
            fixture(Wire::Gemini, Mode::Nonstream, "g", "g"),
            fixture(Wire::Gemini, Mode::Nonstream, "h", "h"),
            fixture(Wire::Anthropic, Mode::Nonstream, "c", "c"),
            Recording::fixture("q", Wire::OpenaiChat, Mode::Nonstream, "a", b"a of q"),
        ]);
        for (path, body, answer) in [
            (
                "/v1/chat/completions",
                json!({"stream": false, "model": "a"}),
                Some("a1"),
            ),
            (
                "/chat/completions",
                json!({"model": "a", "stream": false}),
                Some("a2"),
            ),
            (
                "/v1/chat/completions",
                json!({"model": "a"}),
                Some("a of q"),
            ),
            ("/x/y/chat/completions", json!({"model": "b"}), Some("b")),
            (
                "/v1/chat/completions",
                json!({"model": "b", "stream": true}),
                Some("b stream"),
            ),
            (
                "/v1/chat/completions",
                json!({"model": "z", "stream": true}),
                Some("b stream"),
            ),
            ("/v1beta/models/h:generateContent", json!({}), Some("h")),
            ("/v1/messages", json!({"model": "z"}), Some("c")),
            (
                "/q/v1/chat/completions",
                json!({"model": "a"}),
                Some("a of q"),
            ),
            ("/q/v1/messages", json!({"model": "c"}), None),
            ("/v1/models", json!({}), None),
            ("/v1/responses", json!({}), None),
        ] {
            let found = ask(&mut shelf, path, body);
            assert_eq!(found.as_deref(), answer, "{path}");
        }
    }
}
