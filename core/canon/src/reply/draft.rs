use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_model::reply::{
    Failure, FinishClass, LeakPlace, NotMeasured, Reply, ReplyCall, ReplyNote, Usage, Wire,
};

use super::leaks::{self, has_visible_text};
use super::rules::{self, Rule};
use super::{Limits, finish};

/// A reply that is being read.
#[derive(Debug)]
pub(super) struct Draft<'l> {
    pub(super) limits: &'l Limits,
    wire: Wire,
    reply: Reply,
    /// How many notes of each rule there would be without a limit.
    counts: BTreeMap<&'static str, usize>,
}

impl<'l> Draft<'l> {
    pub(super) fn new(wire: Wire, limits: &'l Limits) -> Self {
        Self {
            limits,
            wire,
            reply: Reply::default(),
            counts: BTreeMap::new(),
        }
    }

    pub(super) fn note(&mut self, rule: Rule, pointer: Pointer, message: impl Into<String>) {
        let count = self.counts.entry(rule.id).or_default();
        *count += 1;
        if *count <= self.limits.notes {
            self.reply.notes.push(ReplyNote {
                rule: rule.id,
                pointer,
                message: message.into(),
            });
        }
    }

    pub(super) fn model(&mut self, model: Option<&Value>) {
        let word = model.and_then(Value::as_str).filter(|it| !it.is_empty());
        self.reply.model = word.map(str::to_owned);
    }

    pub(super) fn usage(&mut self, usage: Usage) {
        self.reply.usage = usage;
    }

    pub(super) fn has_usage(&self) -> bool {
        self.reply.usage != Usage::default()
    }

    pub(super) fn text(&mut self, text: &str) {
        self.reply.text.push_str(text);
    }

    pub(super) fn has_text(&self) -> bool {
        !self.reply.text.is_empty()
    }

    pub(super) fn reasoning(&mut self, text: &str) {
        self.reply.reasoning.push_str(text);
    }

    pub(super) fn stopped(&mut self, finish: Option<Value>) {
        self.reply.finish = finish.filter(|it| !it.is_null());
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.reply.calls.is_empty()
    }

    /// Adds a call, or a note that it is none because it has no name.
    pub(super) fn call(
        &mut self,
        pointer: Pointer,
        name: Option<&Value>,
        id: Option<Value>,
        arguments: Option<Value>,
    ) -> Result<(), NotMeasured> {
        let name = match name {
            Some(Value::String(name)) if !name.trim().is_empty() => name.clone(),
            Some(Value::String(_)) => {
                self.malformed(pointer, "the name of the call is blank");
                return Ok(());
            }
            Some(Value::Null) | None => {
                self.malformed(pointer, "the call has no name");
                return Ok(());
            }
            Some(other) => {
                let found = toolwarden_model::json::type_name(other);
                self.malformed(
                    pointer,
                    format!("the name of the call is {found}, expected a string"),
                );
                return Ok(());
            }
        };
        check_calls(self.reply.calls.len() + 1, self.limits)?;
        self.reply.calls.push(ReplyCall {
            name,
            id,
            arguments,
            pointer,
        });
        Ok(())
    }

    pub(super) fn malformed(&mut self, pointer: Pointer, message: impl Into<String>) {
        self.note(rules::MALFORMED_TOOL_CALLS, pointer, message);
    }

    /// Looks at the whole and gives it away.
    pub(super) fn finish(mut self) -> Reply {
        self.reply.finish_class = finish::finish_class(self.wire, self.reply.finish.as_ref());
        self.judge_markup();
        self.judge_content();
        self.judge_finish();
        if !self.has_usage() {
            let message = "nothing tells how many tokens were used";
            self.note(rules::USAGE_MISSING, Pointer::root(), message);
        }
        for (rule, count) in self.counts {
            let more = count.saturating_sub(self.limits.notes);
            if more > 0 {
                self.reply.notes.push(ReplyNote {
                    rule,
                    pointer: Pointer::root(),
                    message: format!("{more} more like this"),
                });
            }
        }
        self.reply
    }

    fn judge_markup(&mut self) {
        let (text_at, reasoning_at) = match self.wire {
            // Which of several members held the reasoning is not kept.
            Wire::OpenaiChat => ("/choices/0/message/content", "/choices/0/message"),
            Wire::OpenaiResponses => ("/output", "/output"),
            Wire::Anthropic => ("/content", "/content"),
            Wire::Gemini => ("/candidates/0/content/parts", "/candidates/0/content/parts"),
        };
        for leak in leaks::of_text(&self.reply) {
            let (rule, at, place) = match leak.place {
                LeakPlace::Text if leak.family == leaks::THINKING => {
                    (rules::LEAKED_REASONING, text_at, "text")
                }
                LeakPlace::Text => (rules::LEAKED_CALL, text_at, "text"),
                LeakPlace::Reasoning | LeakPlace::Arguments => {
                    (rules::MARKUP_IN_REASONING, reasoning_at, "reasoning")
                }
            };
            let message = if leak.family == leaks::JSON_TEXT {
                "a call stands as JSON in the text".to_owned()
            } else {
                format!("`{}` ({}) is in the {place}", leak.sentinel, leak.family)
            };
            self.note(rule, Pointer::from(at), message);
        }
        let mut found = Vec::new();
        for call in &self.reply.calls {
            let leaks = leaks::of_arguments(call.arguments.as_ref());
            found.extend(leaks.into_iter().map(|leak| {
                let message = format!(
                    "`{}` ({}) is in the arguments of `{}`",
                    leak.sentinel, leak.family, call.name
                );
                (call.pointer.clone(), message)
            }));
        }
        for (pointer, message) in found {
            self.note(rules::MARKUP_IN_ARGUMENTS, pointer, message);
        }
    }

    fn judge_content(&mut self) {
        if self.has_calls() || has_visible_text(&self.reply.text) {
            return;
        }
        let failed = matches!(
            self.reply.finish_class,
            FinishClass::Failed | FinishClass::Filtered
        );
        if !self.reply.reasoning.trim().is_empty() || !self.reply.text.trim().is_empty() {
            let message = "there is reasoning, but neither text nor a call";
            self.note(rules::REASONING_ONLY, Pointer::root(), message);
        } else if !failed {
            let message = "there is neither text nor reasoning nor a call";
            self.note(rules::EMPTY_REPLY, Pointer::root(), message);
        }
    }

    fn judge_finish(&mut self) {
        let class = self.reply.finish_class;
        let Some(word) = self.reply.finish.clone() else {
            let message = "nothing tells why the model stopped";
            self.note(rules::MISSING_FINISH, Pointer::root(), message);
            return;
        };
        let at = Pointer::from(match self.wire {
            Wire::OpenaiChat => "/choices/0/finish_reason",
            Wire::OpenaiResponses => "/status",
            Wire::Anthropic => "/stop_reason",
            Wire::Gemini => "/candidates/0/finishReason",
        });
        if !finish::is_usual(self.wire, &word) {
            let message = format!("{word} is no finish of {}", self.wire);
            self.note(rules::UNUSUAL_FINISH, at.clone(), message);
        }
        let says_calls = matches!(self.wire, Wire::OpenaiChat | Wire::Anthropic);
        match (class, self.has_calls()) {
            (FinishClass::Calls, false) => {
                let message = format!("the finish is {word}, and there are no calls");
                self.note(rules::FINISH_WITHOUT_CALLS, at, message);
            }
            (FinishClass::Length, true) => {
                let message = "the tokens ran out in a reply with calls";
                self.note(rules::CUT_BY_LENGTH, at, message);
            }
            (FinishClass::Done | FinishClass::Other | FinishClass::Absent, true) if says_calls => {
                let message = format!("there are calls, and the finish is {word}");
                self.note(rules::CALLS_WITHOUT_FINISH, at, message);
            }
            (FinishClass::Failed, _) if self.wire == Wire::Gemini => {
                let message = format!("the provider took no call from the model: {word}");
                self.note(rules::FAILED_CALL, at, message);
            }
            _ => {}
        }
    }
}

/// Refuses more calls than are read.
pub(super) fn check_calls(count: usize, limits: &Limits) -> Result<(), NotMeasured> {
    if count <= limits.calls {
        return Ok(());
    }
    Err(NotMeasured {
        failure: Failure::TooLarge,
        detail: format!("more than {} calls in one reply", limits.calls),
    })
}
