//! An agent loop behind the guard: the loop makes only calls that the policy allows, and the log has every
//! decision and outcome.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use toolwarden_live_guard::{AuditLog, Call, Clock, LiveGuard, LoadedPolicy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let policy = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/policy.yaml"
    ));
    let policy = LoadedPolicy::read(policy)?;
    let log = AuditLog::open_store(&folder.path().join("audit.db"), &policy.guard)?;
    let guard = LiveGuard::open(policy, log, Clock::default())?;

    // The tool calls that the model requests, in order.
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
            // Call the tool here, and report the outcome to the guard: success advances the session's
            // state.
            Ok(open) => open.report_success(&json!({"found": 3}))?,
            // Return the reason to the model as the result of its call.
            Err(denial) => assert_eq!(denial.code.as_str(), "filtered_by_state"),
        }
    }
    Ok(())
}
