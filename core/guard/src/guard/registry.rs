//! Tools that come and go while a guard is in use.

use std::sync::Arc;

use super::compile::{Checks, SchemaFault};
use super::groups::Groups;
use super::{Guard, Tool, Tools};
use crate::graph::{Graph, StepOf};
use crate::policy::ToolPolicy;

impl Guard {
    /// This guard with one more tool, or with another one of the same name. A schema that cannot be
    /// used is told, and no call of the tool passes.
    #[must_use]
    pub fn with_tool(&self, tool: &ToolPolicy) -> (Self, Vec<SchemaFault>) {
        let mut groups = Groups::clone(&self.groups);
        let mut tools = Tools::clone(&self.tools);
        let mut checks = Checks::default();
        tools.add(tool, None, &mut groups, &mut checks);
        let mut guard = self.clone();
        guard.tools = Arc::new(tools.covered_by(&self.patterns));
        guard.groups = Arc::new(groups);
        (guard, checks.into_faults())
    }

    /// This guard without a tool; the same guard where there is none of that name.
    #[must_use]
    pub fn without_tool(&self, name: &str) -> Self {
        let mut tools = Tools::clone(&self.tools);
        if let Some(id) = tools.by_name.remove(name)
            && let Some(tool) = tools.list.get_mut(id as usize)
        {
            // Its number is not given to another tool: deny rules name tools by number.
            *tool = Arc::new(Tool {
                gone: true,
                ..Tool::clone(tool)
            });
        }
        let mut guard = self.clone();
        guard.tools = Arc::new(tools);
        guard
    }

    /// Whether there is a tool of this name.
    #[must_use]
    pub fn has_tool(&self, name: &str) -> bool {
        self.tool(name).is_some()
    }

    /// The names of all tools, sorted.
    #[must_use]
    pub fn tool_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.present().map(|tool| &*tool.name).collect();
        names.sort_unstable();
        names
    }

    /// The workflow of the tools that are there.
    #[must_use]
    pub fn graph(&self) -> Graph {
        let steps = self.present().map(|tool| StepOf {
            tool: &tool.name,
            next: tool.next_state.as_deref(),
            states: tool
                .states
                .as_ref()
                .map(|it| it.iter().map(|it| &**it).collect()),
        });
        let principals = self.principals.list.iter().map(|(_, profile)| profile);
        let profiles = principals.chain([&self.principals.anyone]);
        let own = profiles.filter_map(|profile| profile.initial_state.as_deref());
        let initial = self.sessions.initial_states.with(own);
        Graph::of_steps(&steps.collect::<Vec<_>>(), &initial)
    }

    /// The tools that are there, in the order of the policy.
    pub(super) fn present(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.list.iter().filter(|tool| !tool.gone)
    }
}
