use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use toolwarden_drift::text::TextFinding;
use toolwarden_drift::{ChangeClass, ToolDrift, ToolwatchChangeType};
use toolwarden_model::{Fingerprint, Severity};
use toolwarden_store::ServerKey;

use crate::DEFAULT_SCOPE;
use toolwarden_settings::WatchSettings;

/// The list of a server, as received.
#[derive(Clone, Debug)]
pub struct ReceivedList {
    /// The name of the server in the settings.
    pub server: String,
    /// The variant of clients that the list is for; `None` for the gateway's own list. In a variant's list,
    /// only tools with a definition that differs from the gateway's own list count.
    pub variant: Option<Arc<str>>,
    /// Names of tools that the server offers and that are judged elsewhere.
    pub unchanged: Vec<String>,
    /// Whether the list is complete; if not, no tool counts as removed.
    pub is_complete: bool,
    /// The definitions.
    pub tools: Vec<Box<RawValue>>,
    /// The instructions that the server gives to models.
    pub instructions: Option<String>,
    /// How drift is handled.
    pub settings: Arc<WatchSettings>,
}

impl ReceivedList {
    /// The key of its pins in the store: every variant has its own scope.
    pub(super) fn key(&self) -> ServerKey {
        ServerKey {
            name: self.server.clone(),
            scope: self.variant.as_deref().unwrap_or(DEFAULT_SCOPE).to_owned(),
        }
    }

    /// The fingerprint of the whole observation.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let whole = if self.is_complete { "whole" } else { "part" };
        let instructions = self.instructions.as_deref();
        let marked = instructions.map_or("without instructions", |_| "with instructions");
        let tools = self.tools.iter().map(|tool| tool.get());
        let parts = [whole, marked].into_iter().chain(instructions);
        Fingerprint::tagged("toolwarden/list/v1", parts.chain(tools))
    }
}

/// The result of checking a list.
#[derive(Clone, Debug)]
pub struct ListCheck {
    /// The treatment of each tool, by the name the server gave it. A tool without an entry is not served.
    pub tool_actions: BTreeMap<String, ToolAction>,
    /// The treatment of the server's instructions.
    pub instructions: ToolAction,
    /// Why nothing of the server is served, if so.
    pub block_server: Option<String>,
    /// The changes in short, including those of removed tools.
    pub changes: Vec<ChangeSummary>,
    /// The changes in full.
    pub drift: Vec<ToolDrift>,
    /// The tools that were pinned because they were new.
    pub registered: Vec<String>,
    /// The findings in new or changed text.
    pub findings: Vec<ToolFinding>,
}

/// How the gateway treats a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolAction {
    /// It is served.
    Serve,
    /// It is not listed and cannot be called.
    Hide {
        /// Why.
        why: String,
    },
    /// It is not listed, cannot be called, and needs approval.
    Quarantine {
        /// Why.
        why: String,
        /// The alert about it, if there is one.
        alert: Option<String>,
    },
}

impl ToolAction {
    /// Whether the tool is served.
    #[must_use]
    pub const fn is_served(&self) -> bool {
        matches!(self, Self::Serve)
    }
}

/// A summary of the change of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSummary {
    /// The tool.
    pub tool: String,
    /// Its most severe class.
    pub class: ChangeClass,
    /// Its severity.
    pub severity: Severity,
    /// The kind of drift.
    pub change_type: ToolwatchChangeType,
    /// Its summary, as a printable line.
    pub summary: String,
    /// The alert about it.
    pub alert: Option<String>,
    /// Whether it was not reported before.
    pub is_new: bool,
}

/// A finding in the text of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFinding {
    /// The tool.
    pub tool: String,
    /// The finding.
    pub finding: TextFinding,
}
