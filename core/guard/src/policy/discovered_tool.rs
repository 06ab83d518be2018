//! Tools that no policy names, because the gateway learns of them from servers.

use serde_json::Value;
use toolwarden_model::document::LocatedValue;
use toolwarden_model::json::{Object, Pointer};

use super::read::PolicyReader;
use super::{PolicyError, ToolLimits, ToolPolicy};

impl ToolPolicy {
    /// A tool as its server describes it: in the default group, in every state, for every principal,
    /// without a rate limit. A missing schema is not checked.
    #[must_use]
    pub fn discovered(
        name: &str,
        title: Option<String>,
        input_schema: Option<Value>,
        output_schema: Option<Value>,
        version: Option<String>,
    ) -> Self {
        let said = |schema: Option<Value>| {
            schema
                .filter(|it| !it.is_null())
                .unwrap_or_else(|| Value::Object(Object::new()))
        };
        Self {
            title,
            limits: ToolLimits::default(),
            input_schema: said(input_schema),
            output_schema: said(output_schema),
            version,
            ..Self::new(name)
        }
    }

    /// The same tool with the defaults for tools that the policy does not name: groups, states,
    /// permissions, limits and the output mode.
    #[must_use]
    pub fn with_defaults(self, defaults: &Self) -> Self {
        Self {
            groups: defaults.groups.clone(),
            next_state: defaults.next_state.clone(),
            states: defaults.states.clone(),
            permissions: defaults.permissions.clone(),
            limits: defaults.limits,
            output_mode: defaults.output_mode,
            ..self
        }
    }

    /// Reads the defaults for tools that the policy does not name, for [`Self::with_defaults`]. They have the
    /// keys of a tool in a policy, without those that describe a single tool. Missing keys have the values
    /// of [`Self::discovered`].
    ///
    /// # Errors
    /// Every mistake with its place in the value.
    pub fn read_defaults(value: &Value) -> Result<Self, Vec<PolicyError>> {
        let mut reading = PolicyReader::default();
        let at = LocatedValue {
            pointer: Pointer::root(),
            value,
        };
        let defaults = reading.tool_defaults(&at);
        let mistakes = reading.reader.into_diagnostics();
        if mistakes.is_empty() {
            return Ok(defaults);
        }
        let told = mistakes.into_iter().map(|(pointer, problem)| PolicyError {
            pointer,
            position: None,
            problem,
        });
        Err(told.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwarden_model::StateName;

    use crate::policy::{OutputMode, StateSet};
    use serde_json::json;

    #[test]
    fn defaults_are_read_as_a_tool_of_a_policy() {
        let defaults = ToolPolicy::read_defaults(&json!({
            "groups": ["files", "files/read"],
            "state": "read",
            "available_in_states": ["start"],
            "rate_limit": {"limit": 5, "window": "10s", "scope": "tool"},
            "required_permissions": "files:read",
            "output": "enforce",
        }));
        let tool = ToolPolicy::discovered(
            "fs__read",
            None,
            Some(json!({"type": "object"})),
            None,
            None,
        );
        let held = tool.clone().with_defaults(&defaults.unwrap());
        assert_eq!(held.groups, ["files", "files/read"]);
        assert_eq!(held.next_state, Some(StateName::new("read")));
        assert_eq!(
            held.states,
            StateSet::Only([StateName::new("start")].into())
        );
        assert_eq!(held.limits.tool.unwrap().max.get(), 5);
        assert_eq!(held.limits.agent, None);
        assert_eq!(held.permissions.len(), 1);
        assert_eq!(held.output_mode, OutputMode::Enforce);
        assert_eq!(held.input_schema, json!({"type": "object"}));

        let nothing = ToolPolicy::read_defaults(&json!({})).unwrap();
        assert_eq!(
            tool.clone().with_defaults(&nothing),
            tool,
            "empty defaults change nothing"
        );
        assert_eq!(tool.limits, ToolLimits::default(), "it has no limit");
    }

    #[test]
    fn mistakes_in_defaults_are_told_with_their_places() {
        let told = |value: Value| {
            let errors = ToolPolicy::read_defaults(&value).unwrap_err();
            let errors = errors.iter().map(ToString::to_string);
            errors.collect::<Vec<_>>()
        };
        assert_eq!(
            told(json!({"grup": "a", "rate_limit": "often", "definition": "x.json"})),
            [
                "/grup: unknown key `grup`, did you mean `group`?",
                "/definition: unknown key `definition`; known are group, state, available_in_states, \
                 rate_limit, required_permissions, output",
                "/rate_limit: unknown word `often`; known are unlimited, a whole number, or a mapping",
            ]
        );
        assert_eq!(told(json!([])), ["/: expected a mapping, found an array"]);
    }
}
