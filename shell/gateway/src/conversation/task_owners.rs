//! Whose tasks are: over a link that agents share a server does not tell them apart.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use hashbrown::HashMap;

use super::lock;

/// The most tasks whose owners are known; the oldest is forgotten, and nobody's then.
const MOST: usize = 100_000;

/// The principals that made tasks, by the names agents know.
#[derive(Debug, Default)]
pub struct TaskOwners(Mutex<Owners>);

#[derive(Debug, Default)]
struct Owners {
    by_task: HashMap<Arc<str>, Arc<str>>,
    oldest: VecDeque<Arc<str>>,
}

impl TaskOwners {
    /// Remembers who made a task.
    pub(crate) fn note(&self, task: &str, owner: &Arc<str>) {
        let mut owners = lock(&self.0);
        if let Some(before) = owners.by_task.get_mut(task) {
            *before = Arc::clone(owner);
            return;
        }
        if owners.oldest.len() >= MOST
            && let Some(oldest) = owners.oldest.pop_front()
        {
            owners.by_task.remove(&oldest);
        }
        let task: Arc<str> = task.into();
        owners.oldest.push_back(Arc::clone(&task));
        owners.by_task.insert(task, Arc::clone(owner));
    }

    /// Whether somebody else made a task.
    pub(crate) fn is_of_others(&self, task: &str, principal: &str) -> bool {
        let owners = lock(&self.0);
        let owner = owners.by_task.get(task);
        owner.is_some_and(|owner| **owner != *principal)
    }

    /// Whether somebody made a task.
    pub(crate) fn is_of(&self, task: &str, principal: &str) -> bool {
        let owners = lock(&self.0);
        owners
            .by_task
            .get(task)
            .is_some_and(|owner| **owner == *principal)
    }
}
