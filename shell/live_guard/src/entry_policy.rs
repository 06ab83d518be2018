//! What log entries need of the policy that decided.

use std::sync::Arc;

use toolwarden_guard::{Guard, Redaction};

/// The parts of a policy that its entries need. It outlives the policy as long as entries refer to it.
#[derive(Debug)]
pub(super) struct EntryPolicy {
    /// The policy without permissions changed at run time; it has the same names.
    pub(super) guard: Guard,
    pub(super) redaction: Redaction,
}

impl EntryPolicy {
    pub(super) fn new(guard: Guard) -> Arc<Self> {
        let redaction = Redaction::new(guard.audit());
        Arc::new(Self { guard, redaction })
    }
}
