//! The parameters of a request, checked against the table of endpoints.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use toolwarden_model::did_you_mean;

use super::error::ApiError;
use super::field::ApiField;

/// The parameters of a request from its path, its query and its body.
#[derive(Debug, Default)]
pub(super) struct RequestParams(BTreeMap<&'static str, Value>);

impl RequestParams {
    /// Reads the path parameters.
    pub(super) fn add_path(
        &mut self,
        fields: &'static [ApiField],
        named: Vec<(String, String)>,
    ) -> Result<(), ApiError> {
        for (name, text) in named {
            self.add(fields, "the path", &name, Value::from(text))?;
        }
        Ok(())
    }

    /// Reads the query parameters.
    pub(super) fn add_query(
        &mut self,
        fields: &'static [ApiField],
        query: Vec<(String, String)>,
    ) -> Result<(), ApiError> {
        for (name, text) in query {
            let field = fields.iter().find(|field| field.name == name);
            let value = match field {
                Some(field) => field.kind.parse_query(&text),
                None => Value::Null,
            };
            self.add(fields, "the query", &name, value)?;
        }
        self.check_required(fields, "the query")
    }

    /// Reads the body parameters.
    pub(super) fn add_body(
        &mut self,
        fields: &'static [ApiField],
        body: Value,
    ) -> Result<(), ApiError> {
        let Value::Object(members) = body else {
            return Err(ApiError::invalid("the body is not an object"));
        };
        for (name, value) in members {
            self.add(fields, "the body", &name, value)?;
        }
        self.check_required(fields, "the body")
    }

    fn add(
        &mut self,
        fields: &'static [ApiField],
        place: &str,
        name: &str,
        value: Value,
    ) -> Result<(), ApiError> {
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            let suggestion = did_you_mean(name, fields.iter().map(|field| field.name));
            return Err(ApiError::invalid(format!(
                "unknown member `{}` of {place}{suggestion}",
                shorten(name)
            )));
        };
        if let Some(wanted) = field.kind.find_fault(&value) {
            return Err(ApiError::invalid(format!(
                "`{name}` of {place} has to be {wanted}"
            )));
        }
        if self.0.insert(field.name, value).is_some() {
            // A reader that takes the other value would do something else.
            return Err(ApiError::invalid(format!("`{name}` is given twice")));
        }
        Ok(())
    }

    fn check_required(&self, fields: &'static [ApiField], place: &str) -> Result<(), ApiError> {
        let mut required = fields.iter().filter(|field| field.required);
        match required.find(|field| !self.0.contains_key(field.name)) {
            Some(missing) => Err(ApiError::invalid(format!(
                "{place} lacks `{}`: {}",
                missing.name, missing.description
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

    /// A string, for filters that own it.
    pub(super) fn owned_text(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    /// A string that the table marks as required.
    pub(super) fn required_text(&self, name: &str) -> Result<&str, ApiError> {
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

/// A name from the request, shortened for messages.
fn shorten(name: &str) -> String {
    name.chars().take(64).collect()
}
