use std::borrow::Cow;
use std::sync::Arc;

use super::chain::{Content, ContentRef, Link};

/// The kind of the record that says which records were removed.
pub const CHECKPOINT: &str = "checkpoint";

const REMOVED: &str = "removed";

/// The record that says that every record up to `removed` was removed, by whom and when.
#[must_use]
pub fn checkpoint(removed: Link, at_ms: i64, by: &str) -> Content {
    Content {
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

/// The last of the removed records, if this record says that there are any.
pub(super) fn removed(content: ContentRef<'_>) -> Option<Link> {
    if content.kind != CHECKPOINT || content.code != REMOVED {
        return None;
    }
    let body: serde_json::Value = serde_json::from_str(content.body).ok()?;
    Some(Link {
        seq: body.get("removed_through")?.as_u64()?,
        hash: body.get("hash")?.as_str()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_says_what_was_removed() {
        let last = Link {
            seq: 12,
            ..Link::GENESIS
        };
        let content = checkpoint(last, 5, "ada");
        assert_eq!(removed(content.borrow()), Some(last));
        let zeros = "0".repeat(64);
        let body = format!(r#"{{"hash":"{zeros}","removed_through":12}}"#);
        assert_eq!(content.body, body);
        let other = ContentRef {
            kind: "decision",
            ..content.borrow()
        };
        assert_eq!(removed(other), None);
    }
}
