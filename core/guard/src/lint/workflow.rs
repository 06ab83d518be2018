//! Rules about states and transitions.

use std::collections::{BTreeMap, BTreeSet};

use toolwarden_model::StateName;
use toolwarden_model::json::Pointer;

use super::{LintReport, LintRule, join_names};
use crate::graph::{EdgeOrigin, EdgeTarget, Graph};
use crate::policy::{Policy, StateSet, ToolPolicy};

pub(super) fn check(policy: &Policy, report: &mut LintReport) {
    if policy.tools.is_empty() {
        return;
    }
    let workflow = Workflow::of(policy);
    workflow.unreachable_states(report);
    workflow.unreachable_tools(report);
    workflow.ends(report);
    workflow.free_transitions(report);
}

struct Workflow<'p> {
    policy: &'p Policy,
    graph: Graph,
    /// For each state, the first tool whose list names it.
    listed_by: BTreeMap<&'p str, &'p ToolPolicy>,
    /// For each state, the first tool that leads to it.
    led_to_by: BTreeMap<&'p str, &'p ToolPolicy>,
    /// For each state, the other states with a transition to it.
    before: BTreeMap<usize, BTreeSet<usize>>,
    /// The states with a transition to another state.
    left: BTreeSet<usize>,
    /// The states that a tool available in every state leads to.
    free: BTreeSet<usize>,
}

impl<'p> Workflow<'p> {
    fn of(policy: &'p Policy) -> Self {
        let mut workflow = Self {
            policy,
            graph: Graph::of(policy),
            listed_by: BTreeMap::new(),
            led_to_by: BTreeMap::new(),
            before: BTreeMap::new(),
            left: BTreeSet::new(),
            free: BTreeSet::new(),
        };
        for tool in &policy.tools {
            if let StateSet::Only(states) = &tool.states {
                for state in states {
                    workflow.listed_by.entry(state.as_str()).or_insert(tool);
                }
            }
            if let Some(state) = &tool.next_state {
                workflow.led_to_by.entry(state.as_str()).or_insert(tool);
            }
        }
        for edge in &workflow.graph.edges {
            match (edge.from, edge.to) {
                (EdgeOrigin::State(from), EdgeTarget::State(to)) => {
                    workflow.before.entry(to).or_default().insert(from);
                    workflow.left.insert(from);
                }
                (EdgeOrigin::AnyState, EdgeTarget::State(to)) => {
                    workflow.free.insert(to);
                }
                (_, EdgeTarget::Same) => {}
            }
        }
        workflow
    }

    fn unreachable_states(&self, report: &mut LintReport) {
        for (number, state) in self.graph.states.iter().enumerate() {
            if state.reachable {
                continue;
            }
            let name = &state.name;
            let before = self.before.get(&number).into_iter().flatten();
            let before = before.filter_map(|number| self.graph.states.get(*number));
            let before = join_names(before.map(|state| state.name.as_str()));
            let why = if before.is_empty() {
                "no tool leads to it".to_owned()
            } else {
                format!("only {before} leads to it, which cannot be reached either")
            };
            let message = format!(
                "state `{name}` is never reached: {why}; give a tool `state: {name}`, or add it to \
                 `sessions.initial_states`"
            );
            report.add(LintRule::UnreachableState, self.place_of(name), message);
        }
    }

    fn unreachable_tools(&self, report: &mut LintReport) {
        let starts_anywhere = self.policy.sessions.initial_states == StateSet::Every;
        for tool in self.policy.all_rules() {
            let StateSet::Only(states) = &tool.states else {
                continue;
            };
            if states.iter().any(|state| self.is_reachable(state.as_str())) {
                continue;
            }
            // The graph omits states that only features besides tools name.
            if starts_anywhere && !states.is_empty() {
                continue;
            }
            let (kind, name) = (tool.kind, &tool.name);
            let message = if states.is_empty() {
                format!(
                    "{kind} `{name}` is available in no state; name its states, or omit \
                     `available_in_states` for all"
                )
            } else {
                let states = join_names(states.iter().map(StateName::as_str));
                format!("{kind} `{name}` is available only in {states}, which no session reaches")
            };
            let pointer = tool.pointer.child(STATES);
            report.add(LintRule::UnreachableTool, pointer, message);
        }
    }

    fn ends(&self, report: &mut LintReport) {
        for (number, state) in self.graph.states.iter().enumerate() {
            let name = &state.name;
            if state.dead_end {
                let way = match self.led_to_by.get(name.as_str()) {
                    Some(tool) => format!("tool `{}` leads to", tool.name),
                    None => "sessions start in".to_owned(),
                };
                let message = format!(
                    "{way} state `{name}`, where no tool is available; add `{name}` to the \
                     `available_in_states` of a tool"
                );
                report.add(LintRule::DeadEnd, self.place_of(name), message);
            }
            let entered = self.before.contains_key(&number) || self.free.contains(&number);
            let elsewhere = self.free.iter().any(|free| *free != number);
            let stays = !elsewhere && !self.left.contains(&number);
            if state.reachable && !state.dead_end && entered && stays {
                let message = format!(
                    "a session in state `{name}` stays there: no tool leads anywhere else; if it is \
                     not the last step, give a tool available there a `state`"
                );
                report.add(LintRule::TerminalState, self.place_of(name), message);
            }
        }
    }

    /// Reports transitions that every state allows, in policies whose states restrict something.
    fn free_transitions(&self, report: &mut LintReport) {
        if self.listed_by.is_empty() {
            return;
        }
        for tool in &self.policy.tools {
            let (StateSet::Every, Some(next)) = (&tool.states, &tool.next_state) else {
                continue;
            };
            let name = &tool.name;
            let pointer = tool.pointer.child(NEXT);
            let others = self
                .graph
                .states
                .iter()
                .filter(|state| *next != *state.name);
            if self.is_initial(next.as_str()) {
                if others.count() > 0 {
                    let message = format!(
                        "tool `{name}` is available in every state and leads to `{next}`: any call \
                         of it starts the workflow over; omit its `state`, or name the states \
                         it is meant for in `available_in_states`"
                    );
                    report.add(LintRule::SilentReset, pointer, message);
                }
                continue;
            }
            let mut steps = others.filter(|state| !state.initial).peekable();
            if steps.peek().is_some() {
                let steps = join_names(steps.map(|state| state.name.as_str()));
                let message = format!(
                    "tool `{name}` is available in every state and leads to `{next}`: it skips the \
                     steps before `{next}` and undoes those after it ({steps}); name the states it \
                     is meant for in `available_in_states`"
                );
                report.add(LintRule::StateJump, pointer, message);
            }
        }
    }

    fn is_reachable(&self, state: &str) -> bool {
        let state = self.graph.find(state);
        let state = state.and_then(|number| self.graph.states.get(number));
        state.is_some_and(|state| state.reachable)
    }

    fn is_initial(&self, state: &str) -> bool {
        let state = self.graph.find(state);
        let state = state.and_then(|number| self.graph.states.get(number));
        state.is_some_and(|state| state.initial)
    }

    /// The first place that mentions a state: the end of a transition, a list, or an initial state.
    fn place_of(&self, state: &str) -> Pointer {
        let led = self
            .led_to_by
            .get(state)
            .map(|tool| tool.pointer.child(NEXT));
        let join_names = self
            .listed_by
            .get(state)
            .map(|tool| tool.pointer.child(STATES));
        led.or(join_names)
            .unwrap_or_else(|| Pointer::of(["sessions", "initial_states"]))
    }
}

const NEXT: &str = "state";
const STATES: &str = "available_in_states";
