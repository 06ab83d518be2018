//! The promises of watch, on real stores and real definitions.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "clippy's leave for tests does not reach helpers outside test functions"
)]

mod approvals;
mod checks;
mod definition_coverage;
mod inline;
mod lock_files;
mod overtaken_checks;
mod watch_config;

use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolwarden_drift::{Options, ToolwatchChangeType};
use toolwarden_model::Format;
use toolwarden_store::{Approval, ServerKey, Store};
use toolwarden_watch::{
    CheckOutcome, Observation, RecordOptions, RecordOutcome, ServerListing, check, pin,
};

/// A store with one server.
struct StoreFixture {
    _folder: TempDir,
    store: Store,
    key: ServerKey,
}

impl StoreFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store.db")).unwrap();
        let key = ServerKey {
            name: "browser".to_owned(),
            scope: "default".to_owned(),
        };
        Self {
            _folder: folder,
            store,
            key,
        }
    }

    fn pin(&self, tools: &[Value]) {
        let listing = listing(tools, true);
        pin(&self.store, &self.key, &listing, true, "1", &approval()).unwrap();
    }

    fn check(&self, tools: &[Value]) -> (CheckOutcome, RecordOutcome) {
        self.check_listing(listing(tools, true))
    }

    fn check_listing(&self, mut listing: ServerListing) -> (CheckOutcome, RecordOutcome) {
        let approval = approval();
        let recording = RecordOptions {
            approval: &approval,
            version: "2",
            seal: true,
            alert_on: &ToolwatchChangeType::ALL,
            alert_on_equivalent: false,
            wanted: &[],
        };
        let options = Options::default();
        let (store, key) = (&self.store, &self.key);
        check(store, key, &mut listing, &options, &[], &recording).unwrap()
    }
}

fn approval() -> Approval {
    Approval {
        by: "ada".to_owned(),
        at: "2026-11-16T10:00:00Z".parse::<Timestamp>().unwrap(),
        why: None,
    }
}

fn observation(definition: &Value) -> Observation {
    let name = definition["name"].as_str().unwrap_or_default();
    Observation::parse(name, Format::Mcp, &definition.to_string()).unwrap()
}

fn listing(tools: &[Value], whole: bool) -> ServerListing {
    ServerListing {
        observed: tools.iter().map(observation).collect(),
        is_complete: whole,
        ..ServerListing::default()
    }
}

fn tool(name: &str, description: &str, arguments: &[&str]) -> Value {
    let properties = arguments
        .iter()
        .map(|it| ((*it).to_owned(), json!({"type": "string"})));
    json!({"name": name, "description": description, "inputSchema": {
        "type": "object", "properties": properties.collect::<serde_json::Map<_, _>>(),
        "required": arguments, "additionalProperties": false}})
}

/// The drift, by tool and class.
fn drift_summary(outcome: &CheckOutcome) -> Vec<(String, &'static str)> {
    let tools = outcome.drift.tools.iter();
    tools
        .map(|it| (it.tool().to_owned(), it.class().as_str()))
        .collect()
}
