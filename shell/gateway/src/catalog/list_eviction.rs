//! Limits on the cached lists of one server.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::list_kind::ListKind;
use super::server_catalog::{CachedList, GATEWAY_SCOPE, ServerCatalog, ServerToolList, lock};
use super::server_list::ListError;
use super::server_view::scope_conversation;

/// The most cached tool lists of one server: one for each variant of clients, and one for each session. Lists
/// share the tools they have in common.
const MAX_TOOL_LISTS: usize = 4_096;

/// The most cached other lists: of prompts, resources and templates.
const MAX_FEATURE_LISTS: usize = 1_024;

/// How many lists of the maximum size are cached for one server; more only if they are smaller.
const LARGEST_LISTS: usize = 4;

impl ServerCatalog {
    /// Removes the oldest tool lists beyond the limits, but never the gateway's own or the newest.
    pub(super) fn evict_tool_lists(
        &self,
        known: &mut BTreeMap<Box<str>, Arc<ServerToolList>>,
        newest: &str,
    ) {
        let most = self.max_cached_bytes();
        let mut bytes: usize = known.values().map(|list| list.bytes).sum();
        while known.len() > MAX_TOOL_LISTS || bytes > most {
            let others = known.iter();
            let others =
                others.filter(|(sight, _)| ***sight != *GATEWAY_SCOPE && ***sight != *newest);
            let oldest = others.min_by_key(|(_, list)| list.fetched);
            let Some(sight) = oldest.map(|(sight, _)| sight.clone()) else {
                return;
            };
            let gone = known.remove(&sight);
            bytes = bytes.saturating_sub(gone.map_or(0, |list| list.bytes));
        }
    }

    /// Removes the oldest other lists beyond the limits.
    pub(super) fn evict_feature_lists(
        &self,
        others: &mut BTreeMap<(ListKind, Box<str>), CachedList>,
    ) {
        let most = self.max_cached_bytes();
        let mut bytes: usize = others.values().map(|(_, list)| list.bytes).sum();
        while others.len() > 1 && (others.len() > MAX_FEATURE_LISTS || bytes > most) {
            let oldest = others.iter().min_by_key(|(_, (fetched, _))| *fetched);
            let Some(place) = oldest.map(|(place, _)| place.clone()) else {
                return;
            };
            let gone = others.remove(&place);
            bytes = bytes.saturating_sub(gone.map_or(0, |(_, list)| list.bytes));
        }
    }

    /// Removes the lists of conversations that have ended. Requests that were in flight at the end may have added
    /// some since.
    pub(crate) fn retain_conversations(&self, is_open: impl Fn(&str) -> bool) {
        let is_kept = |sight: &str| scope_conversation(sight).is_none_or(&is_open);
        lock(&self.tools).retain(|sight, _| is_kept(sight));
        lock(&self.feature_lists).retain(|(_, sight), _| is_kept(sight));
    }

    /// Shows an error of a list in the health of the server.
    pub(super) fn report_malformed(&self, error: &ListError) {
        if let ListError::Malformed { .. } = error {
            self.upstream.record_fault(error);
        }
    }

    fn max_cached_bytes(&self) -> usize {
        let largest = self.upstream.settings().limits.list_bytes;
        largest.saturating_mul(LARGEST_LISTS)
    }
}
