//! The command as a user meets it.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "clippy's leave for tests does not reach helpers outside test functions"
)]

mod audit;
mod call_contracts;
mod canon_false_green;
mod commands;
mod crash;
mod default_policy;
mod defaults;
mod demo_picture;
mod dialect_tables;
mod false_green;
mod first_checks;
mod gateway;
mod guard;
mod hostile_definitions;
mod live;
mod pinning;
mod probe;
mod report_locations;
mod results;
mod runner_commands;
mod sandbox;
mod saved_lists;
mod second_readings;
mod sessions;
mod toolwatch;
mod transcripts;
mod unknown_names;
mod usage_errors;
mod watch_edge_cases;
mod watch_settings;
