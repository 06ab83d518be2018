//! A server asked without a gateway, in the words of an agent.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use toolwarden_mcp::protocol::with_client_meta;
use toolwarden_mcp::{
    ClientInfo, ConnectionLimits, Endpoint, Era, EraPreference, McpRequest, MessageHandler,
    ServerConnection, ServerMessage,
};

use crate::support::SOON;

/// A connection to one server.
pub(super) struct DirectServer {
    pub(super) era: Era,
    link: ServerConnection,
    client_info: ClientInfo,
}

/// Hears nothing: a server that asks gets no answer.
#[derive(Debug)]
struct IgnoreMessages;

impl MessageHandler for IgnoreMessages {
    fn handle(&self, _message: ServerMessage) {}
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

impl DirectServer {
    /// Starts a server and describes the client like [`crate::support::Agent`] does.
    pub(super) async fn open(endpoint: &Endpoint, capabilities: &str) -> Self {
        Self::open_in(endpoint, capabilities, EraPreference::Newest).await
    }

    /// As [`Self::open`], in the era that is preferred.
    pub(super) async fn open_in(
        endpoint: &Endpoint,
        capabilities: &str,
        preference: EraPreference,
    ) -> Self {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let client_info = ClientInfo {
            capabilities: raw(capabilities).into(),
            info: raw(r#"{"name":"test","version":"1"}"#).into(),
        };
        let limits = ConnectionLimits::default();
        let link = ServerConnection::open_in_era(
            endpoint,
            &limits,
            &client_info,
            Arc::new(IgnoreMessages),
            preference,
        )
        .await;
        let link = link.unwrap_or_else(|error| panic!("{endpoint:?}: {error}"));
        Self {
            era: link.server().era,
            link,
            client_info,
        }
    }

    /// The definitions of all tools, as they were written.
    pub(super) async fn tools(&self) -> Vec<String> {
        let mut texts = Vec::new();
        let mut params = json!({});
        loop {
            let result = self.ask("tools/list", &params).await;
            let page: Page = serde_json::from_str(result.get()).unwrap();
            texts.extend(page.tools.iter().map(|tool| tool.get().to_owned()));
            match page.next_cursor {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return texts,
            }
        }
    }

    /// The result of a call, as it was written.
    pub(super) async fn call(&self, tool: &str, arguments: &Value) -> String {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask("tools/call", &params).await.get().to_owned()
    }

    pub(super) async fn close(self) {
        self.link.close().await;
    }

    async fn ask(&self, method: &str, params: &Value) -> Box<RawValue> {
        let params = to_raw_value(params).unwrap();
        let params = match self.era {
            Era::Handshake => params,
            Era::Stateless => with_client_meta(Some(&params), &self.client_info),
        };
        let mut request = McpRequest::new(method, Some(&params));
        request.timeout = Some(SOON * 3);
        let outcome = self.link.ask(request).await.unwrap();
        outcome.unwrap_or_else(|error| panic!("{method}: {error:?}"))
    }
}
