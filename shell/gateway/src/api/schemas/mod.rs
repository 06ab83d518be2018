//! What the documents of the API look like, as JSON Schema.

mod parts;
mod policy;
mod service;
mod watch;

use std::collections::BTreeMap;

use serde_json::Value;

/// Every schema by its name.
pub(super) fn schemas() -> BTreeMap<&'static str, Value> {
    let all = policy::schemas().into_iter();
    all.chain(watch::schemas())
        .chain(service::schemas())
        .collect()
}
