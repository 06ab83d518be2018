//! What the shop has received from its clients.

use std::collections::{BTreeMap, VecDeque};

use axum::http::HeaderMap;
use serde_json::value::RawValue;

/// How many requests' headers are kept.
const MAX_KEPT_HEADERS: usize = 64;

/// What was received so far.
#[derive(Clone, Debug, Default)]
pub struct DemoTraffic {
    /// `initialize` requests.
    pub initializes: u64,
    /// `server/discover` requests.
    pub discovers: u64,
    /// `tools/list` requests, every page.
    pub lists: u64,
    /// Calls by tool.
    pub calls: BTreeMap<String, u64>,
    /// Requests and notifications by method.
    pub methods: BTreeMap<String, u64>,
    /// Requests that their client cancelled while they ran.
    pub cancelled: u64,
    /// The parameters of the last `initialize`, or the `_meta` of the last stateless request, byte
    /// for byte.
    pub last_client_info: Option<Box<RawValue>>,
    /// The parameters of the last request, byte for byte.
    pub last_params: Option<Box<RawValue>>,
    headers: VecDeque<HeaderMap>,
}

impl DemoTraffic {
    /// Calls of one tool.
    #[must_use]
    pub fn calls_of(&self, tool: &str) -> u64 {
        self.calls.get(tool).copied().unwrap_or_default()
    }

    /// The headers of the last requests over HTTP, oldest first, without values that are not text.
    #[must_use]
    pub fn headers(&self) -> Vec<Vec<(String, String)>> {
        self.headers.iter().map(pairs).collect()
    }

    /// A header of the last request over HTTP.
    #[must_use]
    pub fn last_header(&self, name: &str) -> Option<&str> {
        self.headers.back()?.get(name)?.to_str().ok()
    }

    pub(super) fn keep_headers(&mut self, headers: HeaderMap) {
        if self.headers.len() == MAX_KEPT_HEADERS {
            self.headers.pop_front();
        }
        self.headers.push_back(headers);
    }

    pub(super) fn count(&mut self, method: &str) {
        match method {
            "initialize" => self.initializes += 1,
            "server/discover" => self.discovers += 1,
            "tools/list" => self.lists += 1,
            _ => {}
        }
        add(&mut self.methods, method);
    }

    pub(super) fn count_call(&mut self, tool: &str) {
        add(&mut self.calls, tool);
    }
}

/// Looks before it inserts, so that a known name costs no allocation.
fn add(counts: &mut BTreeMap<String, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => {
            counts.insert(name.to_owned(), 1);
        }
    }
}

fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    let texts = headers.iter().filter_map(|(name, value)| {
        let value = value.to_str().ok()?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    texts.collect()
}
