use serde_json::Value;
use toolwarden_model::json::to_canonical_string;

use super::recorded_exchange::{RecordedExchange, wants_stream};

/// The recordings, and how often each was served.
#[derive(Debug)]
pub(super) struct Recordings {
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    recording: RecordedExchange,
    body: String,
    times_served: u64,
}

/// A request for a recording.
#[derive(Debug)]
pub(super) struct ReplayRequest {
    pub(super) path: String,
    pub(super) body: Value,
    /// The trial it belongs to, if one of our runs sent it.
    pub(super) trial: Option<String>,
}

impl Recordings {
    pub(super) fn new(recordings: Vec<RecordedExchange>) -> Self {
        let slots = recordings.into_iter().map(|recording| Slot {
            body: to_canonical_string(&recording.exchange.request.body),
            recording,
            times_served: 0,
        });
        Self {
            slots: slots.collect(),
        }
    }

    /// The recording that fits best. Among equal fits, the one served least often; among those, the
    /// earliest.
    pub(super) fn best_match(&mut self, question: &ReplayRequest) -> Option<RecordedExchange> {
        let body = to_canonical_string(&question.body);
        let named = question.path.split('/').nth(1).unwrap_or_default();
        let is_known = self.slots.iter().any(|it| it.recording.provider == named);
        let fitting = self.slots.iter_mut().filter_map(|slot| {
            if is_known && slot.recording.provider != named {
                return None;
            }
            let fit = slot.match_level(question, &body)?;
            // A run measures what was recorded: each of its trials has its own recording.
            let measures = question.trial.is_none() || slot.measures(question, fit);
            measures.then_some((fit, slot))
        });
        // The first of equals wins.
        let best = fitting.min_by_key(|(fit, slot)| (std::cmp::Reverse(*fit), slot.times_served));
        let (_, slot) = best?;
        slot.times_served += 1;
        Some(slot.recording.clone())
    }
}

/// How well a recording fits a request, from worst to best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MatchLevel {
    /// The same path.
    Path,
    /// The same path, and the same mode: streamed or not.
    Mode,
    /// Also the same model.
    Model,
    /// The same request.
    Request,
    /// The same request in the same trial.
    Trial,
}

impl Slot {
    /// Whether the recording is of this very trial. A fixture is one reply of its model to any suite,
    /// so it is the first trial and no other.
    fn measures(&self, question: &ReplayRequest, fit: MatchLevel) -> bool {
        if self.recording.is_fixture() {
            let first = format!("{}/0/1", self.recording.mode().as_str());
            return fit >= MatchLevel::Model && question.trial.as_deref() == Some(&first);
        }
        fit == MatchLevel::Trial
    }

    fn match_level(&self, question: &ReplayRequest, body: &str) -> Option<MatchLevel> {
        let recorded = &self.recording.exchange.request;
        let ours = endpoint(&recorded.url_path);
        if ours != endpoint(&question.path) {
            return None;
        }
        if self.body == body && model(&recorded.url_path) == model(&question.path) {
            let same_trial = question.trial.is_some() && self.recording.trial == question.trial;
            return Some(if same_trial {
                MatchLevel::Trial
            } else {
                MatchLevel::Request
            });
        }
        if self.recording.wants_stream() != wants_stream(&question.path, &question.body) {
            return Some(MatchLevel::Path);
        }
        let asked = question.body.get("model").and_then(Value::as_str);
        let asked = asked.or_else(|| model(&question.path));
        Some(if asked == Some(self.recording.model.as_str()) {
            MatchLevel::Model
        } else {
            MatchLevel::Mode
        })
    }
}

/// The kind of endpoint that a path names, whatever precedes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProviderEndpoint<'p> {
    Chat,
    Responses,
    Messages,
    Generate,
    Other(&'p str),
}

fn endpoint(path: &str) -> ProviderEndpoint<'_> {
    let path = path.split('?').next().unwrap_or_default();
    let path = path.trim_end_matches('/');
    if path.ends_with("/chat/completions") {
        ProviderEndpoint::Chat
    } else if path.ends_with("/responses") {
        ProviderEndpoint::Responses
    } else if path.ends_with("/messages") {
        ProviderEndpoint::Messages
    } else if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") {
        ProviderEndpoint::Generate
    } else {
        ProviderEndpoint::Other(path)
    }
}

/// The model in a Gemini path.
fn model(path: &str) -> Option<&str> {
    let (_, rest) = path.split_once("/models/")?;
    rest.rsplit_once(':').map(|(model, _)| model)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolwarden_model::reply::{StreamMode, WireApi};

    use super::*;

    /// A run never gets more trials than were recorded, nor those of another request or model.
    #[test]
    fn a_run_gets_the_recordings_of_its_own_trials_only() {
        let fixture = RecordedExchange::from_fixture(
            "p",
            WireApi::OpenaiChat,
            StreamMode::Nonstream,
            "a",
            b"fixture",
        );
        let recorded = |trial: &str, question: &str, reply: &str| {
            let mut recording = RecordedExchange::from_fixture(
                "q",
                WireApi::OpenaiChat,
                StreamMode::Nonstream,
                "b",
                reply.as_bytes(),
            )
            .into_recording(trial);
            recording.exchange.request.body = json!({"model": "b", "messages": [question]});
            recording
        };
        let mut recordings = Recordings::new(vec![
            fixture,
            recorded("nonstream/0/1", "weather?", "b0"),
            recorded("nonstream/1/1", "weather?", "b1"),
        ]);
        let ask = |model: &str, question: &str, trial: &str| ReplayRequest {
            path: "/v1/chat/completions".to_owned(),
            body: json!({"model": model, "messages": [question]}),
            trial: Some(trial.to_owned()),
        };
        for (question, answer) in [
            (ask("b", "weather?", "nonstream/0/1"), Some("b0")),
            (ask("b", "weather?", "nonstream/1/1"), Some("b1")),
            // The same run again gets the same replies.
            (ask("b", "weather?", "nonstream/0/1"), Some("b0")),
            (ask("b", "weather?", "nonstream/2/1"), None),
            (ask("b", "weather?", "nonstream/1/2"), None),
            (ask("b", "another suite", "nonstream/0/1"), None),
            (ask("c", "weather?", "nonstream/0/1"), None),
            (ask("a", "any suite", "nonstream/0/1"), Some("fixture")),
            (ask("a", "any suite", "nonstream/1/1"), None),
        ] {
            let found = recordings.best_match(&question);
            let found = found.map(|it| String::from_utf8(it.exchange.body).unwrap());
            assert_eq!(found.as_deref(), answer, "{question:?}");
        }
    }

    fn best_model(recordings: &mut Recordings, path: &str, body: Value) -> Option<String> {
        let question = ReplayRequest {
            path: path.to_owned(),
            body,
            trial: None,
        };
        let found = recordings.best_match(&question)?;
        Some(String::from_utf8(found.exchange.body).unwrap())
    }

    #[test]
    fn the_closest_recording_answers_and_equals_take_turns() {
        let fixture = |wire, mode, model, body: &str| {
            RecordedExchange::from_fixture("p", wire, mode, model, body.as_bytes())
        };
        let mut recordings = Recordings::new(vec![
            fixture(WireApi::OpenaiChat, StreamMode::Nonstream, "a", "a1"),
            fixture(WireApi::OpenaiChat, StreamMode::Nonstream, "a", "a2"),
            fixture(WireApi::OpenaiChat, StreamMode::Nonstream, "b", "b"),
            fixture(WireApi::OpenaiChat, StreamMode::Stream, "b", "b stream"),
            fixture(WireApi::Gemini, StreamMode::Nonstream, "g", "g"),
            fixture(WireApi::Gemini, StreamMode::Nonstream, "h", "h"),
            fixture(WireApi::Anthropic, StreamMode::Nonstream, "c", "c"),
            RecordedExchange::from_fixture(
                "q",
                WireApi::OpenaiChat,
                StreamMode::Nonstream,
                "a",
                b"a of q",
            ),
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
            let found = best_model(&mut recordings, path, body);
            assert_eq!(found.as_deref(), answer, "{path}");
        }
    }
}
