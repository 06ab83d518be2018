//! Finds the bytes of an answer that show a finding.

use std::collections::BTreeMap;

use toolwarden_canon::reply::{self, ReplyLimits};
use toolwarden_canon::{FormatChoice, canonicalize};
use toolwarden_model::Tool;
use toolwarden_model::reply::ArgumentsClass;
use toolwarden_probe::capture::Capture;
use toolwarden_probe::{Exchange, ReplyObserver, TrialKey};
use toolwarden_trials::{MeasuredReply, Snapshot, TrialChange, TrialRule};

use super::page::Evidence;

/// The most answers that are read again.
const MAX_ANSWERS: usize = 2_000;
/// How much of a body is quoted before and after the place that shows the finding.
const QUOTED: (usize, usize) = (200, 1_400);

/// The answers of one model, read again.
pub(super) struct EvidenceFinder<'c> {
    answers: Vec<(&'c TrialKey, &'c Exchange, MeasuredReply)>,
}

impl<'c> EvidenceFinder<'c> {
    /// The answers that belong to a snapshot.
    pub(super) fn new(captures: &'c [Capture], taken: &Snapshot) -> Self {
        let mut answers = Vec::new();
        let mut observers: BTreeMap<String, ReplyObserver> = BTreeMap::new();
        let ours = captures.iter().filter(|it| {
            it.provider == taken.provider
                && it.model_id == taken.model_id
                && it.suite == taken.suite
        });
        for capture in ours {
            for (key, exchange) in capture.exchanges.iter().take(MAX_ANSWERS) {
                let limits = ReplyLimits::default();
                let read = reply::read(capture.wire, key.mode, &exchange.body, &limits);
                let is_success = exchange.status.is_some_and(|it| (200..300).contains(&it));
                let Some(reply) = read.ok().filter(|_| is_success) else {
                    continue;
                };
                // The request says which tools were offered; most requests offer the same ones.
                let offered = exchange.request.body.get("tools");
                let offered = offered.map(ToString::to_string).unwrap_or_default();
                let observer = observers
                    .entry(offered)
                    .or_insert_with_key(|offered| ReplyObserver::new(&tools(offered)));
                answers.push((key, exchange, observer.observe(reply, &[], None)));
            }
        }
        Self { answers }
    }

    /// The answer that shows a finding best.
    pub(super) fn find(&self, row: &TrialChange) -> Option<Evidence> {
        let ranked = self.answers.iter().map(|answer| {
            let (key, _, measured) = answer;
            (rank(row, key, measured), answer)
        });
        let shown = ranked.filter(|(rank, _)| *rank > 0);
        // The first of equals, so that the page does not depend on chance.
        let best = shown.min_by_key(|(rank, _)| std::cmp::Reverse(*rank))?;
        let (_, (key, exchange, _)) = best;
        let body = String::from_utf8_lossy(&exchange.body);
        let needle = row.tool.as_deref().unwrap_or_default();
        let (text, is_cut) = excerpt(&body, needle);
        Some(Evidence {
            case: key.case.clone(),
            mode: key.mode.as_str(),
            repetition: key.repetition,
            status: exchange.status.unwrap_or_default(),
            text,
            is_cut,
        })
    }
}

fn tools(offered: &str) -> Vec<Tool> {
    let value = serde_json::from_str(offered).unwrap_or_default();
    let read = canonicalize(value, FormatChoice::Detect);
    let found = read.into_iter().flat_map(|it| it.tools);
    found.map(|it| it.tool).collect()
}

/// How well an answer shows a finding; 0 if it does not.
fn rank(row: &TrialChange, key: &TrialKey, measured: &MeasuredReply) -> u8 {
    let rule = |rule: &TrialRule| row.evidence.rule == *rule;
    let calls = || {
        let calls = measured.calls.iter();
        calls.filter(|it| row.tool.as_deref().is_some_and(|tool| it.name == tool))
    };
    if let Some(case) = row.pointer.as_str().strip_prefix("/cases/") {
        return u8::from(key.case == case);
    }
    if rule(&TrialRule::Leak) {
        return u8::from(!measured.leaks.is_empty());
    }
    if let Some(note) = row.pointer.as_str().strip_prefix("/replies/notes/") {
        return u8::from(measured.notes.iter().any(|it| it.0 == note));
    }
    if row.tool.is_none() {
        return 0;
    }
    let at_place = calls().any(|it| {
        let mut faults = it.faults.iter();
        faults.any(|fault| fault.pointer == row.pointer)
    });
    let faulty = calls().any(|it| !it.faults.is_empty());
    let odd = calls().any(|it| it.class != ArgumentsClass::JsonObjectString);
    match (at_place, faulty, odd, calls().next().is_some()) {
        (true, true, _, _) => 4,
        (_, true, _, _) => 3,
        (_, _, true, _) => 2,
        (_, _, _, true) => 1,
        _ => 0,
    }
}

/// The part of a body around the first occurrence of a text.
fn excerpt(body: &str, needle: &str) -> (String, bool) {
    let place = body.find(needle).unwrap_or_default();
    let before = body.get(..place).unwrap_or_default().chars().count();
    let start = before.saturating_sub(QUOTED.0);
    let length = QUOTED.0 + QUOTED.1;
    let text: String = body.chars().skip(start).take(length).collect();
    let is_cut = start > 0 || body.chars().nth(start + length).is_some();
    (text, is_cut)
}
