//! What a request says, held to what it may say.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use toolwarden_model::closest;

use super::error::ApiError;
use super::field::Field;

/// What a request says: its path, its query and its body.
#[derive(Debug, Default)]
pub(super) struct Given(BTreeMap<&'static str, Value>);

impl Given {
    /// Takes what the path names.
    pub(super) fn take_named(
        &mut self,
        fields: &'static [Field],
        named: Vec<(String, String)>,
    ) -> Result<(), ApiError> {
        for (name, text) in named {
            self.take(fields, "the path", &name, Value::from(text))?;
        }
        Ok(())
    }

    /// Takes what the query says.
    pub(super) fn take_query(
        &mut self,
        fields: &'static [Field],
        query: Vec<(String, String)>,
    ) -> Result<(), ApiError> {
        for (name, text) in query {
            let field = fields.iter().find(|field| field.name == name);
            let value = match field {
                Some(field) => field.kind.of_query(&text),
                None => Value::Null,
            };
            self.take(fields, "the query", &name, value)?;
        }
        self.complete(fields, "the query")
    }

    /// Takes what the body says.
    pub(super) fn take_body(
        &mut self,
        fields: &'static [Field],
        body: Value,
    ) -> Result<(), ApiError> {
        let Value::Object(members) = body else {
            return Err(ApiError::invalid("the body is no object"));
        };
        for (name, value) in members {
            self.take(fields, "the body", &name, value)?;
        }
        self.complete(fields, "the body")
    }

    fn take(
        &mut self,
        fields: &'static [Field],
        place: &str,
        name: &str,
        value: Value,
    ) -> Result<(), ApiError> {
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            let suggestion = closest(name, fields.iter().map(|field| field.name));
            return Err(ApiError::invalid(format!(
                "{place} has no `{}`{suggestion}",
                shortened(name)
            )));
        };
        if let Some(wanted) = field.kind.fault(&value) {
            return Err(ApiError::invalid(format!(
                "`{name}` of {place} has to be {wanted}"
            )));
        }
        if self.0.insert(field.name, value).is_some() {
            // Whoever reads the other one would do something else.
            return Err(ApiError::invalid(format!("`{name}` is given twice")));
        }
        Ok(())
    }

    fn complete(&self, fields: &'static [Field], place: &str) -> Result<(), ApiError> {
        let mut required = fields.iter().filter(|field| field.required);
        match required.find(|field| !self.0.contains_key(field.name)) {
            Some(missing) => Err(ApiError::invalid(format!(
                "{place} lacks `{}`: {}",
                missing.name, missing.about
            ))),
            None => Ok(()),
        }
    }

    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// A text, for filters that own it.
    pub(super) fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    /// A text that the table says is there.
    pub(super) fn needed(&self, name: &str) -> Result<&str, ApiError> {
        let missing = || ApiError::invalid(format!("`{name}` is missing"));
        self.text(name).ok_or_else(missing)
    }

    pub(super) fn names(&self, name: &str) -> Option<Vec<&str>> {
        let names = self.0.get(name)?.as_array()?;
        Some(names.iter().filter_map(Value::as_str).collect())
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn count(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    pub(super) fn time(&self, name: &str) -> Option<Timestamp> {
        self.text(name)?.parse().ok()
    }
}

/// A name of somebody else, not longer than needed.
fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}
