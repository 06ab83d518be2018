//! What conditions may ask about a request: what its client says of it, and how busy the servers are.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_mcp::Members;
use toolwarden_mcp::codes::INVALID_PARAMS;
use toolwarden_mcp::serve::Sent;

use super::asked::Asked;
use super::{Gateway, Reply};

/// The member of `_meta` with attributes of the request.
const ATTRIBUTES_KEY: &str = "toolwarden/attributes";
/// What the names of headers with attributes begin with.
const HEADER_PREFIX: &str = "toolwarden-attribute-";
/// The most bytes of one attribute, as JSON.
const MAX_VALUE: usize = 1_024;

impl Gateway {
    /// The attributes that a client gives a request, of those that the settings let it give: from `_meta`,
    /// else from headers. What is sent twice is refused, for it cannot be told which is meant.
    pub(super) fn attributes(
        &self,
        asked: &Asked,
        meta: Option<&Members<'_>>,
    ) -> Result<BTreeMap<String, Value>, Reply> {
        let settings = self.settings();
        let mut attributes = BTreeMap::new();
        if settings.client_attributes.is_empty() {
            return Ok(attributes);
        }
        let invalid = |text: String| Reply::error(INVALID_PARAMS, text);
        let place = || format!("_meta[\"{ATTRIBUTES_KEY}\"]");
        let given = match meta.and_then(|meta| meta.get(ATTRIBUTES_KEY)) {
            None => serde_json::Map::new(),
            Some(text) => serde_json::from_str(text)
                .map_err(|_| invalid(format!("{} is not an object", place())))?,
        };
        for name in &settings.client_attributes {
            let header = format!("{HEADER_PREFIX}{}", name.to_ascii_lowercase());
            let value = match (given.get(name), asked.headers.sent(&header)) {
                (None, Sent::Absent) => continue,
                (Some(value), Sent::Absent) => value.clone(),
                (None, Sent::Once(text)) => Value::from(text),
                (Some(_), _) => {
                    let place = place();
                    return Err(invalid(format!("`{name}` is in {place} and in a header")));
                }
                (None, Sent::Unreadable | Sent::Repeated) => {
                    let text = format!("the header `{header}` is sent twice or cannot be read");
                    return Err(invalid(text));
                }
            };
            if !is_plain(&value) || value.to_string().len() > MAX_VALUE {
                return Err(invalid(format!(
                    "attribute `{name}` is not a text, number, boolean or list of these of at most {MAX_VALUE} bytes"
                )));
            }
            attributes.insert(name.clone(), value);
        }
        Ok(attributes)
    }

    /// Tells the guard how busy the servers are, where conditions may ask: the share of its `concurrency`
    /// that the busiest server has in use, from 0 to 1.
    pub(crate) fn report_load(&self) {
        if !self.shared.guard.has_conditions() {
            return;
        }
        let shelves = self.shelves();
        let loads = shelves.iter().map(|shelf| shelf.upstream.load());
        let load = loads.fold(0.0, f64::max);
        self.shared.guard.report_load(load);
    }
}

fn is_plain(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(|it| !it.is_array() && is_plain(it)),
        Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
        Value::Null | Value::Object(_) => false,
    }
}
