//! Who asks, in which conversation, and where interim messages go.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use serde_json::value::RawValue;
use toolwarden_guard::RequestedGroups;
use toolwarden_mcp::codes::INVALID_PARAMS;
use toolwarden_mcp::serve::Sent;
use toolwarden_mcp::{Members, RpcError};
use toolwarden_warden::guard::CallerClaims;

use super::Reply;
use crate::agent::Agent;
use crate::catalogue::Client;
use crate::conversation::Conversation;
use crate::in_flight::RequestBytes;
use crate::outlet::Outlet;

/// The headers of a request, for what they have to repeat.
pub trait Headers: Send + Sync + Debug {
    /// How a header was sent, by its name in lower case.
    fn sent(&self, name: &str) -> Sent<'_>;
    /// Whether the request came with headers at all.
    fn are_there(&self) -> bool {
        true
    }
}

/// Of a request that came without headers.
#[derive(Clone, Copy, Debug)]
pub struct NoHeaders;

impl Headers for NoHeaders {
    fn sent(&self, _name: &str) -> Sent<'_> {
        Sent::Absent
    }

    fn are_there(&self) -> bool {
        false
    }
}

/// One message of an agent and everything that goes with it.
#[derive(Debug)]
pub struct Asked {
    /// In which conversation.
    pub conversation: Arc<Conversation>,
    /// How the agent speaks.
    pub agent: Arc<Agent>,
    /// What the caller's credential says of it beside its name.
    pub claims: Option<Arc<CallerClaims>>,
    /// The groups asked for beside the message: by header or path.
    pub groups: Option<RequestedGroups>,
    /// Where messages go before the answer.
    pub outlet: Outlet,
    /// The id of the request, as JSON text; `null` for what is none.
    pub id: Box<RawValue>,
    /// The headers of the request.
    pub headers: Arc<dyn Headers>,
    /// The W3C trace context that the request came with.
    pub trace: Option<String>,
    /// What it counts for among the requests under way; none where that is little.
    pub bytes: Option<Arc<RequestBytes>>,
}

/// The member of `_meta` that names a workflow session.
pub(crate) const SESSION_KEY: &str = "toolwarden/session";
/// The member of `_meta` that asks for groups.
const GROUPS_KEY: &str = "toolwarden/groups";
/// The member of `_meta` that says in which state a workflow begins.
pub(crate) const STATE_KEY: &str = "toolwarden/state";
/// What our own members of `_meta` begin with; they are not for servers.
pub(crate) const OWN_KEYS: &str = "toolwarden/";

/// The most groups that a request may name, and their length together: a conversation keeps them.
const MOST_GROUPS: usize = 1_000;
const MOST_GROUP_BYTES: usize = 16 * 1024;

impl Asked {
    /// The groups a request asks for: beside it, in its `_meta`, or when the conversation began.
    pub(crate) fn groups(
        &self,
        meta: Option<&Members<'_>>,
    ) -> Result<Option<RequestedGroups>, Reply> {
        if self.groups.is_some() {
            return Ok(self.groups.clone());
        }
        let named = groups_in(meta).map_err(Reply::Error)?;
        Ok(named.or_else(|| self.conversation.groups.clone()))
    }

    /// The agent, as far as servers are looked at for it.
    pub(crate) fn client(&self) -> Client<'_> {
        Client {
            conversation: &self.conversation.id,
            variant: &self.conversation.variant,
            agent: &self.agent,
        }
    }

    /// The workflow session the request moves.
    pub(crate) fn session(&self) -> Option<&str> {
        self.conversation.session.as_deref()
    }
}

/// The groups that `_meta` asks for.
pub(crate) fn groups_in(meta: Option<&Members<'_>>) -> Result<Option<RequestedGroups>, RpcError> {
    let Some(text) = meta.and_then(|meta| meta.get(GROUPS_KEY)) else {
        return Ok(None);
    };
    // What cannot be read must not widen what is asked for.
    let names: Vec<Box<str>> = serde_json::from_str(text).map_err(|_| RpcError {
        code: INVALID_PARAMS,
        message: format!("_meta[\"{GROUPS_KEY}\"] is not a list of names"),
        data: None,
    })?;
    let bytes: usize = names.iter().map(|name| name.len()).sum();
    if names.len() > MOST_GROUPS || bytes > MOST_GROUP_BYTES {
        return Err(RpcError {
            code: INVALID_PARAMS,
            message: format!(
                "_meta[\"{GROUPS_KEY}\"] has more than {MOST_GROUPS} names or {MOST_GROUP_BYTES} bytes"
            ),
            data: None,
        });
    }
    let mut seen = BTreeSet::new();
    let names = names.into_iter().filter(|name| seen.insert(name.clone()));
    Ok(Some(RequestedGroups::These(names.collect())))
}
