//! The result of a verification, as text and as JSON.

use serde_json::{Value, json};
use toolwarden_guard::audit::{ChainFault, ChainLink, HeadCheck, VerifiedLog};

use super::verify::Verification;

impl Verification {
    /// Whether there is no fault and the noted head could be checked.
    #[must_use]
    pub fn is_conclusive(&self) -> bool {
        self.is_intact() && self.chain.as_ref().is_ok_and(is_conclusive)
    }

    /// The verification as JSON, with the head that was noted elsewhere.
    #[must_use]
    pub fn document(&self, noted: Option<ChainLink>) -> Value {
        let intact = self.chain.as_ref().ok();
        let fault = self.chain.as_ref().err().map(|fault| {
            json!({
                "code": fault_code(fault),
                "record": first_bad_record(fault),
                "message": fault.to_string(),
                "meaning": describe_fault(fault),
            })
        });
        let noted = noted.zip(intact).map(|(noted, intact)| {
            let confirmed = intact.noted == HeadCheck::Confirmed;
            json!({"head": noted.to_string(), "status": if confirmed { "confirmed" } else { "removed" }})
        });
        // A script must not note the head of a log that may not be the one it knew.
        let head = intact.filter(|it| self.is_intact() && is_conclusive(it));
        let head = head.map(|it| it.head.to_string());
        json!({
            "schema": "toolwarden/audit/verification/v1",
            "intact": self.is_intact(),
            "records": intact.map(|it| it.records),
            "removed_through": self.removed.seq,
            "head": head,
            "noted": noted,
            "fault": fault,
            "damage": self.damage,
        })
    }
}

/// Whether the noted head could be checked. An attacker who recomputes a log can also make it state that
/// the noted record was removed, so a removed record does not confirm it.
const fn is_conclusive(intact: &VerifiedLog) -> bool {
    match intact.noted {
        HeadCheck::Confirmed | HeadCheck::NotGiven => true,
        HeadCheck::Removed => false,
    }
}

/// What a fault means, in plain words.
#[must_use]
pub const fn describe_fault(fault: &ChainFault) -> &'static str {
    match fault {
        ChainFault::StartMissing { .. } => {
            "the oldest records are gone, and not by `audit prune`: that would have added a checkpoint"
        }
        ChainFault::Missing { .. } => "it was removed from between the others",
        ChainFault::Unexpected { .. } => {
            "it is before the start of the log or out of order: it was inserted later"
        }
        ChainFault::Changed { .. } => {
            "its content or the record before it does not match its hash; \
             all records before it are intact"
        }
        ChainFault::TailMissing { .. } => "the newest records are gone",
        ChainFault::BeyondHead { .. } => {
            "another program wrote it: this program would have updated the head"
        }
        ChainFault::HeadDiffers { .. } => "the head was changed, or the last record with its hash",
        ChainFault::HeadUnreadable => "the program always keeps one: it was removed or changed",
        ChainFault::RemovalUnproven { .. } => {
            "the oldest records are gone, and not by `audit prune`: its record is missing"
        }
        ChainFault::NotedMissing { .. } => {
            "the log ends before it: the newest records were cut off, or this is another or older log"
        }
        ChainFault::NotedDiffers { .. } => {
            "the log was recomputed since the head was noted, or this is another log"
        }
    }
}

/// The word for a fault in documents.
const fn fault_code(fault: &ChainFault) -> &'static str {
    match fault {
        ChainFault::StartMissing { .. } => "start_missing",
        ChainFault::Missing { .. } => "missing",
        ChainFault::Unexpected { .. } => "unexpected",
        ChainFault::Changed { .. } => "changed",
        ChainFault::TailMissing { .. } => "tail_missing",
        ChainFault::BeyondHead { .. } => "beyond_head",
        ChainFault::HeadDiffers { .. } => "head_differs",
        ChainFault::HeadUnreadable => "head_unreadable",
        ChainFault::RemovalUnproven { .. } => "removal_unproven",
        ChainFault::NotedMissing { .. } => "noted_missing",
        ChainFault::NotedDiffers { .. } => "noted_differs",
    }
}

/// The first record that is missing or wrong.
fn first_bad_record(fault: &ChainFault) -> i64 {
    let seq = match *fault {
        ChainFault::Unexpected { seq } => return seq,
        // Without a head, not even the first record can be trusted.
        ChainFault::HeadUnreadable => 1,
        ChainFault::StartMissing { expected: seq, .. }
        | ChainFault::Missing { seq }
        | ChainFault::Changed { seq }
        | ChainFault::BeyondHead { seq }
        | ChainFault::HeadDiffers { seq }
        | ChainFault::RemovalUnproven { through: seq }
        | ChainFault::NotedMissing { seq }
        | ChainFault::NotedDiffers { seq } => seq,
        ChainFault::TailMissing { found, .. } => found.saturating_add(1),
    };
    i64::try_from(seq).unwrap_or(i64::MAX)
}
