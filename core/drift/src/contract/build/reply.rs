use std::collections::{BTreeMap, BTreeSet};

use toolwarden_model::reply::{FinishClass, Mode, Wire};

use super::signature::Signature;
use super::{MAX_WORDS, OTHERS, bump, keep_least, shortened};
use crate::contract::mark::Mark;
use crate::contract::rate::Rate;
use crate::contract::snapshot::{CaseContract, LeakSeen, NoteSeen, ReplyContract};
use crate::contract::suite::Expect;
use crate::contract::trial::{Measured, Trial};

/// The notes that say that something sent as a call is none.
const BROKEN: [&str; 2] = ["failed-call", "malformed-tool-calls"];

/// What holds of replies as wholes.
pub(super) struct ReplyBuild {
    wire: Wire,
    contract: ReplyContract,
    leaks: BTreeMap<(&'static str, &'static str), (u64, String)>,
    notes: BTreeMap<String, NoteSeen>,
    ids: BTreeSet<String>,
    /// The shapes of whole replies that wait for their streamed ones, by case and repetition.
    whole: BTreeMap<(String, u32), String>,
}

impl ReplyBuild {
    pub(super) fn new(wire: Wire) -> Self {
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
        reply: &Measured,
        case: &CaseContract,
        signature: &Signature,
    ) -> Vec<Mark> {
        let calls = !reply.calls.is_empty();
        match case.expect {
            Expect::Call => self.contract.emit.count(calls),
            Expect::NoCall => self.contract.false_emit.count(calls),
            Expect::Either => {}
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
        let broken = rules.filter(|rule| BROKEN.contains(rule));
        marks.extend(broken.map(|rule| Mark::Broken(rule.to_owned())));
        if !self.finish_reason(reply) {
            marks.push(Mark::Inconsistent);
        }
        marks
    }

    pub(super) fn finish(mut self, measured: u64) -> ReplyContract {
        let leaks = self.leaks.into_iter();
        self.contract.leaks = leaks
            .map(|((family, place), (replies, sentinel))| LeakSeen {
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

    fn ids(&mut self, reply: &Measured) {
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

    fn pair(&mut self, trial: &Trial, signature: &Signature) {
        let place = (trial.case.clone(), trial.repetition);
        match trial.mode {
            Mode::Nonstream => {
                self.whole.insert(place, signature.shape.clone());
            }
            Mode::Stream => {
                if let Some(whole) = self.whole.get(&place) {
                    let same = *whole == signature.shape;
                    self.contract.stream_equivalence.count(same);
                }
            }
        }
    }

    fn notes(&mut self, reply: &Measured) {
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
                note.pointer = shortened(pointer);
                note.message = shortened(message);
            }
        }
    }

    fn leaks(&mut self, reply: &Measured) -> Vec<Mark> {
        let mut told: BTreeMap<(&'static str, &'static str), String> = BTreeMap::new();
        for leak in &reply.leaks {
            let sentinel = told.entry((leak.family, leak.place.as_str())).or_default();
            keep_least(sentinel, &leak.sentinel);
        }
        self.contract.leaked.count(!told.is_empty());
        let mut marks = Vec::new();
        for (place, sentinel) in told {
            let (replies, kept) = self.leaks.entry(place).or_default();
            *replies += 1;
            keep_least(kept, &sentinel);
            marks.push(Mark::Leaked);
            marks.push(Mark::LeakOf {
                family: place.0.to_owned(),
                place: place.1.to_owned(),
            });
        }
        marks
    }

    fn finish_reason(&mut self, reply: &Measured) -> bool {
        let word = match &reply.finish {
            None => "null".to_owned(),
            Some(word) => word
                .as_str()
                .map_or_else(|| word.to_string(), str::to_owned),
        };
        bump(&mut self.contract.finish, &shortened(&word));
        bump(
            &mut self.contract.finish_classes,
            reply.finish_class.as_str(),
        );
        let consistent = self.consistent(reply);
        self.contract.finish_consistent.count(consistent);
        consistent
    }

    fn consistent(&self, reply: &Measured) -> bool {
        // Two wires have no word for calls.
        let silent = matches!(self.wire, Wire::OpenaiResponses | Wire::Gemini);
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
