//! Reads the settings of states, and of tools that use them.

use std::collections::BTreeMap;

use toolwarden_model::StateName;
use toolwarden_model::document::{DiagnosticKind, KeySpec, LocatedValue, Section};
use toolwarden_model::json::Pointer;

use super::read::PolicyReader;
use super::{PolicyProblem, StatePolicy, ToolPolicy};
use crate::input::is_well_formed;

const STATE: &[KeySpec] = &[KeySpec::new("single_use")];

impl PolicyReader {
    /// Reads the settings of states, by name.
    pub(super) fn state_rules(&mut self, root: &Section<'_>) -> BTreeMap<StateName, StatePolicy> {
        let mut states = BTreeMap::new();
        let Some(at) = root.said("states") else {
            return states;
        };
        for (name, at) in self.reader.named(at, "a state's name") {
            let mut state = StatePolicy::default();
            if !at.value.is_null() {
                let section = self.reader.section(&at, STATE);
                let single_use = section.said("single_use");
                state.single_use = single_use
                    .and_then(|at| self.reader.boolean(at))
                    .unwrap_or_default();
            }
            states.insert(StateName::new(name), state);
        }
        states
    }

    /// Reads the approval settings of a tool.
    pub(super) fn approval_rules(&mut self, section: &Section<'_>, tool: &mut ToolPolicy) {
        if let Some(at) = section.said("binds") {
            for (text, pointer) in self.reader.texts(at, "an argument's name") {
                let bound = if text.starts_with('/') {
                    Pointer::from(text.as_str())
                } else {
                    Pointer::of([text.as_str()])
                };
                if tool.binds.contains(&bound) {
                    let expected = "every argument once";
                    let found = format!("`{text}` twice");
                    self.reader
                        .report(&pointer, DiagnosticKind::WrongType { expected, found });
                } else {
                    tool.binds.push(bound);
                }
            }
            if tool.next_state.is_none() {
                self.reader.report(&at.pointer, PolicyProblem::BindsNothing);
            }
        }
        if let Some(at) = section.said("uses_state") {
            tool.uses_state = self.reader.boolean(at).unwrap_or(true);
        }
        if let Some(at) = section.said("outside") {
            tool.outside = self.reader.boolean(at).unwrap_or_default();
        }
    }

    /// Checks a tool's name: rules for a name that no call can have would protect nothing.
    pub(super) fn check_tool_name(&mut self, name: &str, at: &LocatedValue<'_>) {
        if !is_well_formed(name) {
            self.reader.report(&at.pointer, PolicyProblem::ToolName);
        }
    }
}
