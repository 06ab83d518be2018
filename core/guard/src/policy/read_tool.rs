//! Reads the rules of one tool.

use std::collections::BTreeSet;

use serde_json::Value;
use toolwarden_model::did_you_mean;
use toolwarden_model::document::{DiagnosticKind, KeySpec, LocatedValue, Section};
use toolwarden_model::{GroupName, StateName};

use super::read::{PolicyReader, SCOPES};
use super::{DefinitionRef, EVERY_GROUP, OutputMode, Permission, StateSet, ToolLimits, ToolPolicy};
use crate::window::Limit;

const TOOL: &[KeySpec] = &[
    KeySpec::new("group")
        .alias(&["groups"])
        .text_list()
        .may_be_empty(),
    KeySpec::new("state").may_be_empty(),
    KeySpec::new("available_in_states")
        .alias(&["applicable_states"])
        .text_list()
        .may_be_empty(),
    KeySpec::new("rate_limit"),
    KeySpec::new("required_permissions").text_list(),
    KeySpec::new("input_schema"),
    KeySpec::new("output_schema"),
    KeySpec::new("output"),
    KeySpec::new("definition"),
    KeySpec::new("binds").text_list(),
    KeySpec::new("uses_state"),
    KeySpec::new("outside"),
    KeySpec::new("version"),
    KeySpec::new("name"),
    KeySpec::new("description"),
    KeySpec::new("type"),
    KeySpec::new("mcp_tool_id").alias(&["mcp_tool"]),
];
const DEFAULTS: &[KeySpec] = &[
    KeySpec::new("group")
        .alias(&["groups"])
        .text_list()
        .may_be_empty(),
    KeySpec::new("state").may_be_empty(),
    KeySpec::new("available_in_states")
        .alias(&["applicable_states"])
        .text_list()
        .may_be_empty(),
    KeySpec::new("rate_limit"),
    KeySpec::new("required_permissions").text_list(),
    KeySpec::new("output"),
];
const RATE_LIMIT: &[KeySpec] = &[
    KeySpec::new("limit"),
    KeySpec::new("scope"),
    KeySpec::new("agent"),
    KeySpec::new("tool"),
    KeySpec::new("window"),
];
const DEFINITION: &[KeySpec] = &[KeySpec::new("file"), KeySpec::new("tool")];

impl PolicyReader {
    pub(super) fn tool(&mut self, name: &str, at: &LocatedValue<'_>) -> ToolPolicy {
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

    /// Reads the defaults for tools that the policy does not name.
    pub(super) fn tool_defaults(&mut self, at: &LocatedValue<'_>) -> ToolPolicy {
        let mut tool = ToolPolicy::discovered("", None, None, None, None);
        let section = self.reader.section(at, DEFAULTS);
        self.rules(&section, &mut tool);
        tool
    }

    /// Reads the rules that do not depend on the tool's schemas.
    pub(super) fn rules(&mut self, section: &Section<'_>, tool: &mut ToolPolicy) {
        if let Some(at) = section.get("group") {
            tool.groups = self.tool_groups(at);
        }
        if let Some(at) = section.said("state") {
            let state = self.reader.text(at).unwrap_or_default();
            tool.next_state = Some(state).filter(|it| !it.is_empty()).map(StateName::new);
        }
        if let Some(at) = section.get("available_in_states") {
            tool.states = self.states(at);
            if tool.states == StateSet::Only(BTreeSet::new()) {
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
                    Err(invalid) => self.reader.report(&pointer, invalid),
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
        let line = self.reader.non_blank_text(section.said(key)?, what)?;
        Some(line.to_owned())
    }

    fn tool_groups(&mut self, at: &LocatedValue<'_>) -> Vec<GroupName> {
        let groups = if at.value.is_null() {
            Vec::new()
        } else {
            self.group_names(at)
        };
        if groups.is_empty() {
            let message = "the list of groups is empty: only a request for `*` reaches the tool";
            self.warn(&at.pointer, message);
        }
        if groups.contains(&EVERY_GROUP) {
            let message =
                "`*` is not a wildcard in a tool's groups: only a request for `*` reaches it";
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
                    .report(&at.pointer, DiagnosticKind::ConflictingKeys { one, other });
            }
        }
        tool.definition = self.definition(name, at);
    }

    fn schema(&mut self, at: &LocatedValue<'_>) -> Value {
        if !matches!(at.value, Value::Object(_) | Value::Bool(_)) {
            self.reader.object(at);
        }
        at.value.clone()
    }

    fn definition(&mut self, name: &str, at: &LocatedValue<'_>) -> Option<DefinitionRef> {
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

    fn limits(&mut self, at: &LocatedValue<'_>) -> ToolLimits {
        if at.value.as_str() == Some("unlimited") {
            return ToolLimits::default();
        }
        if let Some(word) = at.value.as_str() {
            if word.parse::<u64>().is_ok() {
                let expected = "a whole number without quotes";
                let found = format!("the text `{word}`");
                self.reader
                    .report(&at.pointer, DiagnosticKind::WrongType { expected, found });
                return ToolLimits::default();
            }
            let mistake = DiagnosticKind::UnknownWord {
                word: word.to_owned(),
                suggestion: did_you_mean(word, ["unlimited"]),
                known: "unlimited, a whole number, or a mapping".to_owned(),
            };
            self.reader.report(&at.pointer, mistake);
            return ToolLimits::default();
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
                        .report(&at.pointer, DiagnosticKind::ConflictingKeys { one, other });
                }
            }
            return ToolLimits { agent, tool };
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
