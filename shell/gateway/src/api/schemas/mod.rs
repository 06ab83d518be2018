//! The JSON Schemas of the API's documents.

mod builders;
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
