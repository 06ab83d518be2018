use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_model::reply::{
    FinishClass, LeakPlace, NotMeasured, Reply, ReplyCall, ReplyNote, TokenUsage, TrialFailure,
    WireApi,
};

use super::leaks::{self, has_visible_text};
use super::note_rules::{self, NoteRule};
use super::{ReplyLimits, finish};

/// Builds a reply while the body is read.
#[derive(Debug)]
pub(super) struct ReplyBuilder<'l> {
    pub(super) limits: &'l ReplyLimits,
    wire: WireApi,
    reply: Reply,
    /// How many notes of each rule occurred, including those over the limit.
    counts: BTreeMap<&'static str, usize>,
}

impl<'l> ReplyBuilder<'l> {
    pub(super) fn new(wire: WireApi, limits: &'l ReplyLimits) -> Self {
        Self {
            limits,
            wire,
            reply: Reply::default(),
            counts: BTreeMap::new(),
        }
    }

    pub(super) fn note(&mut self, rule: NoteRule, pointer: Pointer, message: impl Into<String>) {
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

    pub(super) fn set_model(&mut self, model: Option<&Value>) {
        let word = model.and_then(Value::as_str).filter(|it| !it.is_empty());
        self.reply.model = word.map(str::to_owned);
    }

    pub(super) fn set_usage(&mut self, usage: TokenUsage) {
        self.reply.usage = usage;
    }

    pub(super) fn has_usage(&self) -> bool {
        self.reply.usage != TokenUsage::default()
    }

    pub(super) fn add_text(&mut self, text: &str) {
        self.reply.text.push_str(text);
    }

    pub(super) fn has_text(&self) -> bool {
        !self.reply.text.is_empty()
    }

    pub(super) fn add_reasoning(&mut self, text: &str) {
        self.reply.reasoning.push_str(text);
    }

    pub(super) fn set_finish(&mut self, finish: Option<Value>) {
        self.reply.finish = finish.filter(|it| !it.is_null());
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.reply.calls.is_empty()
    }

    /// Adds a call, or a note if it has no usable name.
    pub(super) fn add_call(
        &mut self,
        pointer: Pointer,
        name: Option<&Value>,
        id: Option<Value>,
        arguments: Option<Value>,
    ) -> Result<(), NotMeasured> {
        let name = match name {
            Some(Value::String(name)) if !name.trim().is_empty() => name.clone(),
            Some(Value::String(_)) => {
                self.note_malformed(pointer, "the name of the call is blank");
                return Ok(());
            }
            Some(Value::Null) | None => {
                self.note_malformed(pointer, "the call has no name");
                return Ok(());
            }
            Some(other) => {
                let found = toolwarden_model::json::type_name(other);
                self.note_malformed(
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

    pub(super) fn note_malformed(&mut self, pointer: Pointer, message: impl Into<String>) {
        self.note(note_rules::MALFORMED_TOOL_CALLS, pointer, message);
    }

    /// Checks the complete reply and returns it.
    pub(super) fn finish(mut self) -> Reply {
        self.reply.finish_class = finish::classify_finish(self.wire, self.reply.finish.as_ref());
        self.check_markup();
        self.check_content();
        self.check_finish();
        if !self.has_usage() {
            let message = "the reply does not report how many tokens were used";
            self.note(note_rules::USAGE_MISSING, Pointer::root(), message);
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

    fn check_markup(&mut self) {
        let (text_at, reasoning_at) = match self.wire {
            // Which of several members held the reasoning is not kept.
            WireApi::OpenaiChat => ("/choices/0/message/content", "/choices/0/message"),
            WireApi::OpenaiResponses => ("/output", "/output"),
            WireApi::Anthropic => ("/content", "/content"),
            WireApi::Gemini => ("/candidates/0/content/parts", "/candidates/0/content/parts"),
        };
        for leak in leaks::text_leaks(&self.reply) {
            let (rule, at, place) = match leak.place {
                LeakPlace::Text if leak.family == leaks::THINKING => {
                    (note_rules::LEAKED_REASONING, text_at, "text")
                }
                LeakPlace::Text => (note_rules::LEAKED_CALL, text_at, "text"),
                LeakPlace::Reasoning | LeakPlace::Arguments => {
                    (note_rules::MARKUP_IN_REASONING, reasoning_at, "reasoning")
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
            let leaks = leaks::argument_leaks(call.arguments.as_ref());
            found.extend(leaks.into_iter().map(|leak| {
                let message = format!(
                    "`{}` ({}) is in the arguments of `{}`",
                    leak.sentinel, leak.family, call.name
                );
                (call.pointer.clone(), message)
            }));
        }
        for (pointer, message) in found {
            self.note(note_rules::MARKUP_IN_ARGUMENTS, pointer, message);
        }
    }

    fn check_content(&mut self) {
        if self.has_calls() || has_visible_text(&self.reply.text) {
            return;
        }
        let failed = matches!(
            self.reply.finish_class,
            FinishClass::Failed | FinishClass::Filtered
        );
        if !self.reply.reasoning.trim().is_empty() || !self.reply.text.trim().is_empty() {
            let message = "there is reasoning, but neither text nor a call";
            self.note(note_rules::REASONING_ONLY, Pointer::root(), message);
        } else if !failed {
            let message = "there is neither text nor reasoning nor a call";
            self.note(note_rules::EMPTY_REPLY, Pointer::root(), message);
        }
    }

    fn check_finish(&mut self) {
        let class = self.reply.finish_class;
        let Some(word) = self.reply.finish.clone() else {
            let message = "the reply does not say why the model stopped";
            self.note(note_rules::MISSING_FINISH, Pointer::root(), message);
            return;
        };
        let at = Pointer::from(match self.wire {
            WireApi::OpenaiChat => "/choices/0/finish_reason",
            WireApi::OpenaiResponses => "/status",
            WireApi::Anthropic => "/stop_reason",
            WireApi::Gemini => "/candidates/0/finishReason",
        });
        if !finish::is_standard(self.wire, &word) {
            let message = format!("{word} is not a finish reason of {}", self.wire);
            self.note(note_rules::UNUSUAL_FINISH, at.clone(), message);
        }
        let says_calls = matches!(self.wire, WireApi::OpenaiChat | WireApi::Anthropic);
        match (class, self.has_calls()) {
            (FinishClass::Calls, false) => {
                let message = format!("the finish is {word}, and there are no calls");
                self.note(note_rules::FINISH_WITHOUT_CALLS, at, message);
            }
            (FinishClass::Length, true) => {
                let message = "the tokens ran out in a reply with calls";
                self.note(note_rules::CUT_BY_LENGTH, at, message);
            }
            (FinishClass::Done | FinishClass::Other | FinishClass::Absent, true) if says_calls => {
                let message = format!("there are calls, and the finish is {word}");
                self.note(note_rules::CALLS_WITHOUT_FINISH, at, message);
            }
            (FinishClass::Failed, _) if self.wire == WireApi::Gemini => {
                let message = format!("the provider accepted no call from the model: {word}");
                self.note(note_rules::FAILED_CALL, at, message);
            }
            _ => {}
        }
    }
}

/// Refuses a reply that exceeds the limit on calls.
pub(super) fn check_calls(count: usize, limits: &ReplyLimits) -> Result<(), NotMeasured> {
    if count <= limits.calls {
        return Ok(());
    }
    Err(NotMeasured {
        failure: TrialFailure::TooLarge,
        detail: format!("more than {} calls in one reply", limits.calls),
    })
}
