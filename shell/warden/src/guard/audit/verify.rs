use std::ops::ControlFlow;

use toolwarden_guard::audit::{Fault, Intact, Link, Verifier};
use toolwarden_store::{Store, StoreError};

use super::row;

/// What a verification of the log found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The chain, or the first record that breaks it.
    pub chain: Result<Intact, Fault>,
    /// The head the store claims.
    pub head: Link,
    /// The last record that was removed, as the store claims; number 0 if none was.
    pub removed: Link,
    /// What SQLite finds wrong with the file.
    pub damage: Vec<String>,
}

impl Verification {
    /// Whether nothing is wrong.
    #[must_use]
    pub const fn is_intact(&self) -> bool {
        self.chain.is_ok() && self.damage.is_empty()
    }
}

/// Verifies the whole log, and that it holds the record of a head that was noted elsewhere.
///
/// Without a noted head it cannot be seen that the newest records are gone and the head was changed
/// to fit, nor that the whole chain was computed anew.
///
/// # Errors
/// The store cannot be read.
pub fn verify(store: &Store, noted: Option<Link>) -> Result<Verification, StoreError> {
    let none = toolwarden_model::Fingerprint::from_bytes([0; 32]);
    let begin = |head| {
        let (head, removed) = (row::head(head), row::removed(head));
        (Verifier::new(head, removed, noted), head, removed, None)
    };
    let scanned = store.scan_records(begin, |state, seq, record| {
        let (verifier, _, _, fault) = state;
        let content = record.map(row::content);
        let hash = record.map_or(none, |record| record.hash);
        match verifier.feed(seq, content, &hash) {
            Ok(()) => ControlFlow::Continue(()),
            Err(found) => {
                *fault = Some(found);
                ControlFlow::Break(())
            }
        }
    });
    let (verifier, head, removed, fault) = match scanned {
        Ok(scanned) => scanned,
        Err(StoreError::NoAuditHead { .. }) => {
            return Ok(Verification {
                chain: Err(Fault::HeadUnreadable),
                head: Link::GENESIS,
                removed: Link::GENESIS,
                damage: store.integrity()?,
            });
        }
        Err(error) => return Err(error),
    };
    Ok(Verification {
        chain: fault.map_or_else(|| verifier.finish(), Err),
        head,
        removed,
        damage: store.integrity()?,
    })
}
