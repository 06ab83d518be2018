use std::collections::{BTreeMap, BTreeSet};

use toolwarden_model::reply::{FinishClass, StreamMode, WireApi};

use super::signature::ReplySignature;
use super::{MAX_WORDS, OTHERS, bump, keep_smallest, shorten};
use crate::defects::CLIENT_RULE_PREFIX;
use crate::rate::Rate;
use crate::snapshot::{CaseContract, LeakCount, NoteCount, ReplyContract};
use crate::suite::CallExpectation;
use crate::trial::{MeasuredReply, Trial};
use crate::trial_mark::TrialMark;

/// The notes that report that something sent as a call is not one.
const BROKEN_CALL_NOTES: [&str; 2] = ["failed-call", "malformed-tool-calls"];

/// Collects the properties of whole replies.
pub(super) struct ReplyStatsBuilder {
    wire: WireApi,
    contract: ReplyContract,
    leaks: BTreeMap<(&'static str, &'static str), (u64, String)>,
    notes: BTreeMap<String, NoteCount>,
    ids: BTreeSet<String>,
    /// The shapes of whole replies whose streamed counterpart is pending, by case and repetition.
    whole: BTreeMap<(String, u32), String>,
}

impl ReplyStatsBuilder {
    pub(super) fn new(wire: WireApi) -> Self {
        Self {
            wire,
            contract: ReplyContract::default(),
            leaks: BTreeMap::new(),
            notes: BTreeMap::new(),
            ids: BTreeSet::new(),
            whole: BTreeMap::new(),
        }
    }

    pub(super) fn observe(
        &mut self,
        trial: &Trial,
        reply: &MeasuredReply,
        case: &CaseContract,
        signature: &ReplySignature,
    ) -> Vec<TrialMark> {
        let calls = !reply.calls.is_empty();
        match case.expect {
            CallExpectation::Call => self.contract.emit.count(calls),
            CallExpectation::NoCall => self.contract.false_emit.count(calls),
            CallExpectation::Either => {}
        }
        let arity = u64::try_from(reply.calls.len()).unwrap_or(u64::MAX);
        *self.contract.parallel_arity.entry(arity).or_default() += 1;
        self.contract.text.count(reply.has_text);
        self.ids(reply);
        self.pair(trial, signature);
        self.notes(reply);
        let mut marks = Vec::new();
        marks.extend(self.leaks(reply));
        let rules = reply.notes.iter().map(|(rule, ..)| rule.as_str());
        let broken = rules.filter(|rule| {
            BROKEN_CALL_NOTES.contains(rule) || rule.starts_with(CLIENT_RULE_PREFIX)
        });
        marks.extend(broken.map(|rule| TrialMark::Broken(rule.to_owned())));
        if !self.finish_reason(reply) {
            marks.push(TrialMark::Inconsistent);
        }
        marks
    }

    pub(super) fn finish(mut self, measured: u64) -> ReplyContract {
        let leaks = self.leaks.into_iter();
        self.contract.leaks = leaks
            .map(|((family, place), (replies, sentinel))| LeakCount {
                family: family.to_owned(),
                place: place.to_owned(),
                replies: Rate::new(replies, measured),
                sentinel,
            })
            .collect();
        for note in self.notes.values_mut() {
            note.replies.of = measured;
        }
        self.contract.notes = self.notes;
        self.contract
    }

    fn ids(&mut self, reply: &MeasuredReply) {
        let mut here = BTreeSet::new();
        let mut unique = true;
        for id in reply.calls.iter().filter_map(|call| call.id.as_ref()) {
            if id.is_null() || id == "" {
                continue;
            }
            let id = id.to_string();
            let new = !self.ids.contains(&id) && !here.contains(&id);
            self.contract.unique_in_session.count(new);
            unique &= here.insert(id);
        }
        if !here.is_empty() {
            self.contract.unique_in_turn.count(unique);
        }
        self.ids.extend(here);
    }

    fn pair(&mut self, trial: &Trial, signature: &ReplySignature) {
        let place = (trial.case.clone(), trial.repetition);
        match trial.mode {
            StreamMode::Nonstream => {
                self.whole.insert(place, signature.shape.clone());
            }
            StreamMode::Stream => {
                if let Some(whole) = self.whole.get(&place) {
                    let same = *whole == signature.shape;
                    self.contract.stream_equivalence.count(same);
                }
            }
        }
    }

    fn notes(&mut self, reply: &MeasuredReply) {
        let mut told: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
        for (rule, pointer, message) in &reply.notes {
            let first = told.entry(rule).or_insert((pointer, message));
            *first = (*first).min((pointer, message));
        }
        for (rule, (pointer, message)) in told {
            let room = self.notes.len() < MAX_WORDS || self.notes.contains_key(rule);
            let rule = if room { rule } else { OTHERS };
            let note = self.notes.entry(rule.to_owned()).or_default();
            note.replies.hits += 1;
            if note.replies.hits == 1 {
                note.pointer = shorten(pointer);
                note.message = shorten(message);
            }
        }
    }

    fn leaks(&mut self, reply: &MeasuredReply) -> Vec<TrialMark> {
        let mut told: BTreeMap<(&'static str, &'static str), String> = BTreeMap::new();
        for leak in &reply.leaks {
            let sentinel = told.entry((leak.family, leak.place.as_str())).or_default();
            keep_smallest(sentinel, &leak.sentinel);
        }
        self.contract.leaked.count(!told.is_empty());
        let mut marks = Vec::new();
        for (place, sentinel) in told {
            let (replies, kept) = self.leaks.entry(place).or_default();
            *replies += 1;
            keep_smallest(kept, &sentinel);
            marks.push(TrialMark::Leaked);
            marks.push(TrialMark::LeakOf {
                family: place.0.to_owned(),
                place: place.1.to_owned(),
            });
        }
        marks
    }

    fn finish_reason(&mut self, reply: &MeasuredReply) -> bool {
        let word = match &reply.finish {
            None => "null".to_owned(),
            Some(word) => word
                .as_str()
                .map_or_else(|| word.to_string(), str::to_owned),
        };
        bump(&mut self.contract.finish, &shorten(&word));
        bump(
            &mut self.contract.finish_classes,
            reply.finish_class.as_str(),
        );
        let consistent = self.is_finish_consistent(reply);
        self.contract.finish_consistent.count(consistent);
        consistent
    }

    fn is_finish_consistent(&self, reply: &MeasuredReply) -> bool {
        // Two wire APIs have no finish reason for calls.
        let silent = matches!(self.wire, WireApi::OpenaiResponses | WireApi::Gemini);
        let for_calls = match reply.finish_class {
            FinishClass::Calls => true,
            FinishClass::Done => silent && !reply.calls.is_empty(),
            FinishClass::Length
            | FinishClass::Filtered
            | FinishClass::Failed
            | FinishClass::Other
            | FinishClass::Absent => false,
        };
        for_calls != reply.calls.is_empty()
    }
}
