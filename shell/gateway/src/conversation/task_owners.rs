//! Whose tasks are: over a link that agents share a server does not tell them apart.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use hashbrown::HashMap;

use super::lock;

/// The most tasks whose owners are known; the oldest is forgotten, and nobody's then.
const MOST: usize = 100_000;
/// The most principals that are known to have made tasks of one name.
const MOST_OF_ONE_NAME: usize = 256;

/// The principals that made tasks, by the names agents know.
#[derive(Debug, Default)]
pub struct TaskOwners(Mutex<Owners>);

#[derive(Debug, Default)]
struct Owners {
    /// The last one last: over links of their own several principals may have tasks of one name.
    by_task: HashMap<Arc<str>, VecDeque<Arc<str>>>,
    oldest: VecDeque<Arc<str>>,
}

impl TaskOwners {
    /// Remembers who made a task.
    pub(crate) fn note(&self, task: &str, owner: &Arc<str>) {
        let mut owners = lock(&self.0);
        if let Some(known) = owners.by_task.get_mut(task) {
            known.retain(|it| it != owner);
            if known.len() >= MOST_OF_ONE_NAME {
                known.pop_front();
            }
            known.push_back(Arc::clone(owner));
            return;
        }
        if owners.oldest.len() >= MOST
            && let Some(oldest) = owners.oldest.pop_front()
        {
            owners.by_task.remove(&oldest);
        }
        let task: Arc<str> = task.into();
        owners.oldest.push_back(Arc::clone(&task));
        let first = VecDeque::from([Arc::clone(owner)]);
        owners.by_task.insert(task, first);
    }

    /// Whether somebody else made a task.
    pub(crate) fn is_of_others(&self, task: &str, principal: &str) -> bool {
        let owners = lock(&self.0);
        let owner = owners.by_task.get(task).and_then(VecDeque::back);
        owner.is_some_and(|owner| **owner != *principal)
    }

    /// Whether somebody made a task.
    pub(crate) fn is_of(&self, task: &str, principal: &str) -> bool {
        let owners = lock(&self.0);
        let owner = owners.by_task.get(task).and_then(VecDeque::back);
        owner.is_some_and(|owner| **owner == *principal)
    }

    /// Whether a principal made any task.
    pub(crate) fn has_any(&self, principal: &str) -> bool {
        let owners = lock(&self.0);
        let mut known = owners.by_task.values().flatten();
        known.any(|it| **it == *principal)
    }

    /// Whether a principal made a task of this name over any link.
    pub(crate) fn has_made(&self, task: &str, principal: &str) -> bool {
        let owners = lock(&self.0);
        let known = owners.by_task.get(task);
        known.is_some_and(|known| known.iter().any(|it| **it == *principal))
    }
}
