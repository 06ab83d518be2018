//! The chain of audit records: how one record is tied to the one before, and what breaks it.
//!
//! The chain has no key. It shows that a log was changed by somebody who did not compute it anew:
//! an edited, removed, added or moved record. Who can write the file can also compute the whole
//! chain anew, or cut off its tail and say so in the head; only a head noted elsewhere shows that.

mod chain;
mod removal;
mod verifier;

pub use chain::{Content, ContentRef, InvalidLink, Link, link};
pub use removal::{CHECKPOINT, checkpoint};
pub use verifier::{Fault, Intact, NotedHead, Verifier};
