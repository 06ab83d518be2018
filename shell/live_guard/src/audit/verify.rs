use std::ops::ControlFlow;

use toolwarden_guard::audit::{ChainFault, ChainLink, ChainVerifier, VerifiedLog};
use toolwarden_store::{Store, StoreError};

use super::record_row;

/// The result of verifying the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The chain, or the first record that breaks it.
    pub chain: Result<VerifiedLog, ChainFault>,
    /// The head that the store claims.
    pub head: ChainLink,
    /// The last removed record according to the store; number 0 if none was removed.
    pub removed: ChainLink,
    /// The damage that SQLite finds in the file.
    pub damage: Vec<String>,
}

impl Verification {
    /// Whether there is no fault.
    #[must_use]
    pub const fn is_intact(&self) -> bool {
        self.chain.is_ok() && self.damage.is_empty()
    }
}

/// Verifies the whole log, and that it contains the record of a head that was noted elsewhere.
///
/// Without a noted head, verification cannot detect that the newest records were removed and the head
/// adjusted, or that the whole chain was recomputed.
///
/// # Errors
/// The store cannot be read.
pub fn verify(store: &Store, noted: Option<ChainLink>) -> Result<Verification, StoreError> {
    let none = toolwarden_model::Fingerprint::from_bytes([0; 32]);
    let begin = |head| {
        let (head, removed) = (record_row::head_link(head), record_row::removed_link(head));
        (
            ChainVerifier::new(head, removed, noted),
            head,
            removed,
            None,
        )
    };
    let scanned = store.scan_records(begin, |state, seq, record| {
        let (verifier, _, _, fault) = state;
        let content = record.map(record_row::row_content);
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
                chain: Err(ChainFault::HeadUnreadable),
                head: ChainLink::GENESIS,
                removed: ChainLink::GENESIS,
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
