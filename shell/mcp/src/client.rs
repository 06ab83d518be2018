//! The connection to one server.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::audience::Ear;
use crate::endpoint::Endpoint;
use crate::error::{Evidence, McpError, ProtocolFault};
use crate::face::Face;
use crate::limits::Limits;
use crate::link::{Link, LinkAsking};
use crate::listing::{self, Listing};
use crate::param_headers::ParamHeaders;
use crate::protocol::{Era, EraPreference, stamped};
use crate::server::ServerDescription;

/// A connection to one server that offers it nothing but an answer to `ping`. Requests may run
/// concurrently.
///
/// Dropping it kills a started program and its process group at once; [`Client::close`] lets it
/// end in order. A program that leaves its process group (`setsid`) is out of reach of both.
#[derive(Debug)]
pub struct Client {
    link: Link,
    face: Face,
    param_headers: Mutex<BTreeMap<String, ParamHeaders>>,
}

impl Client {
    /// Starts or reaches the server and agrees on a protocol version.
    ///
    /// Needs a tokio runtime with time and I/O enabled.
    pub async fn connect(endpoint: &Endpoint, limits: &Limits) -> Result<Self, McpError> {
        let face = Face::default();
        let link = Link::open_with(
            endpoint,
            limits,
            &face,
            Ear::default(),
            EraPreference::Newest,
        )
        .await;
        Ok(Self {
            link: link.map_err(told_plainly)?,
            face,
            param_headers: Mutex::default(),
        })
    }

    /// What the server said about itself when the connection was opened.
    pub fn server(&self) -> &ServerDescription {
        self.link.server()
    }

    /// What a started program wrote besides messages so far: its last error output and the
    /// lines that were skipped. Empty for HTTP.
    pub fn evidence(&self) -> Evidence {
        self.link.evidence()
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
            Err(_elapsed) => return Err(self.link.timed_out("tools/list", limit)),
        };
        *self.param_headers() = tools
            .iter()
            .filter_map(|tool| ParamHeaders::named(tool))
            .collect();
        Ok(Listing {
            tools,
            server: self.server().clone(),
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
            .map(|wanted| wanted.of_call(arguments))
            .unwrap_or_default();
        let params = json!({"name": name, "arguments": arguments});
        self.ask("tools/call", params, headers).await
    }

    /// Ends the connection: a session is deleted, a program ended with all it started.
    pub async fn close(self) {
        self.link.close().await;
    }

    pub(crate) fn limits(&self) -> &Limits {
        self.link.limits()
    }

    pub(crate) fn fault(&self, method: &str, fault: ProtocolFault) -> McpError {
        McpError::Protocol {
            method: method.to_owned(),
            fault,
            evidence: Box::new(self.evidence()),
        }
    }

    async fn ask(
        &self,
        method: &str,
        params: Value,
        headers: Vec<(String, String)>,
    ) -> Result<Box<RawValue>, McpError> {
        let params = match params {
            Value::Null => None,
            Value::Object(_) => to_raw_value(&params).ok(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(McpError::InvalidParams {
                    method: method.to_owned(),
                });
            }
        };
        let params = match self.server().era {
            Era::Handshake => params,
            Era::Stateless => Some(stamped(params.as_deref(), &self.face)),
        };
        let asking = LinkAsking {
            method,
            params: params.as_deref(),
            headers,
            limit: self.limits().request,
            aside: None,
            sent: None,
        };
        let outcome = self.link.ask(asking).await.map_err(told_plainly)?;
        outcome.map_err(|error| error.for_method(method))
    }

    fn param_headers(&self) -> MutexGuard<'_, BTreeMap<String, ParamHeaders>> {
        self.param_headers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The refusal of the server itself: whoever lists tools once has no session to renew.
fn told_plainly(error: McpError) -> McpError {
    match error {
        McpError::SessionExpired { refusal } => *refusal,
        other => other,
    }
}
