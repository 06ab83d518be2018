//! Resources, prompts, skills and methods of extensions, which pass the gates that tools pass.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolwarden_guard::{Denial, Feature, FeatureKind, ToolPolicy};

use super::live::{Call, LiveGuard};

/// What was used, for a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedFeature {
    /// What it is.
    pub kind: FeatureKind,
    /// The server that offers it; none where no server does.
    pub server: Option<Box<str>>,
    /// The method by which it is used.
    pub method: Box<str>,
}

impl UsedFeature {
    pub(super) fn of(feature: &Feature<'_>) -> Box<Self> {
        Box::new(Self {
            kind: feature.kind,
            server: feature.server.map(Box::from),
            method: feature.method.into(),
        })
    }
}

impl LiveGuard {
    /// Takes the servers there are, in the place of those before, each with the rules for what it offers
    /// besides tools and the policy does not name. They outlive a change of the policy.
    pub fn set_servers(&self, servers: BTreeMap<Arc<str>, Arc<ToolPolicy>>) {
        let mut parts = self.shared.parts();
        if parts.servers == servers {
            return;
        }
        parts.servers = servers;
        self.shared.use_parts(parts);
    }

    /// Which of some features a principal sees in a session, in the order given. What the call itself
    /// is about does not matter.
    ///
    /// # Errors
    /// Groups are asked for that are not granted.
    pub fn visible<'f>(
        &self,
        call: &Call<'_>,
        features: impl IntoIterator<Item = Feature<'f>>,
    ) -> Result<Vec<bool>, Denial> {
        let shared = &self.shared;
        let current = shared.current_for(call);
        let guard = &current.guard;
        let standing = shared.standing(guard, call, shared.clock.monotonic());
        shared.note_claim(&current, call, &standing);
        shared.asking(guard, call, &standing, |request| {
            let reachable = guard.reachable(request, features);
            match &reachable {
                Ok(found) => {
                    shared.note_groups(&current, call, &found.unknown_groups, &found.narrowed);
                }
                Err(denial) => shared.note_refused_listing(&current, call, request, denial),
            }
            reachable.map(|found| found.admitted)
        })
    }

    /// Whether a principal would see what a call is about. Nothing is counted or recorded.
    #[must_use]
    pub fn may_see(&self, call: &Call<'_>) -> bool {
        let shared = &self.shared;
        let current = shared.current_for(call);
        let guard = &current.guard;
        let standing = shared.standing(guard, call, shared.clock.monotonic());
        shared.asking(guard, call, &standing, |request| {
            guard.admit(request, call.wanted()).is_ok()
        })
    }

    /// Whether the state of a session decides what it sees of other things than tools.
    #[must_use]
    pub fn lists_features_by_state(&self) -> bool {
        self.shared.current().guard.has_features_by_state()
    }
}
