use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use toolwarden_guard::{Circumstances, Guard, RequestedGroups};
use toolwarden_warden::guard::{Clock, LiveGuard, LoadedPolicy, Log, SetClock, UNKNOWN_PRINCIPAL};

use super::GuardError;
use crate::args::{CallArgs, CircumstancesArgs};
use crate::commands::talk;
use crate::commands::watch::keep;
use crate::error::CliError;
use crate::style::{self, visible};

/// Reads a policy and says what is surprising in it.
pub(super) fn load(path: &Path) -> Result<LoadedPolicy, CliError> {
    let loaded = if path == Path::new("-") {
        let mut text = Vec::new();
        let read = std::io::stdin().read_to_end(&mut text);
        read.map_err(|source| GuardError::Read {
            place: path.to_owned(),
            source,
        })?;
        LoadedPolicy::of_text(&text, Path::new("standard input"), Path::new("."))
    } else {
        LoadedPolicy::read(path)
    };
    Ok(loaded.map_err(GuardError::from)?)
}

/// As [`load`], and says what is surprising in the policy.
pub(super) fn load_and_warn(path: &Path) -> Result<LoadedPolicy, CliError> {
    let loaded = load(path)?;
    let (warning, place) = (style::WARNING, style::PLACE);
    for told in &loaded.warnings {
        let position = loaded.document.position(&told.pointer);
        talk::say(&format!(
            "{warning}Warning{warning:#}: {place}{}:{}:{}{place:#}: {}",
            path.display(),
            position.line,
            position.column,
            visible(&told.message)
        ));
    }
    Ok(loaded)
}

/// A guard at the time and load that are given, or at those of the machine.
pub(super) fn live(
    policy: LoadedPolicy,
    log: Log,
    args: &CircumstancesArgs,
) -> Result<LiveGuard, CliError> {
    let clock = match args.now {
        Some(now) => Clock::Set(SetClock::at(now)),
        None => Clock::default(),
    };
    let guard = LiveGuard::open(policy, log, clock).map_err(GuardError::from)?;
    if let Some(load) = args.load {
        guard.report_load(load);
    }
    Ok(guard)
}

/// Takes the state of a call that is spelled out for that of its session: whoever asks is no client.
pub(super) fn assume_state(guard: &LiveGuard, args: &CallArgs) -> Result<(), CliError> {
    let Some(state) = args.state.as_deref().filter(|it| !it.is_empty()) else {
        return Ok(());
    };
    let principal = args.principal.as_deref().unwrap_or(UNKNOWN_PRINCIPAL);
    let groups = RequestedGroups::Default;
    let restored = guard.restore_session(principal, "", groups, state);
    Ok(restored.map_err(GuardError::Session)?)
}

pub(super) fn circumstances(guard: &Guard, args: &CircumstancesArgs) -> Circumstances {
    Circumstances {
        now: args.now.unwrap_or_else(keep::now),
        zone: guard.zone().clone(),
        load: args.load,
        attributes: attributes(args),
    }
}

pub(super) fn attributes(args: &CircumstancesArgs) -> BTreeMap<String, Value> {
    args.attributes.iter().cloned().collect()
}

/// The names of tools as JSON.
pub(super) fn names<'n>(tools: impl IntoIterator<Item = &'n Arc<str>>) -> Vec<Value> {
    tools.into_iter().map(|name| Value::from(&**name)).collect()
}
