//! The workflow of a policy: its states, and the tools that lead from one to another.

mod arrange;
mod dot;
mod label;
mod layers;
mod layout;
mod mermaid;
mod svg;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use toolwarden_model::StateName;

use crate::policy::{INITIAL_STATE, Policy, StateSet};

pub use dot::dot;
pub use mermaid::mermaid;
pub use svg::svg;

/// The states of a policy and the transitions between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Every state the policy names, sorted by name.
    pub states: Vec<GraphState>,
    /// Every transition from one state to another or to itself, sorted.
    pub edges: Vec<GraphEdge>,
}

/// A state of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphState {
    /// Its name.
    pub name: String,
    /// Whether a session may start in it.
    pub initial: bool,
    /// Whether a session can ever be in it.
    pub reachable: bool,
    /// Whether a session can reach it and no tool is available in it.
    pub dead_end: bool,
}

/// The tools that lead from one state to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphEdge {
    /// Where the tools are available.
    pub from: EdgeOrigin,
    /// Where a successful call leads.
    pub to: EdgeTarget,
    /// The tools' names, in the order of the policy.
    pub tools: Vec<String>,
}

/// Where a tool is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeOrigin {
    /// In every state, listed once instead of once for each state.
    AnyState,
    /// In the state with this index.
    State(usize),
}

/// Where a successful call leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeTarget {
    /// The session stays in its current state.
    Same,
    /// To the state with this index.
    State(usize),
}

/// The part of one tool in a workflow.
pub(crate) struct WorkflowTool<'s> {
    pub(crate) tool: &'s str,
    /// Where a successful call leads.
    pub(crate) next: Option<&'s str>,
    /// The states it is available in; `None` means every state.
    pub(crate) states: Option<Vec<&'s str>>,
}

impl Graph {
    /// The workflow of a policy. It does not consider who may call a tool.
    #[must_use]
    pub fn of(policy: &Policy) -> Self {
        let steps = policy.tools.iter().map(|tool| WorkflowTool {
            tool: &tool.name,
            next: tool.next_state.as_ref().map(StateName::as_str),
            states: match &tool.states {
                StateSet::Every => None,
                StateSet::Only(states) => Some(states.iter().map(StateName::as_str).collect()),
            },
        });
        let initial = &policy.sessions.initial_states;
        let initial = initial.with(policy.own_initial_states());
        Self::of_tools(&steps.collect::<Vec<_>>(), &initial)
    }

    /// The workflow of a list of tools.
    pub(crate) fn of_tools(steps: &[WorkflowTool<'_>], initial: &StateSet) -> Self {
        let names = named_states(steps, initial);
        let number: BTreeMap<&str, usize> = names.iter().copied().zip(0..).collect();
        let mut tools: BTreeMap<(EdgeOrigin, EdgeTarget), Vec<String>> = BTreeMap::new();
        for step in steps {
            let next = step.next.and_then(|state| number.get(state)).copied();
            let mut lead = |from: EdgeOrigin| {
                let to = match next {
                    Some(state) if from != EdgeOrigin::State(state) => EdgeTarget::State(state),
                    Some(_) | None => EdgeTarget::Same,
                };
                tools
                    .entry((from, to))
                    .or_default()
                    .push(step.tool.to_owned());
            };
            match &step.states {
                None => lead(EdgeOrigin::AnyState),
                Some(states) => states
                    .iter()
                    .filter_map(|state| number.get(state))
                    .for_each(|state| lead(EdgeOrigin::State(*state))),
            }
        }
        let edges = tools.into_iter();
        let edges = edges.map(|((from, to), tools)| GraphEdge { from, to, tools });
        let mut graph = Self {
            states: names
                .iter()
                .map(|name| GraphState {
                    name: (*name).to_owned(),
                    initial: starts_in(initial, name),
                    reachable: false,
                    dead_end: false,
                })
                .collect(),
            edges: edges.collect(),
        };
        graph.mark_reachable();
        graph
    }

    /// The index of a state.
    #[must_use]
    pub fn find(&self, state: &str) -> Option<usize> {
        self.states
            .binary_search_by(|it| it.name.as_str().cmp(state))
            .ok()
    }

    fn mark_reachable(&mut self) {
        let mut pending: Vec<usize> = Vec::new();
        for (number, state) in self.states.iter().enumerate() {
            if state.initial {
                pending.push(number);
            }
        }
        let mut onward: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut occupied = BTreeSet::new();
        let mut everywhere = false;
        for edge in &self.edges {
            match (edge.from, edge.to) {
                (EdgeOrigin::AnyState, EdgeTarget::State(to)) => pending.push(to),
                (EdgeOrigin::State(from), EdgeTarget::State(to)) => {
                    onward.entry(from).or_default().push(to);
                }
                (_, EdgeTarget::Same) => {}
            }
            match edge.from {
                EdgeOrigin::AnyState => everywhere = true,
                EdgeOrigin::State(from) => {
                    occupied.insert(from);
                }
            }
        }
        while let Some(number) = pending.pop() {
            let Some(state) = self.states.get_mut(number) else {
                continue;
            };
            if !state.reachable {
                state.reachable = true;
                state.dead_end = !everywhere && !occupied.contains(&number);
                pending.extend(onward.get(&number).into_iter().flatten());
            }
        }
    }
}

/// Whether a session may start in a state; a client may name the state, but need not.
fn starts_in(initial: &StateSet, state: &str) -> bool {
    INITIAL_STATE == *state || initial.contains(state)
}

fn named_states<'s>(steps: &[WorkflowTool<'s>], initial: &'s StateSet) -> Vec<&'s str> {
    let mut names = BTreeSet::new();
    for step in steps {
        names.extend(step.next);
        names.extend(step.states.iter().flatten());
    }
    if let StateSet::Only(states) = initial {
        names.extend(states.iter().map(StateName::as_str));
    }
    names.insert(INITIAL_STATE.as_str());
    names.into_iter().collect()
}
