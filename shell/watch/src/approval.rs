//! Observed changes that are pending approval, and approvals that were made.

use std::collections::BTreeSet;

use toolwarden_drift::Change;
use toolwarden_store::{Server, Sighting};

use crate::pins::Pin;

/// The pending approvals of one tool.
#[derive(Debug)]
pub struct PendingApproval {
    /// The server.
    pub server: Server,
    /// The observation.
    pub sighting: Sighting,
    /// The changes from the pinned definition; empty for an added or removed tool.
    pub changes: Vec<Change>,
    /// The findings in the text of a new tool, as sentences.
    pub findings: Vec<String>,
    /// The pending changes of results, as sentences.
    pub results: Vec<String>,
    /// The changes that were approved individually.
    pub approved: BTreeSet<String>,
    /// The pin of the tool, if it has one.
    pub pin: Option<Pin>,
    /// Its previous name, if it was renamed.
    pub renamed_from: Option<String>,
    /// The open alerts about it: their ids and change types.
    pub alerts: Vec<(String, String)>,
}

impl PendingApproval {
    /// The kind of pending approval, in a few words.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        let has_shape = self.sighting.shape.is_some();
        match (&self.pin, &self.sighting.definition) {
            (_, None) => "gone",
            (None, Some(_)) => "new",
            (Some(pin), Some(_)) if pin.definition.is_none() => "not as imported",
            (Some(_), Some(_)) if self.changes.is_empty() && !has_shape => "in another format",
            (Some(_), Some(_)) if self.changes.is_empty() => "other results",
            (Some(_), Some(_)) if has_shape => "changed, with other results",
            (Some(_), Some(_)) => "changed",
        }
    }
}

/// An approval that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovedItem {
    /// A tool is pinned to its observation.
    Tool {
        /// Its server.
        server: String,
        /// Its name.
        tool: String,
    },
    /// The pin of a missing tool is removed.
    RemovedTool {
        /// Its server.
        server: String,
        /// Its name.
        tool: String,
    },
    /// One change is approved; other changes of the tool are still pending.
    Change {
        /// Its server.
        server: String,
        /// Its tool.
        tool: String,
        /// The id of the change.
        id: String,
        /// How many changes are still pending.
        left: usize,
    },
}
