use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::json::to_canonical_string;

use super::signature::ReplySignature;
use super::{first_of_kind, shorten};
use crate::rate::{Rate, round_share};
use crate::snapshot::{CaseContract, MarkCount};
use crate::statistics::pass_hat;
use crate::suite::{CallExpectation, ExpectedCall, SuiteCase};
use crate::trial::MeasuredReply;
use crate::trial_mark::TrialMark;

/// The maximum `k` for which pass^k is reported.
const MAX_CONSECUTIVE: u64 = 10;

/// Collects the outcome of one case.
pub(super) struct CaseBuilder {
    case: SuiteCase,
    pub(super) contract: CaseContract,
    outcomes: BTreeMap<Vec<TrialMark>, u64>,
    shapes: BTreeMap<String, u64>,
    arguments: BTreeMap<String, u64>,
}

impl CaseBuilder {
    pub(super) fn new(case: SuiteCase) -> Self {
        let expected = case.calls.iter().map(|call| call.tool.clone());
        let contract = CaseContract {
            expect: case.expect,
            expected: expected.collect(),
            forbid: case.forbid.clone(),
            ..CaseContract::default()
        };
        Self {
            case,
            contract,
            outcomes: BTreeMap::new(),
            shapes: BTreeMap::new(),
            arguments: BTreeMap::new(),
        }
    }

    pub(super) const fn plan(&mut self) {
        self.contract.planned += 1;
    }

    pub(super) fn observe(
        &mut self,
        reply: &MeasuredReply,
        mut marks: Vec<TrialMark>,
        seen: ReplySignature,
    ) {
        self.contract.measured += 1;
        let met = meets_expectation(&self.case, reply);
        self.contract.met.count(met);
        if !met {
            marks.push(TrialMark::Missed);
        }
        let forbidden = reply.calls.iter().map(|it| shorten(&it.name));
        let forbidden = forbidden.filter(|it| self.contract.forbids(it));
        marks.extend(first_of_kind(forbidden.collect()).map(TrialMark::Forbidden));
        if self.case.calls.iter().any(|it| it.arguments.is_some()) {
            let exact = has_exact_arguments(&self.case.calls, reply);
            self.contract.exact.count(exact);
            if !exact {
                marks.push(TrialMark::Inexact);
            }
        }
        let made = count_expected_calls(&self.case.calls, reply);
        let expected = u64::try_from(self.case.calls.len()).unwrap_or(u64::MAX);
        self.contract.recall.add(Rate::new(made, expected));
        marks.sort();
        marks.dedup();
        *self.outcomes.entry(marks).or_default() += 1;
        *self.shapes.entry(seen.shape).or_default() += 1;
        *self.arguments.entry(seen.arguments).or_default() += 1;
    }

    pub(super) fn finish(mut self) -> CaseContract {
        let measured = self.contract.measured;
        let most = |counts: &BTreeMap<String, u64>| counts.values().max().copied().unwrap_or(0);
        self.contract.modal_shape = Rate::new(most(&self.shapes), measured);
        self.contract.modal_arguments = Rate::new(most(&self.arguments), measured);
        let in_a_row = 1..=measured.min(MAX_CONSECUTIVE);
        let chances = in_a_row.filter_map(|k| pass_hat(self.contract.met, k));
        self.contract.pass_hat = chances.map(round_share).collect();
        let outcomes = self.outcomes.into_iter();
        self.contract.outcomes = outcomes
            .map(|(marks, trials)| MarkCount { trials, marks })
            .collect();
        self.contract
    }
}

fn meets_expectation(case: &SuiteCase, reply: &MeasuredReply) -> bool {
    let forbidden = |name: &String| case.forbid.contains(name);
    if reply.calls.iter().any(|call| forbidden(&call.name)) {
        return false;
    }
    let all = || usize::try_from(count_expected_calls(&case.calls, reply)) == Ok(case.calls.len());
    match case.expect {
        CallExpectation::NoCall => reply.calls.is_empty(),
        CallExpectation::Call => !reply.calls.is_empty() && all(),
        CallExpectation::Either => reply.calls.is_empty() || all(),
    }
}

/// How many of the expected calls were made, whatever their arguments; each call counts once.
fn count_expected_calls(expected: &[ExpectedCall], reply: &MeasuredReply) -> u64 {
    let mut calls: Vec<&str> = reply.calls.iter().map(|it| it.name.as_str()).collect();
    let mut made = 0;
    for call in expected {
        if let Some(at) = calls.iter().position(|name| *name == call.tool) {
            calls.swap_remove(at);
            made += 1;
        }
    }
    made
}

/// Whether every call with expected arguments was made with them; numbers are compared by value.
fn has_exact_arguments(expected: &[ExpectedCall], reply: &MeasuredReply) -> bool {
    let calls = reply.calls.iter().filter_map(|call| {
        let value = Value::Object(call.value.clone()?);
        Some((call.name.as_str(), to_canonical_string(&value)))
    });
    let mut calls: Vec<(&str, String)> = calls.collect();
    expected.iter().all(|call| {
        let Some(arguments) = &call.arguments else {
            return true;
        };
        let wanted = to_canonical_string(arguments);
        let found = calls
            .iter()
            .position(|(name, value)| *name == call.tool && *value == wanted);
        found.map(|at| calls.swap_remove(at)).is_some()
    })
}
