//! Attributes that policy conditions may test: those a client sends with a request, and the load of the servers.

use std::collections::BTreeMap;

use serde_json::Value;
use toolwarden_mcp::RawObject;
use toolwarden_mcp::error_codes::INVALID_PARAMS;
use toolwarden_mcp::serve::ReceivedHeader;

use super::{Gateway, RpcReply};
use crate::request_context::RequestContext;

/// The member of `_meta` with attributes of the request.
const ATTRIBUTES_KEY: &str = "toolwarden/attributes";
/// The prefix of headers that carry attributes.
const HEADER_PREFIX: &str = "toolwarden-attribute-";
/// The most bytes of one attribute, as JSON.
const MAX_VALUE: usize = 1_024;

impl Gateway {
    /// The attributes that a client sends with a request, limited to those that the settings accept: from `_meta`,
    /// otherwise from headers. An attribute that is sent twice is refused, because its value is ambiguous.
    pub(super) fn attributes(
        &self,
        context: &RequestContext,
        meta: Option<&RawObject<'_>>,
    ) -> Result<BTreeMap<String, Value>, RpcReply> {
        let settings = self.settings();
        let mut attributes = BTreeMap::new();
        if settings.client_attributes.is_empty() {
            return Ok(attributes);
        }
        let invalid = |text: String| RpcReply::error(INVALID_PARAMS, text);
        let place = || format!("_meta[\"{ATTRIBUTES_KEY}\"]");
        let given = match meta.and_then(|meta| meta.get(ATTRIBUTES_KEY)) {
            None => serde_json::Map::new(),
            Some(text) => serde_json::from_str(text)
                .map_err(|_| invalid(format!("{} is not an object", place())))?,
        };
        for name in &settings.client_attributes {
            let header = format!("{HEADER_PREFIX}{}", name.to_ascii_lowercase());
            let value = match (given.get(name), context.headers.sent(&header)) {
                (None, ReceivedHeader::Absent) => continue,
                (Some(value), ReceivedHeader::Absent) => value.clone(),
                (None, ReceivedHeader::Once(text)) => Value::from(text),
                (Some(_), _) => {
                    let place = place();
                    return Err(invalid(format!("`{name}` is in {place} and in a header")));
                }
                (None, ReceivedHeader::Unreadable | ReceivedHeader::Repeated) => {
                    let text = format!("the header `{header}` is sent twice or cannot be read");
                    return Err(invalid(text));
                }
            };
            if !is_scalar(&value) || value.to_string().len() > MAX_VALUE {
                return Err(invalid(format!(
                    "attribute `{name}` is not a text, number, boolean or list of these of at most {MAX_VALUE} bytes"
                )));
            }
            attributes.insert(name.clone(), value);
        }
        Ok(attributes)
    }

    /// Reports the load of the servers to the guard if conditions may test it: the share of its `concurrency` that
    /// the busiest server uses, from 0 to 1.
    pub(crate) fn report_load(&self) {
        if !self.shared.guard.has_conditions() {
            return;
        }
        let catalogs = self.server_catalogs();
        let loads = catalogs.iter().map(|catalog| catalog.upstream.load());
        let load = loads.fold(0.0, f64::max);
        self.shared.guard.report_load(load);
    }
}

fn is_scalar(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(|it| !it.is_array() && is_scalar(it)),
        Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
        Value::Null | Value::Object(_) => false,
    }
}
