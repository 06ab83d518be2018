//! Resources, prompts, skills and extension methods, which pass the same gates as tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolwarden_guard::{Denial, Feature, ToolPolicy};

use super::call::Call;
use super::live_guard::LiveGuard;

impl LiveGuard {
    /// Replaces the list of servers. Each has the rules for its features besides tools that the policy does
    /// not name. They survive a change of the policy.
    pub fn set_servers(&self, servers: BTreeMap<Arc<str>, Arc<ToolPolicy>>) {
        let mut parts = self.shared.parts();
        if parts.servers == servers {
            return;
        }
        parts.servers = servers;
        self.shared.activate(parts);
    }

    /// Which of the given features a principal sees in a session, in the given order. The feature of the
    /// call itself is ignored.
    ///
    /// # Errors
    /// The request names groups that are not granted.
    pub fn visible_features<'f>(
        &self,
        call: &Call<'_>,
        features: impl IntoIterator<Item = Feature<'f>>,
    ) -> Result<Vec<bool>, Denial> {
        let shared = &self.shared;
        let current = shared.policy_for_call(call);
        let guard = &current.guard;
        let session_context = shared.session_context(guard, call, shared.clock.monotonic());
        shared.record_refused_claim(&current, call, &session_context);
        shared.with_request(guard, call, &session_context, |request| {
            let reachable = guard.reachable(request, features);
            match &reachable {
                Ok(found) => {
                    shared.record_refused_groups(
                        &current,
                        call,
                        &found.unknown_groups,
                        &found.dropped_groups,
                    );
                }
                Err(denial) => shared.record_refused_listing(&current, call, request, denial),
            }
            reachable.map(|found| found.admitted)
        })
    }

    /// Whether a principal would see the feature of a call. Nothing is counted or recorded.
    #[must_use]
    pub fn may_see(&self, call: &Call<'_>) -> bool {
        let shared = &self.shared;
        let current = shared.policy_for_call(call);
        let guard = &current.guard;
        let session_context = shared.session_context(guard, call, shared.clock.monotonic());
        shared.with_request(guard, call, &session_context, |request| {
            guard.admit(request, call.requested_feature()).is_ok()
        })
    }

    /// Whether the state of a session affects which features besides tools it sees.
    #[must_use]
    pub fn lists_features_by_state(&self) -> bool {
        self.shared.current().guard.has_features_by_state()
    }
}
