use std::borrow::Cow;
use std::sync::Arc;

use super::chain::{ChainLink, RecordContent, RecordContentRef};

/// The kind of the record that states which records were removed.
pub const CHECKPOINT: &str = "checkpoint";

const REMOVED: &str = "removed";

/// The record which states that every record up to `removed` was removed, by whom and when.
#[must_use]
pub fn checkpoint(removed: ChainLink, at_ms: i64, by: &str) -> RecordContent {
    RecordContent {
        at_ms,
        kind: Cow::Borrowed(CHECKPOINT),
        principal: Some(Arc::from(by)),
        tool: None,
        session: None,
        code: Cow::Borrowed(REMOVED),
        allowed: None,
        body: format!(
            r#"{{"hash":"{}","removed_through":{}}}"#,
            removed.hash, removed.seq
        ),
    }
}

/// The last removed record, if this record is a checkpoint.
pub(super) fn removed_up_to(content: RecordContentRef<'_>) -> Option<ChainLink> {
    if content.kind != CHECKPOINT || content.code != REMOVED {
        return None;
    }
    let body: serde_json::Value = serde_json::from_str(content.body).ok()?;
    Some(ChainLink {
        seq: body.get("removed_through")?.as_u64()?,
        hash: body.get("hash")?.as_str()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_says_what_was_removed() {
        let last = ChainLink {
            seq: 12,
            ..ChainLink::GENESIS
        };
        let content = checkpoint(last, 5, "ada");
        assert_eq!(removed_up_to(content.borrow()), Some(last));
        let zeros = "0".repeat(64);
        let body = format!(r#"{{"hash":"{zeros}","removed_through":12}}"#);
        assert_eq!(content.body, body);
        let other = RecordContentRef {
            kind: "decision",
            ..content.borrow()
        };
        assert_eq!(removed_up_to(other), None);
    }
}
