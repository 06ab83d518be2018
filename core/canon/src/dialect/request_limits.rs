use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_model::Tool;
use toolwarden_model::json::{Object, Pointer};

use super::Dialect;
use crate::schema::subschemas;

/// Counts what a provider limits per request, over all tools of one.
#[derive(Clone, Debug, Default)]
pub struct RequestLimits {
    /// How often each name occurs.
    names: BTreeMap<String, usize>,
    tools: usize,
    optional: usize,
    unions: usize,
    strict: usize,
}

impl RequestLimits {
    /// Counts one more tool.
    pub fn add(&mut self, tool: &Tool) {
        self.tools += 1;
        *self.names.entry(tool.name.clone()).or_default() += 1;
        self.strict += usize::from(tool.strict == Some(true));
        self.count(&tool.inputs);
    }

    /// Why a provider would reject a request with all counted tools.
    #[must_use]
    pub fn exceeded(&self, dialect: Dialect) -> Vec<String> {
        let mut exceeded = self.duplicate_names();
        let rows: &[(usize, usize, &str)] = match dialect {
            Dialect::AnthropicStrict => &[
                (self.tools, 20, "strict tools"),
                (self.optional, 24, "optional parameters"),
                (self.unions, 16, "parameters with a union"),
            ],
            _ => &[],
        };
        let rows = rows.iter().filter(|(found, limit, _)| found > limit);
        exceeded.extend(rows.map(|(found, limit, what)| {
            format!("{found} {what} in one request, at most {limit} are accepted")
        }));
        if dialect == Dialect::DeepseekStrict && self.strict > 0 && self.strict < self.tools {
            let (strict, tools) = (self.strict, self.tools);
            exceeded.push(format!(
                "{strict} of {tools} tools are strict: a request must not mix them"
            ));
        }
        exceeded
    }

    /// The names that several tools share; every provider rejects a request with such names.
    #[must_use]
    pub fn duplicate_names(&self) -> Vec<String> {
        let repeated = self.names.iter().filter(|(_, count)| **count > 1);
        repeated
            .map(|(name, count)| format!("{count} tools are called `{name}`"))
            .collect()
    }

    fn count(&mut self, schema: &Object) {
        let required = schema.get("required").and_then(Value::as_array);
        if let Some(Value::Object(properties)) = schema.get("properties") {
            let needed = |name: &str| {
                required.is_some_and(|names| names.iter().any(|word| word.as_str() == Some(name)))
            };
            self.optional += properties.keys().filter(|name| !needed(name)).count();
        }
        self.unions += usize::from(
            schema.contains_key("anyOf") || schema.get("type").is_some_and(Value::is_array),
        );
        for (_, child) in subschemas(schema, &Pointer::root()) {
            if let Value::Object(child) = child {
                self.count(child);
            }
        }
    }
}
