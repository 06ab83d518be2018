//! Lists of servers, all pages of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;
use toolwarden_mcp::codes::METHOD_NOT_FOUND;
use toolwarden_mcp::protocol::stamped;
use toolwarden_mcp::{Face, Members};

use super::kind::Kind;
use crate::upstream::{LinkKey, Upstream, UpstreamAsking, UpstreamError};

/// One entry of a list.
#[derive(Clone, Debug)]
pub struct Item {
    /// What its server calls it.
    pub key: Arc<str>,
    /// The entry as the server wrote it.
    pub text: Box<RawValue>,
}

/// A whole list.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// The entries in the server's order.
    pub items: Vec<Item>,
    /// How many entries have no name, so that nobody could ask for them.
    pub nameless: usize,
    /// Entries that differ from their pins and are not served.
    pub withheld: Vec<Item>,
    /// How long the server says it holds.
    pub ttl: Option<Duration>,
    /// The size of all pages.
    pub bytes: usize,
}

/// Why there is no list.
#[derive(Clone, Debug, Error)]
pub enum ListError {
    /// The server could not be asked.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// It answered with an error.
    #[error("server `{server}` refuses `{method}`: {message} ({code})")]
    Refused {
        /// The server.
        server: String,
        /// The request.
        method: &'static str,
        /// Its code.
        code: i64,
        /// Its words.
        message: String,
    },
    /// Its answer is no list.
    #[error("the answer of server `{server}` to `{method}` is no list: {reason}")]
    Malformed {
        /// The server.
        server: String,
        /// The request.
        method: &'static str,
        /// Why.
        reason: String,
    },
    /// What it lists could not be held to its pins.
    #[error("what server `{server}` lists cannot be checked: {reason}")]
    Unchecked {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
}

impl ListError {
    /// Nothing, of a server that does not know what it is asked; else the error.
    pub(super) fn unless_unknown(self) -> Result<List, Self> {
        match self {
            Self::Refused { code, .. } if code == METHOD_NOT_FOUND => Ok(List::default()),
            error => Err(error),
        }
    }
}

impl List {
    /// Asks a server for all pages of a list.
    ///
    /// # Errors
    /// There is no list.
    pub async fn fetch(
        upstream: &Arc<Upstream>,
        kind: Kind,
        key: &LinkKey,
        face: &Face,
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
            let params = params(cursor.as_deref(), face, stateless);
            let asking = UpstreamAsking::new(kind.method(), params.as_deref());
            let answer = upstream.ask(key, face, asking).await?;
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
            let page = Members::of(&result).map_err(|error| malformed(error.to_string()))?;
            list.take(&page, kind).map_err(&malformed)?;
            let most = limits.list_entries.get();
            if list.items.len() > usize::try_from(most).unwrap_or(usize::MAX) {
                let reason = format!("it has more than {most} entries (`limits.list_entries`)");
                return Err(malformed(reason));
            }
            // Some servers end with an empty cursor instead of none.
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

    fn take(&mut self, page: &Members<'_>, kind: Kind) -> Result<(), String> {
        let entries = page
            .get(kind.member())
            .ok_or_else(|| format!("it has no `{}`", kind.member()))?;
        let entries: Vec<Box<RawValue>> =
            serde_json::from_str(entries).map_err(|error| error.to_string())?;
        for text in entries {
            let key = Members::of(&text)
                .ok()
                .and_then(|entry| entry.text(kind.key()).map(|key| Arc::from(&*key)));
            match key {
                Some(key) => self.items.push(Item { key, text }),
                None => self.nameless += 1,
            }
        }
        let ttl = page.get("ttlMs").and_then(|ms| ms.parse::<u64>().ok());
        self.ttl = ttl.map(Duration::from_millis);
        Ok(())
    }
}

fn params(cursor: Option<&str>, face: &Face, stateless: bool) -> Option<Box<RawValue>> {
    #[derive(Deserialize, serde::Serialize)]
    struct Params<'c> {
        cursor: &'c str,
    }
    let params = cursor.and_then(|cursor| serde_json::value::to_raw_value(&Params { cursor }).ok());
    if stateless {
        Some(stamped(params.as_deref(), face))
    } else {
        params
    }
}
