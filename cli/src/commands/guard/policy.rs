use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use toolwarden_guard::{ConditionInputs, Guard, RequestedGroups};
use toolwarden_live_guard::{
    AuditLog, Clock, LiveGuard, LoadedPolicy, ManualClock, UNKNOWN_PRINCIPAL,
};
use toolwarden_model::StateName;

use super::policy_location::PolicyLocation;
use crate::args::{CallArgs, ConditionArgs};
use crate::commands::progress;
use crate::commands::watch::store_path;
use crate::error::{CliError, GuardError};
use crate::style::{self, escape_controls};

/// Reads a policy.
pub(super) fn load(location: &PolicyLocation) -> Result<LoadedPolicy, CliError> {
    let loaded = match location {
        PolicyLocation::File(path) if path == Path::new("-") => {
            let mut text = Vec::new();
            let read = std::io::stdin().read_to_end(&mut text);
            read.map_err(|source| GuardError::Read {
                place: path.clone(),
                source,
            })?;
            LoadedPolicy::of_text(&text, Path::new("standard input"), Path::new("."))
        }
        PolicyLocation::File(path) => LoadedPolicy::read(path),
        PolicyLocation::Settings { text, path, .. } => {
            let folder = path.parent().unwrap_or(Path::new(""));
            LoadedPolicy::of_text(text.as_bytes(), path, folder)
        }
    };
    Ok(loaded.map_err(GuardError::from)?)
}

/// As [`load`], and says what is surprising in the policy.
pub(super) fn load_and_warn(location: &PolicyLocation) -> Result<LoadedPolicy, CliError> {
    let loaded = load(location)?;
    let (warning, place) = (style::WARNING, style::LOCATION);
    for told in &loaded.warnings {
        let position = location.position(&loaded, &told.pointer);
        progress::print_status(&format!(
            "{warning}Warning{warning:#}: {place}{}:{}:{}{place:#}: {}",
            location.path().display(),
            position.line,
            position.column,
            escape_controls(&told.message)
        ));
    }
    Ok(loaded)
}

/// A guard at the time and load that are given, or at those of the machine.
pub(super) fn live_guard(
    policy: LoadedPolicy,
    log: AuditLog,
    args: &ConditionArgs,
) -> Result<LiveGuard, CliError> {
    let clock = match args.now {
        Some(now) => Clock::Manual(ManualClock::at(now)),
        None => Clock::default(),
    };
    let guard = LiveGuard::open(policy, log, clock).map_err(GuardError::from)?;
    if let Some(load) = args.load {
        guard.report_load(load);
    }
    Ok(guard)
}

/// Sets the state of the session to the state given on the command line: the user is not an MCP client.
pub(super) fn assume_state(guard: &LiveGuard, args: &CallArgs) -> Result<(), CliError> {
    let Some(state) = args.state.as_deref().filter(|it| !it.is_empty()) else {
        return Ok(());
    };
    let principal = args.principal.as_deref().unwrap_or(UNKNOWN_PRINCIPAL);
    let groups = RequestedGroups::Default;
    let restored = guard.restore_session(principal, "", groups, &StateName::new(state));
    Ok(restored.map_err(GuardError::Session)?)
}

pub(super) fn condition_inputs(guard: &Guard, args: &ConditionArgs) -> ConditionInputs {
    ConditionInputs {
        now: args.now.unwrap_or_else(store_path::now),
        zone: guard.zone().clone(),
        load: args.load,
        attributes: attributes(args),
    }
}

pub(super) fn attributes(args: &ConditionArgs) -> BTreeMap<String, Value> {
    args.attributes.iter().cloned().collect()
}

/// The names of tools as JSON.
pub(super) fn names<'n>(tools: impl IntoIterator<Item = &'n Arc<str>>) -> Vec<Value> {
    tools.into_iter().map(|name| Value::from(&**name)).collect()
}
