//! Reads the rules of one tool.

use std::collections::BTreeSet;

use serde_json::Value;
use toolwarden_model::closest;
use toolwarden_model::document::{Key, Mistake, Placed, Section};

use super::read::{Reading, SCOPES};
use super::{DefinitionRef, EVERY, Limits, OutputMode, Permission, States, ToolPolicy};
use crate::window::Limit;

const TOOL: &[Key] = &[
    Key::new("group").or(&["groups"]).texts().may_be_empty(),
    Key::new("state").may_be_empty(),
    Key::new("available_in_states")
        .or(&["applicable_states"])
        .texts()
        .may_be_empty(),
    Key::new("rate_limit"),
    Key::new("required_permissions").texts(),
    Key::new("input_schema"),
    Key::new("output_schema"),
    Key::new("output"),
    Key::new("definition"),
    Key::new("binds").texts(),
    Key::new("uses_state"),
    Key::new("outside"),
    Key::new("version"),
    Key::new("name"),
    Key::new("description"),
    Key::new("type"),
    Key::new("mcp_tool_id").or(&["mcp_tool"]),
];
const DEFAULTS: &[Key] = &[
    Key::new("group").or(&["groups"]).texts().may_be_empty(),
    Key::new("state").may_be_empty(),
    Key::new("available_in_states")
        .or(&["applicable_states"])
        .texts()
        .may_be_empty(),
    Key::new("rate_limit"),
    Key::new("required_permissions").texts(),
    Key::new("output"),
];
const RATE_LIMIT: &[Key] = &[
    Key::new("limit"),
    Key::new("scope"),
    Key::new("agent"),
    Key::new("tool"),
    Key::new("window"),
];
const DEFINITION: &[Key] = &[Key::new("file"), Key::new("tool")];

impl Reading {
    pub(super) fn tool(&mut self, name: &str, at: &Placed<'_>) -> ToolPolicy {
        let mut tool = ToolPolicy::new(name);
        tool.pointer = at.pointer.clone();
        tool.limits = self.rate.limits();
        if at.value.is_null() {
            return tool;
        }
        let section = self.reader.section(at, TOOL);
        self.rules(&section, &mut tool);
        self.approval_rules(&section, &mut tool);
        self.schemas(name, &section, &mut tool);
        tool.version = self.line(&section, "version", "version");
        tool.title = self.line(&section, "name", "a tool's name");
        for key in ["description", "type", "mcp_tool_id"] {
            if let Some(at) = section.said(key) {
                self.reader.text(at);
            }
        }
        tool
    }

    /// What tools are held to that the policy does not name.
    pub(super) fn tool_defaults(&mut self, at: &Placed<'_>) -> ToolPolicy {
        let mut tool = ToolPolicy::discovered("", None, None, None, None);
        let section = self.reader.section(at, DEFAULTS);
        self.rules(&section, &mut tool);
        tool
    }

    /// What does not depend on what the tool takes and returns.
    pub(super) fn rules(&mut self, section: &Section<'_>, tool: &mut ToolPolicy) {
        if let Some(at) = section.get("group") {
            tool.groups = self.tool_groups(at);
        }
        if let Some(at) = section.said("state") {
            let state = self.reader.text(at).unwrap_or_default();
            tool.next_state = Some(state.to_owned()).filter(|state| !state.is_empty());
        }
        if let Some(at) = section.get("available_in_states") {
            tool.states = self.states(at);
            if tool.states == States::Only(BTreeSet::new()) {
                let message = "the list of states is empty: the tool is never available";
                self.warn(&at.pointer, message);
            }
        }
        if let Some(at) = section.said("rate_limit") {
            tool.limits = self.limits(at);
        }
        if let Some(at) = section.said("required_permissions") {
            for (text, pointer) in self.reader.texts(at, "a permission") {
                match Permission::parse(&text) {
                    Ok(permission) => tool.permissions.push(permission),
                    Err(invalid) => self.reader.error(&pointer, invalid),
                }
            }
            tool.permissions.sort();
            tool.permissions.dedup();
        }
        if let Some(at) = section.said("output") {
            let words = [
                ("off", OutputMode::Off),
                ("warn", OutputMode::Warn),
                ("enforce", OutputMode::Enforce),
            ];
            tool.output_mode = self.reader.word(at, &words).unwrap_or_default();
        }
    }

    pub(super) fn line(
        &mut self,
        section: &Section<'_>,
        key: &str,
        what: &'static str,
    ) -> Option<String> {
        let line = self.reader.line(section.said(key)?, what)?;
        Some(line.to_owned())
    }

    fn tool_groups(&mut self, at: &Placed<'_>) -> Vec<String> {
        let groups = if at.value.is_null() {
            Vec::new()
        } else {
            self.group_names(at)
        };
        if groups.is_empty() {
            let message = "the list of groups is empty: only a request for `*` reaches the tool";
            self.warn(&at.pointer, message);
        }
        if groups.iter().any(|group| group == EVERY) {
            let message =
                "`*` is no wildcard in a tool's groups: only a request for `*` reaches it";
            self.warn(&at.pointer, message);
        }
        groups
    }

    fn schemas(&mut self, name: &str, section: &Section<'_>, tool: &mut ToolPolicy) {
        if let Some(at) = section.said("input_schema") {
            tool.input_schema = self.schema(at);
        }
        if let Some(at) = section.said("output_schema") {
            tool.output_schema = self.schema(at);
        }
        let Some(at) = section.said("definition") else {
            return;
        };
        for other in ["input_schema", "output_schema"] {
            if section.said(other).is_some() {
                let one = "definition";
                self.reader
                    .error(&at.pointer, Mistake::Exclusive { one, other });
            }
        }
        tool.definition = self.definition(name, at);
    }

    fn schema(&mut self, at: &Placed<'_>) -> Value {
        if !matches!(at.value, Value::Object(_) | Value::Bool(_)) {
            self.reader.object(at);
        }
        at.value.clone()
    }

    fn definition(&mut self, name: &str, at: &Placed<'_>) -> Option<DefinitionRef> {
        let pointer = at.pointer.clone();
        if let Some(text) = at.value.as_str() {
            let (file, tool) = text.split_once('#').unwrap_or((text, name));
            return Some(DefinitionRef {
                file: file.to_owned(),
                tool: tool.to_owned(),
                pointer,
            });
        }
        let section = self.reader.section(at, DEFINITION);
        let file = self.reader.required(&section, "file")?;
        let file = self.reader.text(file)?.to_owned();
        let tool = match section.said("tool") {
            Some(at) => self.reader.text(at)?.to_owned(),
            None => name.to_owned(),
        };
        Some(DefinitionRef {
            file,
            tool,
            pointer,
        })
    }

    fn limits(&mut self, at: &Placed<'_>) -> Limits {
        if at.value.as_str() == Some("unlimited") {
            return Limits::default();
        }
        if let Some(word) = at.value.as_str() {
            if word.parse::<u64>().is_ok() {
                let expected = "a whole number without quotes";
                let found = format!("the text `{word}`");
                self.reader
                    .error(&at.pointer, Mistake::Type { expected, found });
                return Limits::default();
            }
            let mistake = Mistake::Word {
                word: word.to_owned(),
                suggestion: closest(word, ["unlimited"]),
                known: "unlimited, a whole number, or a mapping".to_owned(),
            };
            self.reader.error(&at.pointer, mistake);
            return Limits::default();
        }
        if !at.value.is_object() {
            let max = self.reader.count(at).unwrap_or(self.rate.limit.max);
            let limit = Limit {
                max,
                ..self.rate.limit
            };
            return self.rate.scope.of(limit);
        }
        let section = self.reader.section(at, RATE_LIMIT);
        let window = section
            .said("window")
            .and_then(|at| self.reader.duration(at));
        let window = window.unwrap_or(self.rate.limit.window);
        let mut limit = |key: &str| {
            let max = section.said(key).and_then(|at| self.reader.count(at));
            max.map(|max| Limit { max, window })
        };
        let (agent, tool, plain) = (limit("agent"), limit("tool"), limit("limit"));
        if agent.is_some() || tool.is_some() {
            for (other, given) in [
                ("limit", plain.is_some()),
                ("scope", section.said("scope").is_some()),
            ] {
                if given {
                    let one = if agent.is_some() { "agent" } else { "tool" };
                    self.reader
                        .error(&at.pointer, Mistake::Exclusive { one, other });
                }
            }
            return Limits { agent, tool };
        }
        let scope = section
            .said("scope")
            .and_then(|at| self.reader.word(at, SCOPES));
        let max = self.rate.limit.max;
        scope
            .unwrap_or(self.rate.scope)
            .of(plain.unwrap_or(Limit { max, window }))
    }
}
