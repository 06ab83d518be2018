//! Lists all tools of a server, page by page.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::client::McpClient;
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

/// Reads all pages. The caller sets the timeout.
pub(crate) async fn list_all_pages(client: &McpClient) -> Result<Vec<Box<RawValue>>, McpError> {
    const METHOD: &str = "tools/list";
    let limits = client.limits();
    let mut tools = Vec::new();
    let mut seen = BTreeSet::new();
    let mut bytes = 0_usize;
    let mut params = Value::Null;
    for _page in 0..limits.pages {
        let result = client.request(METHOD, params).await?;
        let page: Page = serde_json::from_str(result.get())
            .map_err(|source| client.protocol_error(METHOD, ProtocolFault::Result { source }))?;
        bytes = bytes.saturating_add(result.get().len());
        if bytes > limits.list_bytes {
            return Err(McpError::TooMany {
                what: LimitedItem::ListBytes,
                limit: limits.list_bytes,
            });
        }
        tools.extend(page.tools);
        if tools.len() > limits.tools {
            return Err(McpError::TooMany {
                what: LimitedItem::Tools,
                limit: limits.tools,
            });
        }
        // Some servers end with an empty cursor instead of none; requesting it would start over.
        let Some(cursor) = page.next_cursor.filter(|cursor| !cursor.is_empty()) else {
            return Ok(tools);
        };
        if !seen.insert(cursor.clone()) {
            return Err(client.protocol_error(METHOD, ProtocolFault::RepeatedCursor { cursor }));
        }
        params = json!({ "cursor": cursor });
    }
    Err(McpError::TooMany {
        what: LimitedItem::Pages,
        limit: limits.pages,
    })
}
