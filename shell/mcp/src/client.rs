//! The connection to one server.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::endpoint::Endpoint;
use crate::error::{Evidence, McpError, ProtocolFault};
use crate::limits::Limits;
use crate::listing::{self, Listing};
use crate::negotiate;
use crate::param_headers::{self, ParamHeader};
use crate::server::ServerDescription;
use crate::wire::{Asking, Wire};

/// A connection to one server. Requests may run concurrently.
///
/// Dropping it kills a started program and its process group at once; [`Client::close`] lets it
/// end in order. A program that leaves its process group (`setsid`) is out of reach of both.
#[derive(Debug)]
pub struct Client {
    wire: Wire,
    server: ServerDescription,
    param_headers: Mutex<BTreeMap<String, Vec<ParamHeader>>>,
}

impl Client {
    /// Starts or reaches the server and agrees on a protocol version.
    ///
    /// Needs a tokio runtime with time and I/O enabled.
    pub async fn connect(endpoint: &Endpoint, limits: &Limits) -> Result<Self, McpError> {
        // The negotiation is the largest future here; on the heap it does not grow its callers.
        let opening = Box::pin(negotiate::open(endpoint, limits));
        let (wire, opening) = match timeout(limits.total, opening).await {
            Ok(outcome) => outcome?,
            Err(_elapsed) => {
                return Err(McpError::Timeout {
                    method: "connect".to_owned(),
                    after: limits.total,
                    evidence: Box::<Evidence>::default(),
                });
            }
        };
        Ok(Self {
            wire,
            server: opening.into(),
            param_headers: Mutex::default(),
        })
    }

    /// What the server said about itself when the connection was opened.
    pub fn server(&self) -> &ServerDescription {
        &self.server
    }

    /// What a started program wrote besides messages so far: its last error output and the
    /// lines that were skipped. Empty for HTTP.
    pub fn evidence(&self) -> Evidence {
        *self.wire.transport.evidence()
    }

    /// Sends any request and returns its result byte for byte.
    ///
    /// `params` is an object, or `null` for none.
    pub async fn request(&self, method: &str, params: Value) -> Result<Box<RawValue>, McpError> {
        self.ask(method, params, Vec::new()).await
    }

    /// All tools of the server, over all pages.
    pub async fn list_tools(&self) -> Result<Listing, McpError> {
        let limit = self.limits().total;
        let tools = match timeout(limit, listing::list(self)).await {
            Ok(outcome) => outcome?,
            Err(_elapsed) => return Err(self.wire.timed_out("tools/list", limit)),
        };
        *self.param_headers() = tools
            .iter()
            .filter_map(|tool| param_headers::wanted(tool))
            .collect();
        Ok(Listing {
            tools,
            server: self.server.clone(),
        })
    }

    /// Calls a tool and returns its result byte for byte, an error of the tool included.
    ///
    /// In the stateless era over HTTP, tools that want arguments repeated in headers can be
    /// called only after [`Client::list_tools`].
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &Value,
    ) -> Result<Box<RawValue>, McpError> {
        let headers = self
            .param_headers()
            .get(name)
            .map(|wanted| param_headers::headers(wanted, arguments))
            .unwrap_or_default();
        let params = json!({"name": name, "arguments": arguments});
        self.ask("tools/call", params, headers).await
    }

    /// Ends the connection: a session is deleted, a program ended with all it started.
    pub async fn close(self) {
        self.wire.transport.close().await;
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.wire.limits
    }

    pub(crate) fn fault(&self, method: &str, fault: ProtocolFault) -> McpError {
        McpError::Protocol {
            method: method.to_owned(),
            fault,
            evidence: self.wire.transport.evidence(),
        }
    }

    async fn ask(
        &self,
        method: &str,
        params: Value,
        headers: Vec<(String, String)>,
    ) -> Result<Box<RawValue>, McpError> {
        let asking = Asking {
            era: self.server.era,
            method,
            params,
            headers,
            limit: self.limits().request,
        };
        self.wire.ask(asking).await
    }

    fn param_headers(&self) -> MutexGuard<'_, BTreeMap<String, Vec<ParamHeader>>> {
        self.param_headers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
