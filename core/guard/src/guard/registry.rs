//! Tools that are added and removed at run time.

use std::sync::Arc;

use toolwarden_model::StateName;

use super::compile::{SchemaCache, UnusableSchema};
use super::groups::GroupTable;
use super::{Guard, GuardedTool, ToolTable};
use crate::graph::{Graph, WorkflowTool};
use crate::policy::ToolPolicy;

impl Guard {
    /// A copy of this guard with a tool added or replaced. It reports a schema that cannot be used, and the
    /// guard denies every call of that tool.
    #[must_use]
    pub fn with_tool(&self, tool: &ToolPolicy) -> (Self, Vec<UnusableSchema>) {
        let mut groups = GroupTable::clone(&self.groups);
        let mut tools = ToolTable::clone(&self.tools);
        let mut checks = SchemaCache::default();
        tools.add(tool, None, &mut groups, &mut checks);
        let mut guard = self.clone();
        guard.tools = Arc::new(tools.covered_by(&self.patterns));
        guard.groups = Arc::new(groups);
        (guard, checks.into_faults())
    }

    /// A copy of this guard without a tool; the same guard if no tool has that name.
    #[must_use]
    pub fn without_tool(&self, name: &str) -> Self {
        let mut tools = ToolTable::clone(&self.tools);
        if let Some(id) = tools.by_name.remove(name)
            && let Some(tool) = tools.list.get_mut(id as usize)
        {
            // Its number is not reused: deny rules refer to tools by number.
            *tool = Arc::new(GuardedTool {
                removed: true,
                ..GuardedTool::clone(tool)
            });
        }
        let mut guard = self.clone();
        guard.tools = Arc::new(tools);
        guard
    }

    /// Whether a tool with this name exists.
    #[must_use]
    pub fn has_tool(&self, name: &str) -> bool {
        self.tool(name).is_some()
    }

    /// The names of all tools, sorted.
    #[must_use]
    pub fn tool_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.active_tools().map(|tool| &*tool.name).collect();
        names.sort_unstable();
        names
    }

    /// The workflow of the existing tools.
    #[must_use]
    pub fn graph(&self) -> Graph {
        let steps = self.active_tools().map(|tool| WorkflowTool {
            tool: &tool.name,
            next: tool.next_state.as_ref().map(StateName::as_str),
            states: tool
                .states
                .as_ref()
                .map(|it| it.iter().map(StateName::as_str).collect()),
        });
        let principals = self.principals.list.iter().map(|(_, profile)| profile);
        let profiles = principals.chain([&self.principals.anyone]);
        let own = profiles.filter_map(|profile| profile.initial_state.as_ref());
        let initial = self.sessions.initial_states.with(own);
        Graph::of_tools(&steps.collect::<Vec<_>>(), &initial)
    }

    /// The existing tools, in the order of the policy.
    pub(super) fn active_tools(&self) -> impl Iterator<Item = &Arc<GuardedTool>> {
        self.tools.list.iter().filter(|tool| !tool.removed)
    }
}
