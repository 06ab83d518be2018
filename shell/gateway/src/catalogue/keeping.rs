//! How many lists of one server are kept, and for how long.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::client_view::session_of;
use super::kind::Kind;
use super::list::ListError;
use super::shelf::{Fetched, OWN, Shelf, ToolList, lock};
use crate::upstream::LinkKey;

/// The most lists of tools of one server that are kept: one for each variant of clients, and one for each
/// session. Lists share the tools they have in common.
const MOST_LISTS: usize = 4_096;

/// The most other lists: of prompts, resources and templates.
const MOST_OTHERS: usize = 1_024;

/// How many lists of the largest size are kept of one server; more of them only while they are smaller.
const LARGEST_LISTS: usize = 4;

impl Shelf {
    /// Forgets the oldest lists of tools beyond what is kept: neither the gateway's own nor the newest.
    pub(super) fn bound_lists(&self, known: &mut BTreeMap<Box<str>, Arc<ToolList>>, newest: &str) {
        let most = self.kept_bytes();
        let mut bytes: usize = known.values().map(|list| list.bytes).sum();
        while known.len() > MOST_LISTS || bytes > most {
            let others = known.iter();
            let others = others.filter(|(sight, _)| ***sight != *OWN && ***sight != *newest);
            let oldest = others.min_by_key(|(_, list)| list.fetched);
            let Some(sight) = oldest.map(|(sight, _)| sight.clone()) else {
                return;
            };
            let gone = known.remove(&sight);
            bytes = bytes.saturating_sub(gone.map_or(0, |list| list.bytes));
        }
    }

    /// Forgets the oldest of the other lists beyond what is kept.
    pub(super) fn bound_others(&self, others: &mut BTreeMap<(Kind, Box<str>), Fetched>) {
        let most = self.kept_bytes();
        let mut bytes: usize = others.values().map(|(_, list)| list.bytes).sum();
        while others.len() > 1 && (others.len() > MOST_OTHERS || bytes > most) {
            let oldest = others.iter().min_by_key(|(_, (fetched, _))| *fetched);
            let Some(place) = oldest.map(|(place, _)| place.clone()) else {
                return;
            };
            let gone = others.remove(&place);
            bytes = bytes.saturating_sub(gone.map_or(0, |(_, list)| list.bytes));
        }
    }

    /// Forgets what is kept for conversations that have ended. What was in flight when they did may have
    /// added to it since.
    pub(crate) fn retain_sessions(&self, is_open: impl Fn(&str) -> bool) {
        let is_kept = |sight: &str| session_of(sight).is_none_or(&is_open);
        lock(&self.tools).retain(|sight, _| is_kept(sight));
        lock(&self.others).retain(|(_, sight), _| is_kept(sight));
        lock(&self.flights).retain(|key, _| match key {
            LinkKey::Of(conversation) => is_open(conversation),
            LinkKey::Main | LinkKey::Variant(_) => true,
        });
    }

    /// Has the health of the server say what is wrong with a list.
    pub(super) fn note_malformed(&self, error: &ListError) {
        if let ListError::Malformed { .. } = error {
            self.upstream.note_fault(error);
        }
    }

    fn kept_bytes(&self) -> usize {
        let largest = self.upstream.settings().limits.list_bytes;
        largest.saturating_mul(LARGEST_LISTS)
    }
}
