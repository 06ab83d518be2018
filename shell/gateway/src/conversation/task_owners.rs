//! The owners of tasks: over a link that agents share, a server does not distinguish them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use hashbrown::HashMap;

use super::lock;

/// The most tasks whose owners are stored; the oldest is forgotten, and then has no owner.
const MAX_TASKS: usize = 100_000;
/// The most principals that are stored for one task id.
const MAX_OWNERS_PER_TASK: usize = 256;

/// The principals that started tasks, by the ids agents know.
#[derive(Debug, Default)]
pub struct TaskOwners(Mutex<Owners>);

#[derive(Debug, Default)]
struct Owners {
    /// The latest comes last: over their own links, several principals may have tasks with the same id.
    by_task: HashMap<Arc<str>, VecDeque<Arc<str>>>,
    oldest: VecDeque<Arc<str>>,
}

impl TaskOwners {
    /// Stores which principal started a task.
    pub(crate) fn record(&self, task: &str, owner: &Arc<str>) {
        let mut owners = lock(&self.0);
        if let Some(known) = owners.by_task.get_mut(task) {
            known.retain(|it| it != owner);
            if known.len() >= MAX_OWNERS_PER_TASK {
                known.pop_front();
            }
            known.push_back(Arc::clone(owner));
            return;
        }
        if owners.oldest.len() >= MAX_TASKS
            && let Some(oldest) = owners.oldest.pop_front()
        {
            owners.by_task.remove(&oldest);
        }
        let task: Arc<str> = task.into();
        owners.oldest.push_back(Arc::clone(&task));
        let first = VecDeque::from([Arc::clone(owner)]);
        owners.by_task.insert(task, first);
    }

    /// Whether another principal was the last to start a task with this id.
    pub(crate) fn belongs_to_other(&self, task: &str, principal: &str) -> bool {
        let owners = lock(&self.0);
        let owner = owners.by_task.get(task).and_then(VecDeque::back);
        owner.is_some_and(|owner| **owner != *principal)
    }

    /// Whether this principal was the last to start a task with this id.
    pub(crate) fn belongs_to(&self, task: &str, principal: &str) -> bool {
        let owners = lock(&self.0);
        let owner = owners.by_task.get(task).and_then(VecDeque::back);
        owner.is_some_and(|owner| **owner == *principal)
    }

    /// Whether a principal started any task.
    pub(crate) fn has_any(&self, principal: &str) -> bool {
        let owners = lock(&self.0);
        let mut known = owners.by_task.values().flatten();
        known.any(|it| **it == *principal)
    }

    /// Whether a principal started a task with this id over any link.
    pub(crate) fn has_created(&self, task: &str, principal: &str) -> bool {
        let owners = lock(&self.0);
        let known = owners.by_task.get(task);
        known.is_some_and(|known| known.iter().any(|it| **it == *principal))
    }
}
