//! The agent of the demo: an MCP client with a script.

use serde_json::Value;
use toolwarden_mcp::{ConnectionLimits, Endpoint, McpClient, McpError, ServerUrl};

use super::demo_error;
use crate::error::{CliError, with_causes};

/// Where a refusal stands in the `_meta` of a tool error.
const DENIAL: &str = "toolwarden/denial";

/// An agent that has reached the gateway.
pub(super) struct DemoAgent {
    client: McpClient,
}

/// What came of a call.
pub(super) enum DemoCallOutcome {
    /// The result of the tool, as structured content.
    Result(Value),
    /// A refusal: its code, why, and how to go on.
    Denied {
        code: String,
        reason: String,
        advice: String,
    },
}

impl DemoAgent {
    pub(super) async fn connect(url: &str) -> Result<Self, CliError> {
        let endpoint = Endpoint::Url(ServerUrl {
            url: url.to_owned(),
            headers: Vec::new(),
        });
        let client = McpClient::connect(&endpoint, &ConnectionLimits::default()).await;
        let client = client.map_err(|error| agent_error("connect", &error))?;
        Ok(Self { client })
    }

    /// The names of the tools that are offered, in their order.
    pub(super) async fn tools(&self) -> Result<Vec<String>, CliError> {
        let listed = self.client.list_tools().await;
        let listed = listed.map_err(|error| agent_error("list tools", &error))?;
        let name = |text: &str| {
            let definition: Value = serde_json::from_str(text).ok()?;
            Some(definition.get("name")?.as_str()?.to_owned())
        };
        Ok(listed
            .tools
            .iter()
            .filter_map(|it| name(it.get()))
            .collect())
    }

    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> Result<DemoCallOutcome, CliError> {
        let called = self.client.call_tool(tool, arguments).await;
        let called = called.map_err(|error| agent_error(&format!("call {tool}"), &error))?;
        let result: Value = serde_json::from_str(called.get())
            .map_err(|error| demo_error(format!("{tool} returned no JSON: {error}")))?;
        let denial = result.pointer("/_meta").and_then(|it| it.get(DENIAL));
        if let Some(denial) = denial {
            let word = |key: &str| {
                let said = denial.get(key).and_then(Value::as_str);
                said.unwrap_or_default().to_owned()
            };
            return Ok(DemoCallOutcome::Denied {
                code: word("code"),
                reason: word("reason"),
                advice: word("advice"),
            });
        }
        let content = result.get("structuredContent").cloned();
        content
            .filter(|_| result.get("isError") != Some(&Value::Bool(true)))
            .map(DemoCallOutcome::Result)
            .ok_or_else(|| demo_error(format!("{tool} failed: {result}")))
    }

    pub(super) async fn close(self) {
        self.client.close().await;
    }
}

fn agent_error(what: &str, error: &McpError) -> CliError {
    let why = with_causes(error);
    demo_error(format!("the agent could not {what}: {why}"))
}
