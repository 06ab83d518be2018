use std::collections::{BTreeMap, BTreeSet};

use super::{MAX_WORDS, OTHERS, first_of_kind, shorten};
use crate::rate::Rate;
use crate::snapshot::UndeclaredTool;
use crate::trial::MeasuredReply;
use crate::trial_mark::TrialMark;

/// The tools that were called without being offered.
#[derive(Default)]
pub(super) struct UndeclaredToolsBuilder(BTreeMap<String, UndeclaredCount>);

#[derive(Default)]
struct UndeclaredCount {
    calls: u64,
    trials: u64,
}

impl UndeclaredToolsBuilder {
    /// Adds a reply, and returns its marks for such tools.
    pub(super) fn observe(
        &mut self,
        reply: &MeasuredReply,
        declared: impl Fn(&str) -> bool,
    ) -> Vec<TrialMark> {
        let mut names = BTreeSet::new();
        for call in reply.calls.iter().filter(|call| !declared(&call.name)) {
            let mut name = shorten(&call.name);
            if self.0.len() >= MAX_WORDS && !self.0.contains_key(&name) {
                name = OTHERS.to_owned();
            }
            self.0.entry(name.clone()).or_default().calls += 1;
            names.insert(name);
        }
        for name in &names {
            self.0.entry(name.clone()).or_default().trials += 1;
        }
        let mut marks: Vec<TrialMark> = first_of_kind(names)
            .map(TrialMark::UndeclaredTool)
            .collect();
        if !marks.is_empty() {
            marks.push(TrialMark::Undeclared);
        }
        marks
    }

    pub(super) fn finish(self, measured: u64) -> BTreeMap<String, UndeclaredTool> {
        let tools = self.0.into_iter().map(|(name, seen)| {
            let tool = UndeclaredTool {
                calls: seen.calls,
                trials: Rate::new(seen.trials, measured),
            };
            (name, tool)
        });
        tools.collect()
    }
}
