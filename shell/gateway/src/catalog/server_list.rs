//! Fetches the lists of servers, page by page.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;
use toolwarden_mcp::error_codes::METHOD_NOT_FOUND;
use toolwarden_mcp::protocol::with_client_meta;
use toolwarden_mcp::{ClientInfo, McpRequest, RawObject};

use super::list_kind::ListKind;
use crate::upstream::{LinkKey, LinkRoute, Upstream, UpstreamError};

/// One entry of a list.
#[derive(Clone, Debug)]
pub struct ListItem {
    /// The server's own name or address for it.
    pub key: Arc<str>,
    /// The entry as the server wrote it.
    pub text: Box<RawValue>,
}

/// A whole list.
#[derive(Clone, Debug, Default)]
pub struct ServerList {
    /// The entries in the server's order.
    pub items: Vec<ListItem>,
    /// How many entries have no name, so that no client could request them.
    pub unnamed: usize,
    /// Entries that differ from their pins and are not served.
    pub withheld: Vec<ListItem>,
    /// The time to live that the server gives it.
    pub ttl: Option<Duration>,
    /// The total size of all pages.
    pub bytes: usize,
}

/// Why there is no list.
#[derive(Clone, Debug, Error)]
pub enum ListError {
    /// The server could not be reached.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// It answered with an error.
    #[error("server `{server}` refuses `{method}`: {message} ({code})")]
    Refused {
        /// The server.
        server: String,
        /// The request.
        method: &'static str,
        /// Its error code.
        code: i64,
        /// Its error message.
        message: String,
    },
    /// Its answer is not a list.
    #[error("the answer of server `{server}` to `{method}` is not a list: {reason}")]
    Malformed {
        /// The server.
        server: String,
        /// The request.
        method: &'static str,
        /// The cause.
        reason: String,
    },
    /// The list could not be checked against its pins.
    #[error("the list of server `{server}` cannot be checked: {reason}")]
    CheckFailed {
        /// The server.
        server: String,
        /// The cause.
        reason: String,
    },
}

impl ListError {
    /// An empty list if the server does not know the method; otherwise the error.
    pub(super) fn empty_if_unsupported(self) -> Result<ServerList, Self> {
        match self {
            Self::Refused { code, .. } if code == METHOD_NOT_FOUND => Ok(ServerList::default()),
            error => Err(error),
        }
    }
}

impl ServerList {
    /// Fetches all pages of a list from a server.
    ///
    /// # Errors
    /// The server returned no valid list.
    pub async fn fetch(
        upstream: &Arc<Upstream>,
        kind: ListKind,
        key: &LinkKey,
        client_info: &ClientInfo,
        stateless: bool,
    ) -> Result<Self, ListError> {
        let malformed = |reason: String| ListError::Malformed {
            server: upstream.name().to_owned(),
            method: kind.method(),
            reason,
        };
        let mut list = Self::default();
        let mut seen = BTreeSet::new();
        let mut cursor: Option<String> = None;
        let limits = upstream.settings().limits;
        for _page in 0..limits.list_pages.get() {
            let params = page_params(cursor.as_deref(), client_info, stateless);
            let request = McpRequest::new(kind.method(), params.as_deref());
            let answer = upstream
                .ask(LinkRoute::new(key, client_info), request)
                .await?;
            let result = answer.map_err(|error| ListError::Refused {
                server: upstream.name().to_owned(),
                method: kind.method(),
                code: error.code,
                message: error.message,
            })?;
            list.bytes = list.bytes.saturating_add(result.get().len());
            if list.bytes > limits.list_bytes {
                let most = limits.list_bytes;
                let reason = format!("it has more than {most} bytes (`limits.list_size`)");
                return Err(malformed(reason));
            }
            let page = RawObject::parse(&result).map_err(|error| malformed(error.to_string()))?;
            list.add_page(&page, kind).map_err(&malformed)?;
            let most = limits.list_entries.get();
            if list.items.len() > usize::try_from(most).unwrap_or(usize::MAX) {
                let reason = format!("it has more than {most} entries (`limits.list_entries`)");
                return Err(malformed(reason));
            }
            // Some servers end with an empty cursor instead of no cursor.
            let next = page.text("nextCursor").filter(|next| !next.is_empty());
            let Some(next) = next else {
                return Ok(list);
            };
            if !seen.insert(next.clone().into_owned()) {
                return Err(malformed(format!("the cursor `{next}` comes twice")));
            }
            cursor = Some(next.into_owned());
        }
        let most = limits.list_pages;
        Err(malformed(format!(
            "it has more than {most} pages (`limits.list_pages`)"
        )))
    }

    fn add_page(&mut self, page: &RawObject<'_>, kind: ListKind) -> Result<(), String> {
        let entries = page
            .get(kind.member())
            .ok_or_else(|| format!("it has no `{}`", kind.member()))?;
        let entries: Vec<Box<RawValue>> =
            serde_json::from_str(entries).map_err(|error| error.to_string())?;
        for text in entries {
            let key = RawObject::parse(&text)
                .ok()
                .and_then(|entry| entry.text(kind.key()).map(|key| Arc::from(&*key)));
            match key {
                Some(key) => self.items.push(ListItem { key, text }),
                None => self.unnamed += 1,
            }
        }
        let ttl = page.get("ttlMs").and_then(|ms| ms.parse::<u64>().ok());
        self.ttl = ttl.map(Duration::from_millis);
        Ok(())
    }
}

fn page_params(
    cursor: Option<&str>,
    client_info: &ClientInfo,
    stateless: bool,
) -> Option<Box<RawValue>> {
    #[derive(Deserialize, serde::Serialize)]
    struct Params<'c> {
        cursor: &'c str,
    }
    let params = cursor.and_then(|cursor| serde_json::value::to_raw_value(&Params { cursor }).ok());
    if stateless {
        Some(with_client_meta(params.as_deref(), client_info))
    } else {
        params
    }
}
