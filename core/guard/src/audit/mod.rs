//! The hash chain of audit records: how each record is linked to the previous one, and how tampering is
//! detected.
//!
//! The chain has no key. It detects an edited, removed, added or moved record if the attacker did not
//! recompute the chain. An attacker who can write the file can also recompute the whole chain, or cut off
//! its tail and adjust the head. Only a head noted elsewhere reveals that.

mod chain;
mod checkpoint;
mod verifier;

pub use chain::{ChainLink, InvalidChainLink, RecordContent, RecordContentRef, record_hash};
pub use checkpoint::{CHECKPOINT, checkpoint};
pub use verifier::{ChainFault, ChainVerifier, HeadCheck, VerifiedLog};
