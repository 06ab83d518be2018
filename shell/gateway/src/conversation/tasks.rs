//! Permitted calls whose answers come later, from tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use serde_json::value::RawValue;
use toolwarden_mcp::Members;
use toolwarden_warden::guard::OpenCall;

use super::lock;

/// The most tasks of one conversation whose calls are kept open.
const MOST: usize = 256;

/// Calls that are open until their tasks are over, by the names agents know.
#[derive(Debug, Default)]
pub struct OpenTasks {
    open: Mutex<BTreeMap<String, OpenCall>>,
    /// Tasks whose answers are not for the agent.
    withheld: Mutex<BTreeSet<String>>,
}

impl OpenTasks {
    /// Remembers that the answer of a task is not for the agent.
    pub(crate) fn withhold(&self, task: &str) {
        let mut withheld = lock(&self.withheld);
        if withheld.len() >= MOST {
            withheld.pop_first();
        }
        withheld.insert(task.to_owned());
    }

    /// Whether the answer of a task was withheld.
    pub(crate) fn is_withheld(&self, task: &str) -> bool {
        lock(&self.withheld).contains(task)
    }

    /// Keeps a call open. The oldest makes room, and counts as abandoned.
    pub(crate) fn keep(&self, task: String, open: OpenCall) {
        let mut tasks = lock(&self.open);
        let gone = if tasks.len() >= MOST {
            tasks.pop_first()
        } else {
            None
        };
        tasks.insert(task, open);
        drop(tasks);
        drop(gone);
    }

    /// The call of a task, if what was just asked of the task says that it is over.
    pub(crate) fn take_if_over(
        &self,
        method: &str,
        task: &str,
        result: &RawValue,
    ) -> Option<OpenCall> {
        let members = Members::of_optional(Some(result));
        let over = match method {
            "tasks/result" => true,
            _ => matches!(
                members.text("status").as_deref(),
                Some("completed" | "failed" | "cancelled")
            ),
        };
        // The answer itself is fetched with another request in the handshake era, which settles the call.
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
