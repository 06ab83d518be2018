//! The connection to one server.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client_info::ClientInfo;
use crate::connection::ServerConnection;
use crate::connection_limits::ConnectionLimits;
use crate::endpoint::Endpoint;
use crate::error::{McpError, ProtocolFault, ServerDiagnostics};
use crate::mcp_request::McpRequest;
use crate::message_handler::MessageDispatcher;
use crate::param_headers::ParamHeaders;
use crate::protocol::{Era, EraPreference, with_client_meta};
use crate::server_description::ServerDescription;
use crate::tool_list::{PageError, ToolList, ToolPages};

/// A connection to one server. The client offers the server nothing but an answer to `ping`.
/// Requests may run concurrently.
///
/// Dropping it kills a started program and its process group at once; [`McpClient::close`] lets the
/// program exit cleanly. A program that leaves its process group (`setsid`) is out of reach of
/// both.
#[derive(Debug)]
pub struct McpClient {
    connection: ServerConnection,
    client_info: ClientInfo,
    param_headers: Mutex<BTreeMap<String, ParamHeaders>>,
}

impl McpClient {
    /// Starts the program or connects to the address, and negotiates a protocol version.
    ///
    /// Needs a tokio runtime with time and I/O enabled.
    pub async fn connect(endpoint: &Endpoint, limits: &ConnectionLimits) -> Result<Self, McpError> {
        let client_info = ClientInfo::default();
        let link = ServerConnection::open_with(
            endpoint,
            limits,
            &client_info,
            MessageDispatcher::default(),
            EraPreference::Newest,
        )
        .await;
        Ok(Self {
            connection: link.map_err(unwrap_session_expired)?,
            client_info,
            param_headers: Mutex::default(),
        })
    }

    /// What the server said about itself when the connection was opened.
    pub fn server(&self) -> &ServerDescription {
        self.connection.server()
    }

    /// What a started program has written so far besides messages: the end of its error output and
    /// the lines that were skipped. Empty for HTTP.
    pub fn diagnostics(&self) -> ServerDiagnostics {
        self.connection.diagnostics()
    }

    /// Sends any request and returns its result byte for byte.
    ///
    /// `params` is an object, or `null` for none.
    pub async fn request(&self, method: &str, params: Value) -> Result<Box<RawValue>, McpError> {
        self.send_request(method, params, &[]).await
    }

    /// All tools of the server, over all pages.
    pub async fn list_tools(&self) -> Result<ToolList, McpError> {
        let limit = self.limits().total;
        let tools = match timeout(limit, self.list_all_pages()).await {
            Ok(outcome) => outcome?,
            Err(_elapsed) => return Err(self.connection.timeout_error("tools/list", limit)),
        };
        *self.param_headers() = tools
            .iter()
            .filter_map(|tool| ParamHeaders::from_definition_with_name(tool))
            .collect();
        Ok(ToolList {
            tools,
            server: self.server().clone(),
        })
    }

    /// Calls a tool and returns its result byte for byte, including an error reported by the tool.
    ///
    /// In the stateless era over HTTP, tools that require arguments repeated in headers can be
    /// called only after [`McpClient::list_tools`].
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &Value,
    ) -> Result<Box<RawValue>, McpError> {
        let headers = self
            .param_headers()
            .get(name)
            .map(|wanted| wanted.for_arguments(arguments))
            .unwrap_or_default();
        let params = json!({"name": name, "arguments": arguments});
        self.send_request("tools/call", params, &headers).await
    }

    /// Closes the connection: deletes the session, or ends the program and every process it
    /// started.
    pub async fn close(self) {
        self.connection.close().await;
    }

    /// Reads all pages. The caller sets the timeout.
    async fn list_all_pages(&self) -> Result<Vec<Box<RawValue>>, McpError> {
        const METHOD: &str = "tools/list";
        let mut pages = ToolPages::default();
        let mut params = Value::Null;
        loop {
            let result = self.request(METHOD, params).await?;
            let next = pages.add(&result, self.limits());
            params = match next {
                Ok(Some(next)) => next,
                Ok(None) => return Ok(pages.into_tools()),
                Err(PageError::Limit(error)) => return Err(error),
                Err(PageError::Fault(fault)) => return Err(self.protocol_error(METHOD, fault)),
            };
        }
    }

    fn limits(&self) -> &ConnectionLimits {
        self.connection.limits()
    }

    fn protocol_error(&self, method: &str, fault: ProtocolFault) -> McpError {
        McpError::Protocol {
            method: method.to_owned(),
            fault,
            evidence: Box::new(self.diagnostics()),
        }
    }

    async fn send_request(
        &self,
        method: &str,
        params: Value,
        headers: &[(String, String)],
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
            Era::Stateless => Some(with_client_meta(params.as_deref(), &self.client_info)),
        };
        let mut request = McpRequest::new(method, params.as_deref());
        request.headers = headers;
        let outcome = self
            .connection
            .ask(request)
            .await
            .map_err(unwrap_session_expired)?;
        outcome.map_err(|error| McpError::from_rpc(method, error))
    }

    fn param_headers(&self) -> MutexGuard<'_, BTreeMap<String, ParamHeaders>> {
        self.param_headers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Unwraps the server's own refusal: a client that lists tools once has no session to renew.
fn unwrap_session_expired(error: McpError) -> McpError {
    match error {
        McpError::SessionExpired { refusal } => *refusal,
        other => other,
    }
}
