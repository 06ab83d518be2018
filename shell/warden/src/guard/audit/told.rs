//! What a verification found, in words and as JSON.

use serde_json::{Value, json};
use toolwarden_guard::audit::{Fault, Intact, Link, NotedHead};

use super::verify::Verification;

impl Verification {
    /// Whether nothing is wrong, and it can be said whether the log still holds the noted head.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.is_intact() && self.chain.as_ref().is_ok_and(is_answered)
    }

    /// The verification as JSON, with the head that was noted elsewhere.
    #[must_use]
    pub fn document(&self, noted: Option<Link>) -> Value {
        let intact = self.chain.as_ref().ok();
        let fault = self.chain.as_ref().err().map(|fault| {
            json!({
                "code": code(fault),
                "record": record(fault),
                "message": fault.to_string(),
                "meaning": fault_meaning(fault),
            })
        });
        let noted = noted.zip(intact).map(|(noted, intact)| {
            let confirmed = intact.noted == NotedHead::Confirmed;
            json!({"head": noted.to_string(), "status": if confirmed { "confirmed" } else { "removed" }})
        });
        // A script must not note the head of a log that may not be the one it knew.
        let head = intact.filter(|it| self.is_intact() && is_answered(it));
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

/// Whether it can be said if the log still holds the noted head. Who computes a log anew can also
/// make it say that the noted record was removed, so this is no yes.
const fn is_answered(intact: &Intact) -> bool {
    match intact.noted {
        NotedHead::Confirmed | NotedHead::NotGiven => true,
        NotedHead::Removed => false,
    }
}

/// What a fault means, in plain words.
#[must_use]
pub const fn fault_meaning(fault: &Fault) -> &'static str {
    match fault {
        Fault::StartMissing { .. } => {
            "the oldest records are gone, and not by `audit prune`: that would have said so"
        }
        Fault::Missing { .. } => "somebody removed it from between the others",
        Fault::Unexpected { .. } => {
            "it is before the start of the log or out of order: somebody put it there"
        }
        Fault::Changed { .. } => {
            "what it says or the record it follows is not what its hash was computed from; \
             everything before it fits"
        }
        Fault::TailMissing { .. } => "the newest records are gone",
        Fault::BeyondHead { .. } => "it was written past the program, which moves the head along",
        Fault::HeadDiffers { .. } => "somebody changed the head, or the last record with its hash",
        Fault::HeadUnreadable => "the program always keeps one: somebody removed or changed it",
        Fault::RemovalUnproven { .. } => {
            "the oldest records are gone, and not by `audit prune`: its record is missing"
        }
        Fault::NotedMissing { .. } => {
            "the log ends before it: the newest records were cut off, or this is another or older log"
        }
        Fault::NotedDiffers { .. } => {
            "the log was computed anew since the head was noted, or this is another log"
        }
    }
}

/// The word for a fault in documents.
const fn code(fault: &Fault) -> &'static str {
    match fault {
        Fault::StartMissing { .. } => "start_missing",
        Fault::Missing { .. } => "missing",
        Fault::Unexpected { .. } => "unexpected",
        Fault::Changed { .. } => "changed",
        Fault::TailMissing { .. } => "tail_missing",
        Fault::BeyondHead { .. } => "beyond_head",
        Fault::HeadDiffers { .. } => "head_differs",
        Fault::HeadUnreadable => "head_unreadable",
        Fault::RemovalUnproven { .. } => "removal_unproven",
        Fault::NotedMissing { .. } => "noted_missing",
        Fault::NotedDiffers { .. } => "noted_differs",
    }
}

/// The first record that is missing or wrong.
fn record(fault: &Fault) -> i64 {
    let seq = match *fault {
        Fault::Unexpected { seq } => return seq,
        // Without a head nothing vouches for the first record either.
        Fault::HeadUnreadable => 1,
        Fault::StartMissing { expected: seq, .. }
        | Fault::Missing { seq }
        | Fault::Changed { seq }
        | Fault::BeyondHead { seq }
        | Fault::HeadDiffers { seq }
        | Fault::RemovalUnproven { through: seq }
        | Fault::NotedMissing { seq }
        | Fault::NotedDiffers { seq } => seq,
        Fault::TailMissing { found, .. } => found.saturating_add(1),
    };
    i64::try_from(seq).unwrap_or(i64::MAX)
}
