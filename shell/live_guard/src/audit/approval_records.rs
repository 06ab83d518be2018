//! Records of changes that a person made directly in the store, without a gateway.

use std::borrow::Cow;

use serde_json::Value;
use toolwarden_guard::audit::RecordContent;
use toolwarden_model::json::{Object, to_canonical_string};
use toolwarden_store::{Approval, Store, StoreError};

use super::record_row;
use crate::log_entry::{ADMINISTRATION, EntryIdGenerator};

/// Appends a record for each approval in the same transaction as the approval itself: an approval is
/// recorded if and only if it takes effect.
///
/// `code` is the action, and the name of the member in the body that holds its object.
///
/// # Errors
/// The store cannot be written.
pub fn record_approval(
    store: &Store,
    code: &'static str,
    done: impl IntoIterator<Item = Value>,
    approval: &Approval,
) -> Result<(), StoreError> {
    let ids = EntryIdGenerator::new();
    let at_ms = approval.at.as_millisecond();
    store.append_within_write(|appender| {
        for what in done {
            let mut body = Object::new();
            body.insert(code.to_owned(), what);
            body.insert("id".to_owned(), ids.next(at_ms).to_string().into());
            if let Some(why) = &approval.why {
                body.insert("reason".to_owned(), why.as_str().into());
            }
            let content = RecordContent {
                at_ms,
                kind: Cow::Borrowed(ADMINISTRATION),
                principal: Some(approval.by.as_str().into()),
                tool: None,
                session: None,
                code: Cow::Borrowed(code),
                allowed: None,
                body: to_canonical_string(&Value::Object(body)),
            };
            record_row::append_record(appender, content.borrow())?;
        }
        Ok(())
    })
}
