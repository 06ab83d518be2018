//! The context of one message: its caller, its conversation, and where interim messages go.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use serde_json::value::RawValue;
use toolwarden_guard::RequestedGroups;
use toolwarden_live_guard::CallerClaims;
use toolwarden_mcp::error_codes::INVALID_PARAMS;
use toolwarden_mcp::serve::ReceivedHeader;
use toolwarden_mcp::{RawObject, RpcError};
use toolwarden_model::StateName;

use crate::agent_info::Agent;
use crate::catalog::CatalogClient;
use crate::conversation::Conversation;
use crate::request_bytes::RequestBytes;
use crate::response_stream::AgentSender;

/// The headers of a request, which must repeat parts of its body.
pub trait RequestHeaders: Send + Sync + Debug {
    /// How a header was sent; the name is in lower case.
    fn sent(&self, name: &str) -> ReceivedHeader<'_>;
    /// Whether the request has headers at all.
    fn are_present(&self) -> bool {
        true
    }
}

/// The headers of a request that has none.
#[derive(Clone, Copy, Debug)]
pub struct NoHeaders;

impl RequestHeaders for NoHeaders {
    fn sent(&self, _name: &str) -> ReceivedHeader<'_> {
        ReceivedHeader::Absent
    }

    fn are_present(&self) -> bool {
        false
    }
}

/// One message of an agent with its context.
#[derive(Debug)]
pub struct RequestContext {
    /// The conversation it belongs to.
    pub conversation: Arc<Conversation>,
    /// The agent's protocol version and capabilities.
    pub agent: Arc<Agent>,
    /// The caller's claims from its credential, besides its name.
    pub claims: Option<Arc<CallerClaims>>,
    /// The groups requested outside the message: by header or path.
    pub groups: Option<RequestedGroups>,
    /// Where messages go before the response.
    pub sender: AgentSender,
    /// The id of the request, as JSON text; `null` for other messages.
    pub id: Box<RawValue>,
    /// The headers of the request.
    pub headers: Arc<dyn RequestHeaders>,
    /// The W3C trace context that the request came with.
    pub trace: Option<String>,
    /// Its bytes among the requests in flight; `None` for a small request.
    pub bytes: Option<Arc<RequestBytes>>,
}

/// The member of `_meta` that names a workflow session.
pub(crate) const SESSION_KEY: &str = "toolwarden/session";
/// The member of `_meta` that requests groups.
const GROUPS_KEY: &str = "toolwarden/groups";
/// The member of `_meta` that sets the initial state of a workflow.
const STATE_KEY: &str = "toolwarden/state";
/// The prefix of the gateway's own members of `_meta`; they are not sent to servers.
pub(crate) const OWN_KEY_PREFIX: &str = "toolwarden/";

/// The most groups that a request may name, and their total length: a conversation stores them.
const MAX_GROUPS: usize = 1_000;
const MAX_GROUP_BYTES: usize = 16 * 1024;

impl RequestContext {
    /// The groups a request asks for: outside the message, in its `_meta`, or when the conversation began.
    pub(crate) fn groups(
        &self,
        meta: Option<&RawObject<'_>>,
    ) -> Result<Option<RequestedGroups>, RpcError> {
        if self.groups.is_some() {
            return Ok(self.groups.clone());
        }
        let named = groups_from_meta(meta)?;
        Ok(named.or_else(|| self.conversation.groups.clone()))
    }

    /// The client for which server lists are fetched.
    pub(crate) fn client(&self) -> CatalogClient<'_> {
        CatalogClient {
            conversation: &self.conversation.id,
            variant: &self.conversation.variant,
            agent: &self.agent,
        }
    }

    /// The workflow session of the request.
    pub(crate) fn session(&self) -> Option<&str> {
        self.conversation.session.as_deref()
    }
}

/// The state that `_meta` claims.
pub(crate) fn state_from_meta(meta: &RawObject<'_>) -> Option<StateName> {
    Some(StateName::new(&*meta.text(STATE_KEY)?))
}

/// The groups that `_meta` asks for.
pub(crate) fn groups_from_meta(
    meta: Option<&RawObject<'_>>,
) -> Result<Option<RequestedGroups>, RpcError> {
    let Some(text) = meta.and_then(|meta| meta.get(GROUPS_KEY)) else {
        return Ok(None);
    };
    // Groups that cannot be parsed must not widen what the caller sees.
    let names: Vec<Box<str>> = serde_json::from_str(text).map_err(|_| RpcError {
        code: INVALID_PARAMS,
        message: format!("_meta[\"{GROUPS_KEY}\"] is not a list of names"),
        data: None,
    })?;
    let bytes: usize = names.iter().map(|name| name.len()).sum();
    if names.len() > MAX_GROUPS || bytes > MAX_GROUP_BYTES {
        return Err(RpcError {
            code: INVALID_PARAMS,
            message: format!(
                "_meta[\"{GROUPS_KEY}\"] has more than {MAX_GROUPS} names or {MAX_GROUP_BYTES} bytes"
            ),
            data: None,
        });
    }
    let mut seen = BTreeSet::new();
    let names = names.into_iter().filter(|name| seen.insert(name.clone()));
    Ok(Some(names.collect()))
}
