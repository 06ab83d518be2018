use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use toolwarden_drift::text::Finding;
use toolwarden_drift::{ChangeType, Class, Severity, ToolDrift};
use toolwarden_model::Fingerprint;
use toolwarden_store::ServerKey;

use crate::DEFAULT_SCOPE;
use crate::settings::WatchSettings;

/// What a server lists, as received.
#[derive(Clone, Debug)]
pub struct SeenList {
    /// The name of the server in the settings.
    pub server: String,
    /// Which variant of clients it is for; none for what the server offers the gateway itself. Of a
    /// variant only the tools count that the gateway itself is not offered in the same words.
    pub variant: Option<Arc<str>>,
    /// Names of tools that the server offers and that are judged elsewhere.
    pub unchanged: Vec<String>,
    /// Whether this is everything the server offers; if not, nothing is taken for gone.
    pub whole: bool,
    /// The definitions.
    pub tools: Vec<Box<RawValue>>,
    /// What the server tells models about itself.
    pub instructions: Option<String>,
    /// What becomes of what drifted.
    pub settings: Arc<WatchSettings>,
}

impl SeenList {
    /// Where the store keeps its pins: every variant has a scope of its own.
    pub(super) fn key(&self) -> ServerKey {
        ServerKey {
            name: self.server.clone(),
            scope: self.variant.as_deref().unwrap_or(DEFAULT_SCOPE).to_owned(),
        }
    }

    /// Names everything that was seen.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let whole = if self.whole { "whole" } else { "part" };
        let instructions = self.instructions.as_deref();
        let marked = instructions.map_or("without instructions", |_| "with instructions");
        let tools = self.tools.iter().map(|tool| tool.get());
        let parts = [whole, marked].into_iter().chain(instructions);
        Fingerprint::tagged("toolwarden/list/v1", parts.chain(tools))
    }
}

/// What a list is worth.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What becomes of each tool, by the name the server gave it. What has no entry is not served.
    pub treatments: BTreeMap<String, Treatment>,
    /// What becomes of the instructions of the server.
    pub instructions: Treatment,
    /// Why nothing of the server is served, where that is so.
    pub block_server: Option<String>,
    /// What changed, in short; also of tools that are gone.
    pub changes: Vec<ChangeSummary>,
    /// What changed, in full.
    pub drift: Vec<ToolDrift>,
    /// The tools that were pinned because they never were.
    pub registered: Vec<String>,
    /// What new or changed text carries.
    pub findings: Vec<ToolFinding>,
}

/// What becomes of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It is served.
    Serve,
    /// It is neither listed nor callable.
    Hide {
        /// Why.
        why: String,
    },
    /// It is neither listed nor callable, and a matter for approval.
    Quarantine {
        /// Why.
        why: String,
        /// The alert about it, where there is one.
        alert: Option<String>,
    },
}

impl Treatment {
    /// Whether the tool is served.
    #[must_use]
    pub const fn is_served(&self) -> bool {
        matches!(self, Self::Serve)
    }
}

/// What became of one tool, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSummary {
    /// The tool.
    pub tool: String,
    /// The gravest class.
    pub class: Class,
    /// How grave it is.
    pub severity: Severity,
    /// What kind of drift it is.
    pub change_type: ChangeType,
    /// What it is about, in a line that can be printed.
    pub summary: String,
    /// The alert about it.
    pub alert: Option<String>,
    /// Whether nobody was told before.
    pub is_news: bool,
}

/// Something that the text of a definition carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFinding {
    /// The tool.
    pub tool: String,
    /// What was found.
    pub finding: Finding,
}
