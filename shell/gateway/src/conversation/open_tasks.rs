//! Permitted calls whose results come later, from tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use serde_json::value::RawValue;
use toolwarden_live_guard::OpenCall;
use toolwarden_mcp::RawObject;

use super::lock;

/// The most tasks of one conversation whose calls stay open.
const MAX_TASKS: usize = 256;

/// Calls that stay open until their tasks end, by the ids agents know.
#[derive(Debug, Default)]
pub struct OpenTasks {
    open: Mutex<BTreeMap<String, OpenCall>>,
    /// Tasks whose results are withheld from the agent.
    withheld: Mutex<BTreeSet<String>>,
}

impl OpenTasks {
    /// Marks the result of a task as withheld from the agent.
    pub(crate) fn withhold(&self, task: &str) {
        let mut withheld = lock(&self.withheld);
        if withheld.len() >= MAX_TASKS {
            withheld.pop_first();
        }
        withheld.insert(task.to_owned());
    }

    /// Whether the result of a task was withheld.
    pub(crate) fn is_withheld(&self, task: &str) -> bool {
        lock(&self.withheld).contains(task)
    }

    /// Keeps a call open. If there is no room, the oldest is dropped and counts as abandoned.
    pub(crate) fn insert(&self, task: String, open: OpenCall) {
        let mut tasks = lock(&self.open);
        let gone = if tasks.len() >= MAX_TASKS {
            tasks.pop_first()
        } else {
            None
        };
        tasks.insert(task, open);
        drop(tasks);
        drop(gone);
    }

    /// Removes and returns the call of a task, if the server's latest answer shows that the task has ended.
    pub(crate) fn take_if_finished(
        &self,
        method: &str,
        task: &str,
        result: &RawValue,
    ) -> Option<OpenCall> {
        let members = RawObject::parse_optional(Some(result));
        let over = match method {
            "tasks/result" => true,
            _ => matches!(
                members.text("status").as_deref(),
                Some("completed" | "failed" | "cancelled")
            ),
        };
        // In the handshake era another request fetches the result itself and settles the call.
        let fetched_later = method != "tasks/result"
            && members.text("status").as_deref() == Some("completed")
            && members.get("result").is_none();
        if over && !fetched_later {
            lock(&self.open).remove(task)
        } else {
            None
        }
    }
}
