//! Reads the later turns of a case.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::document::{DiagnosticKind, KeySpec, LocatedValue, Section};
use toolwarden_trials::CallExpectation;

use super::read::SuiteReader;
use super::{ProbeCase, ProbeTurn};
use crate::probe_file::ProbeFileProblem;

/// The most turns of one case, the first included.
const MAX_TURNS: usize = 20;

const TURN: &[KeySpec] = &[
    KeySpec::new("results"),
    KeySpec::new("messages"),
    KeySpec::new("tool_choice").may_be_empty(),
    KeySpec::new("expect"),
    KeySpec::new("calls"),
    KeySpec::new("forbid").text_list(),
];

impl SuiteReader {
    /// The turns of a case whose first request has this `tool_choice`.
    pub(super) fn turns(&mut self, case: &Section<'_>, choice: Option<&Value>) -> Vec<ProbeTurn> {
        let Some(at) = case.said("turns") else {
            return Vec::new();
        };
        self.require_not_empty(at, "at least one turn");
        let items = self.reader.list(at);
        if items.len() >= MAX_TURNS {
            let expected = "at most 19 turns after the first";
            let found = format!("{} turns", items.len());
            let mistake = DiagnosticKind::WrongType { expected, found };
            self.reader.report(&at.pointer, mistake);
            return Vec::new();
        }
        // A choice that forces a call forces the first one only.
        let choice = choice.map(|_| Value::from("auto"));
        let last = items.len().saturating_sub(1);
        let turns = items.iter().enumerate();
        turns
            .map(|(at, item)| self.turn(item, choice.as_ref(), at < last))
            .collect()
    }

    fn turn(
        &mut self,
        at: &LocatedValue<'_>,
        choice: Option<&Value>,
        is_continued: bool,
    ) -> ProbeTurn {
        let section = self.reader.section(at, TURN);
        let results = match self.reader.required(&section, "results") {
            Some(at) => self.results(at),
            None => BTreeMap::new(),
        };
        let messages = section.said("messages").map(|at| self.messages(at));
        let own = section.get("tool_choice").map(|at| self.tool_choice(at));
        let choice = own.unwrap_or_else(|| choice.cloned());
        let expected = self.expected(&section, choice.as_ref(), is_continued);
        ProbeTurn {
            results,
            messages: messages.unwrap_or_default(),
            tool_choice: choice,
            expect: expected.expect,
            calls: expected.calls,
            forbid: expected.forbid,
        }
    }

    /// What each tool returns: a text, or JSON that is sent as text.
    fn results(&mut self, at: &LocatedValue<'_>) -> BTreeMap<String, String> {
        let mut results = BTreeMap::new();
        let Some(members) = self.reader.object(at) else {
            return results;
        };
        if members.is_empty() {
            let expected = "the result of at least one tool";
            let found = "none".to_owned();
            let mistake = DiagnosticKind::WrongType { expected, found };
            self.reader.report(&at.pointer, mistake);
        }
        for (tool, result) in members {
            let pointer = at.pointer.child(tool);
            self.tools.check(&mut self.reader, tool, &pointer);
            let text = match result {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            results.insert(tool.clone(), text);
        }
        results
    }

    /// A turn must not go by the name of another case.
    pub(super) fn check_turn_names(&mut self, at: &LocatedValue<'_>, cases: &[ProbeCase]) {
        for case in cases {
            let names = (0..case.turns.len()).map(|turn| case.turn_name(turn));
            for name in names.filter(|name| cases.iter().any(|it| it.name == *name)) {
                let what = "cases";
                self.reader
                    .report(&at.pointer, ProbeFileProblem::Twice { what, name });
            }
        }
    }

    /// Without a call there is nothing to continue from.
    pub(super) fn check_continued(&mut self, at: &LocatedValue<'_>, expect: CallExpectation) {
        if expect == CallExpectation::NoCall {
            self.reader
                .report(&at.pointer, ProbeFileProblem::TurnsOfNoCall);
        }
    }
}
