use serde_json::Value;
use toolwarden_canon::RenamedTool;
use toolwarden_canon::reply::{self, ReplyLimits};
use toolwarden_canon::request::{
    ModelRequest, RequestBody, reply_message, request, result_messages,
};
use toolwarden_model::Tool;
use toolwarden_model::json::Object;
use toolwarden_model::reply::{StreamMode, WireApi};

use super::plan::extra_members;
use crate::provider::Provider;
use crate::suite::{ProbeCase, ProbeSuite, ProbeTurn};

/// A case with several turns, and everything that its later requests need.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    wire: WireApi,
    model: String,
    mode: StreamMode,
    tools: Vec<Tool>,
    temperature: Option<f64>,
    extra: Object,
    messages: Vec<Value>,
    /// The later turns, with their names.
    turns: Vec<(String, ProbeTurn)>,
}

impl Conversation {
    /// The conversation of a case that has later turns.
    pub(super) fn of(
        provider: &Provider,
        suite: &ProbeSuite,
        case: &ProbeCase,
        mode: StreamMode,
    ) -> Option<Self> {
        let turns = case.turns.iter().enumerate();
        let turns: Vec<_> = turns
            .map(|(at, turn)| (case.turn_name(at), turn.clone()))
            .collect();
        (!turns.is_empty()).then(|| Self {
            wire: provider.wire,
            model: provider.model_id.clone(),
            mode,
            tools: suite.tools.clone(),
            temperature: suite.sampling.temperature,
            extra: extra_members(provider, suite, case),
            messages: case.messages.clone(),
            turns,
        })
    }

    /// The messages of the first request.
    pub(super) fn first_messages(&self) -> Vec<Value> {
        self.messages.clone()
    }

    /// The name of a later turn, counted from 0.
    pub(super) fn turn_name(&self, turn: usize) -> Option<&str> {
        self.turns.get(turn).map(|(name, _)| name.as_str())
    }

    /// The names of the later turns.
    pub(super) fn turn_names(&self) -> impl Iterator<Item = &str> {
        self.turns.iter().map(|(name, _)| name.as_str())
    }

    /// The request of a later turn: the messages so far, the reply in this body, and the results of
    /// its calls. `None` if the reply calls none of the tools that the turn has results for.
    pub(super) fn next_request(
        &self,
        turn: usize,
        messages: &mut Vec<Value>,
        body: &[u8],
        renamed: &[RenamedTool],
    ) -> Option<RequestBody> {
        let (_, turn) = self.turns.get(turn)?;
        let limits = ReplyLimits {
            body_bytes: body.len().max(ReplyLimits::default().body_bytes),
            ..ReplyLimits::default()
        };
        let reply = reply::read(self.wire, self.mode, body, &limits).ok()?;
        let said = reply_message(self.wire, &reply, body, renamed);
        let results = result_messages(&said, |tool| turn.result(tool));
        if !turn.continues(called_tools(&said)) {
            return None;
        }
        messages.push(said);
        messages.extend(results);
        messages.extend(turn.messages.iter().cloned());
        let ask = ModelRequest {
            model: &self.model,
            messages,
            tools: &self.tools,
            tool_choice: turn.tool_choice.as_ref(),
            mode: self.mode,
            temperature: self.temperature,
            max_tokens: None,
            extra: &self.extra,
        };
        Some(request(self.wire, &ask))
    }
}

fn called_tools(message: &Value) -> impl Iterator<Item = &str> {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    let calls = calls.into_iter().flatten();
    calls.filter_map(|call| call.pointer("/function/name")?.as_str())
}
