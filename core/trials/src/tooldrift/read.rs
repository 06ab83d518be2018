use std::collections::BTreeMap;

use serde::Deserialize;

use super::snapshot::{ToolCallShape, TooldriftSnapshot};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    provider: String,
    model_id: String,
    #[serde(default)]
    suite: Option<String>,
    #[serde(default, rename = "schema_version")]
    _schema_version: u64,
    #[serde(default)]
    tools: BTreeMap<String, ToolCallShape>,
}

/// Reads a file of tooldrift. Fields of a tool that are missing have the value tooldrift gives them.
pub(crate) fn read(text: &str) -> Result<TooldriftSnapshot, serde_json::Error> {
    let document: Document = serde_json::from_str(text)?;
    Ok(TooldriftSnapshot {
        provider: document.provider,
        model_id: document.model_id,
        suite: document.suite.unwrap_or_default(),
        tools: document.tools,
    })
}
