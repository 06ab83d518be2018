//! Records of the chain as rows of the store, and back.

use toolwarden_guard::audit::{ContentRef, Link};
use toolwarden_store::{Appender, AuditHead, RecordRow, StoreError};

/// Ties a content to the head and appends it.
pub(super) fn append(
    appender: &mut Appender<'_>,
    content: ContentRef<'_>,
) -> Result<Link, StoreError> {
    let link = head(appender.head()).next(content);
    appender.append(&RecordRow {
        seq: link.seq,
        at_ms: content.at_ms,
        kind: content.kind,
        principal: content.principal,
        tool: content.tool,
        session: content.session,
        code: content.code,
        allowed: content.allowed,
        body: content.body,
        hash: link.hash,
    })?;
    Ok(link)
}

/// What a row says.
pub(super) const fn content<'r>(row: &RecordRow<'r>) -> ContentRef<'r> {
    ContentRef {
        at_ms: row.at_ms,
        kind: row.kind,
        principal: row.principal,
        tool: row.tool,
        session: row.session,
        code: row.code,
        allowed: row.allowed,
        body: row.body,
    }
}

/// The last record.
pub(super) const fn head(head: AuditHead) -> Link {
    Link {
        seq: head.seq,
        hash: head.hash,
    }
}

/// The last record that was removed.
pub(super) const fn removed(head: AuditHead) -> Link {
    Link {
        seq: head.removed_through,
        hash: head.removed_hash,
    }
}
