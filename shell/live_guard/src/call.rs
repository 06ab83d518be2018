//! One attempt to use a tool.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolwarden_guard::{Feature, RequestedGroups};
use toolwarden_model::StateName;
use toolwarden_model::json::Object;

use super::caller_claims::CallerClaims;

/// The principal of a call that names none.
pub const UNKNOWN_PRINCIPAL: &str = "unknown";

/// One attempt to use a tool. The defaults are those of the connectorguard document: no arguments, and an
/// unknown principal.
#[derive(Clone, Debug)]
pub struct Call<'c> {
    /// The tool.
    pub tool: &'c str,
    /// The feature used instead of a tool: a resource, a prompt, a skill or an extension method.
    pub feature: Option<Feature<'c>>,
    /// The caller.
    pub principal: &'c str,
    /// The session; `None` is the principal's default session.
    pub session: Option<&'c str>,
    /// The requested groups; `None` means those of the session.
    pub groups: Option<RequestedGroups>,
    /// The state that the client claims. Only the first call of a session may name one, and only if the
    /// policy allows it.
    pub state: Option<&'c StateName>,
    /// The arguments.
    pub arguments: Arc<Value>,
    /// The request attributes that conditions can read.
    pub attributes: BTreeMap<String, Value>,
    /// The variant of clients it comes from; a server may offer it a different definition.
    pub variant: Option<&'c str>,
    /// The claims of the caller's credential.
    pub claims: Option<&'c CallerClaims>,
}

impl Default for Call<'_> {
    fn default() -> Self {
        Self {
            tool: "",
            feature: None,
            principal: UNKNOWN_PRINCIPAL,
            session: None,
            groups: None,
            state: None,
            arguments: Arc::new(Value::Object(Object::new())),
            attributes: BTreeMap::new(),
            variant: None,
            claims: None,
        }
    }
}
