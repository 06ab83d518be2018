use std::collections::{BTreeMap, BTreeSet};

use super::{MAX_WORDS, OTHERS, few, shortened};
use crate::contract::mark::Mark;
use crate::contract::rate::Rate;
use crate::contract::snapshot::UndeclaredTool;
use crate::contract::trial::Measured;

/// The tools that were called without being offered.
#[derive(Default)]
pub(super) struct UndeclaredBuild(BTreeMap<String, Seen>);

#[derive(Default)]
struct Seen {
    calls: u64,
    trials: u64,
}

impl UndeclaredBuild {
    /// Takes in a reply, and says what it shows of such tools.
    pub(super) fn observe(
        &mut self,
        reply: &Measured,
        declared: impl Fn(&str) -> bool,
    ) -> Vec<Mark> {
        let mut names = BTreeSet::new();
        for call in reply.calls.iter().filter(|call| !declared(&call.name)) {
            let mut name = shortened(&call.name);
            if self.0.len() >= MAX_WORDS && !self.0.contains_key(&name) {
                name = OTHERS.to_owned();
            }
            self.0.entry(name.clone()).or_default().calls += 1;
            names.insert(name);
        }
        for name in &names {
            self.0.entry(name.clone()).or_default().trials += 1;
        }
        let mut marks: Vec<Mark> = few(names).map(Mark::UndeclaredTool).collect();
        if !marks.is_empty() {
            marks.push(Mark::Undeclared);
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
