//! Lists all tools of a server, page by page.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::connection_limits::ConnectionLimits;
use crate::error::{LimitedItem, McpError, ProtocolFault};
use crate::server_description::ServerDescription;

/// The tools of a server and the server's description of itself.
#[derive(Debug, Clone)]
pub struct ToolList {
    /// Every tool definition, byte for byte, in the server's order, duplicates included.
    pub tools: Vec<Box<RawValue>>,
    /// The server.
    pub server: ServerDescription,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

/// The pages of a list that were read so far.
#[derive(Debug, Default)]
pub(crate) struct ToolPages {
    tools: Vec<Box<RawValue>>,
    cursors: BTreeSet<String>,
    bytes: usize,
    pages: usize,
}

/// Why the pages of a server do not make a list.
#[derive(Debug)]
pub(crate) enum PageError {
    /// A limit is exceeded.
    Limit(McpError),
    /// The server does not follow the protocol.
    Fault(ProtocolFault),
}

impl ToolPages {
    /// Adds a page. Returns the parameters of the next request; `None` after the last page.
    pub(crate) fn add(
        &mut self,
        result: &RawValue,
        limits: &ConnectionLimits,
    ) -> Result<Option<Value>, PageError> {
        let page: Page = serde_json::from_str(result.get())
            .map_err(|source| PageError::Fault(ProtocolFault::Result { source }))?;
        let too_many = |what, limit| Err(PageError::Limit(McpError::TooMany { what, limit }));
        self.bytes = self.bytes.saturating_add(result.get().len());
        if self.bytes > limits.list_bytes {
            return too_many(LimitedItem::ListBytes, limits.list_bytes);
        }
        self.tools.extend(page.tools);
        if self.tools.len() > limits.tools {
            return too_many(LimitedItem::Tools, limits.tools);
        }
        // Some servers end with an empty cursor instead of none; requesting it would start over.
        let Some(cursor) = page.next_cursor.filter(|cursor| !cursor.is_empty()) else {
            return Ok(None);
        };
        if !self.cursors.insert(cursor.clone()) {
            return Err(PageError::Fault(ProtocolFault::RepeatedCursor { cursor }));
        }
        self.pages += 1;
        if self.pages >= limits.pages {
            return too_many(LimitedItem::Pages, limits.pages);
        }
        Ok(Some(json!({ "cursor": cursor })))
    }

    pub(crate) fn into_tools(self) -> Vec<Box<RawValue>> {
        self.tools
    }
}
