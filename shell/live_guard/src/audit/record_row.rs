//! Records of the chain as rows of the store, and back.

use toolwarden_guard::audit::{ChainLink, RecordContentRef};
use toolwarden_store::{AuditHead, RecordAppender, RecordRow, StoreError};

/// Links a content to the head and appends it.
pub(super) fn append_record(
    appender: &mut RecordAppender<'_>,
    content: RecordContentRef<'_>,
) -> Result<ChainLink, StoreError> {
    let link = head_link(appender.head()).next(content);
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

/// The content of a row.
pub(super) const fn row_content<'r>(row: &RecordRow<'r>) -> RecordContentRef<'r> {
    RecordContentRef {
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
pub(super) const fn head_link(head: AuditHead) -> ChainLink {
    ChainLink {
        seq: head.seq,
        hash: head.hash,
    }
}

/// The last record that was removed.
pub(super) const fn removed_link(head: AuditHead) -> ChainLink {
    ChainLink {
        seq: head.removed_through,
        hash: head.removed_hash,
    }
}
