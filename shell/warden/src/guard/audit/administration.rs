//! Records of what a person changed directly in the store, without a gateway.

use std::borrow::Cow;

use serde_json::Value;
use toolwarden_guard::audit::Content;
use toolwarden_model::json::{Object, to_canonical_string};
use toolwarden_store::{Approval, Store, StoreError};

use super::row;
use crate::guard::entry::EntryIds;

/// The kind of these records, which is also that of what administrators do by the API.
pub(in crate::guard) const ADMINISTRATION: &str = "administration";

/// Appends a record for each thing that was done, within a change of the store: who approves what is
/// trusted is on record if and only if it is trusted.
///
/// `code` says what was done, and names the member of the body that says to what.
pub(crate) fn record_approval(
    store: &Store,
    code: &'static str,
    done: impl IntoIterator<Item = Value>,
    approval: &Approval,
) -> Result<(), StoreError> {
    let ids = EntryIds::new();
    let at_ms = approval.at.as_millisecond();
    store.append_within_write(|appender| {
        for what in done {
            let mut body = Object::new();
            body.insert(code.to_owned(), what);
            body.insert("id".to_owned(), ids.next(at_ms).to_string().into());
            if let Some(why) = &approval.why {
                body.insert("reason".to_owned(), why.as_str().into());
            }
            let content = Content {
                at_ms,
                kind: Cow::Borrowed(ADMINISTRATION),
                principal: Some(approval.by.as_str().into()),
                tool: None,
                session: None,
                code: Cow::Borrowed(code),
                allowed: None,
                body: to_canonical_string(&Value::Object(body)),
            };
            row::append(appender, content.borrow())?;
        }
        Ok(())
    })
}
