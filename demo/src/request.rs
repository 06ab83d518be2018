//! A request to the shop, and its parameters.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolwarden_mcp::{Era, RawObject};

use super::messages::DemoError;

/// One request, over any transport.
#[derive(Debug)]
pub(super) struct DemoRequest {
    pub(super) era: Era,
    pub(super) id: Box<RawValue>,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
    /// The session of the handshake era; empty if there is none.
    pub(super) session: String,
}

impl DemoRequest {
    /// The key that identifies it while it runs.
    pub(super) fn running_key(&self) -> String {
        format!("{}/{}", self.session, self.id.get())
    }
}

/// A member that must be a string.
pub(super) fn required<'p>(
    params: &'p RawObject<'_>,
    key: &str,
) -> Result<Cow<'p, str>, DemoError> {
    let text = params.text(key);
    text.ok_or_else(|| DemoError::invalid(format!("`{key}` is missing")))
}

/// A member, an empty object if it is absent.
pub(super) fn value(params: &RawObject<'_>, key: &str) -> Value {
    let text = params.get(key);
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_else(|| json!({}))
}
