//! An agent loop behind the guard: nothing is called that the policy does not allow, and every
//! decision and outcome is in the log.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use toolwarden_warden::guard::{Call, Clock, LiveGuard, LoadedPolicy, Log};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let policy = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/toolwarden.yaml"
    ));
    let policy = LoadedPolicy::read(policy)?;
    let log = Log::kept(&folder.path().join("audit.db"), &policy.guard)?;
    let guard = LiveGuard::open(policy, log, Clock::default())?;

    // What the model asks for, one tool call after the other.
    let wanted = [
        ("search-invoices", json!({"query": "overdue"})),
        ("send-payment", json!({"invoice": "INV-7", "amount": 120})),
    ];
    for (tool, arguments) in wanted {
        let call = Call {
            tool,
            principal: "billing-agent",
            session: Some("s-1"),
            groups: Some(["billing"].into_iter().collect()),
            arguments: Arc::new(arguments),
            ..Call::default()
        };
        match guard.decide(&call) {
            // Call the tool here, and tell the guard how it went: success moves the session on.
            Ok(open) => open.succeeded(&json!({"found": 3}))?,
            // Give the reason back to the model as the result of its call.
            Err(denial) => assert_eq!(denial.code.as_str(), "filtered_by_state"),
        }
    }
    Ok(())
}
