use std::path::Path;

use serde_json::json;
use toolwarden_drift::shape::ValueKey;
use toolwarden_drift::{RecordedCall, ToolDrift, ToolwatchChangeType};
use toolwarden_model::Verdict;
use toolwarden_store::{ServerKey, Store};
use toolwarden_watch::{
    CheckOutcome, CheckSource, LockFile, Pins, RecordOptions, ResultSampling, ServerListing,
    run_check, toolwatch_mutation,
};

use super::comparison::{CHECK_FAILS_ON, effective_fail_on};
use super::live_servers::query_servers;
use super::observe::{ObservedServer, observe};
use super::report::{ServerCheck, UncheckedServer, print_report};
use super::report_locations::ReportLocations;
use super::sources::{WatchSource, tool_sources};
use super::{json_document, new_tool_warnings, recorded_calls, store_path};
use crate::args::{ApprovalArgs, CheckArgs, FailOn};
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::{print_error, print_status};
use crate::error::CliError;
use crate::style::{self, escape_controls};

pub(super) fn run(args: &CheckArgs) -> Result<CommandOutcome, CliError> {
    let default = if args.compat {
        &[FailOn::Any][..]
    } else {
        &CHECK_FAILS_ON
    };
    let fail_on = effective_fail_on(&args.fail_on, default, &args.allow)?;
    let mut sources = tool_sources(&args.source, &args.pinned)?;
    let stdin = |path: &Option<std::path::PathBuf>| path.as_deref() == Some(Path::new("-"));
    let source = &args.source;
    let elsewhere = source
        .files
        .iter()
        .chain(&source.responses)
        .chain(&source.schema);
    if stdin(&args.compare.observed)
        && elsewhere
            .chain(&source.calls)
            .any(|it| it.as_os_str() == "-")
    {
        return Err(CliError::DuplicateStdin);
    }
    let results = !source.responses.is_empty()
        || source.calls.is_some()
        || sources.iter().any(|it| !it.calls.is_empty());
    if args.fixtures && !results {
        return Err(CliError::NoFixtures);
    }
    let path = store_path::store_path(&args.pinned.kept);
    if args.frozen && args.lock.is_none() && !path?.exists() {
        return Err(CliError::NothingPinned {
            server: args.pinned.server.clone().unwrap_or_default(),
        });
    }
    // Before the lock file is kept in memory: finding its lines reads it, too.
    let places = ReportLocations::from_args(args);
    let lock = args
        .lock
        .as_deref()
        .map(store_path::read_lock)
        .transpose()?;
    if lock.is_some() {
        // A lock file states everything, also of tools that come from files.
        for source in &mut sources {
            source.is_complete = args.source.schema.is_none();
        }
    }
    let recorded = match &args.compare.observed {
        Some(file) => recorded_calls::read(file)?,
        None => Vec::new(),
    };
    let to_make = recorded_calls::live_calls(args.source.calls.as_deref())?;
    let answers = query_servers(&sources, &to_make)?;
    let store = match &lock {
        Some(_) => None,
        None => Some(store_path::open_store(&args.pinned.kept)?),
    };
    let keeper = match (&lock, &store) {
        (Some(lock), _) => PinLocation::Lock(lock, args.lock.as_deref().unwrap_or(Path::new(""))),
        (None, Some(store)) => PinLocation::Store(store),
        (None, None) => return Err(CliError::NoSource),
    };
    let known = match &store {
        Some(store) => pinned_servers(store)?,
        None => Vec::new(),
    };
    let mut checked = Vec::new();
    let mut unanswered = Vec::new();
    for (source, answer) in sources.iter().zip(answers) {
        match answer.transpose() {
            Ok(answer) => match require_known(source, args, &known)
                .and_then(|()| keeper.check(source, answer, args, &recorded, &places))
            {
                Ok(found) => checked.push(found),
                // The other servers are still checked and reported.
                Err(error) if sources.len() > 1 => {
                    print_error(&error);
                    unanswered.push((source, error));
                }
                Err(error) => return Err(error),
            },
            Err(error) => {
                let error = source.live_error(error);
                print_error(&error);
                unanswered.push((source, error));
            }
        }
    }
    let unchecked = match (&lock, &args.lock) {
        (Some(lock), Some(path)) => unchecked_servers(lock, path, &sources),
        _ => Vec::new(),
    };
    let failed = print_report(args, &checked, (&unanswered, &unchecked), &fail_on, &places)?;
    let measured = args.compat || checked.iter().all(ServerCheck::is_measured);
    Ok(Verdict::new(failed, unanswered.is_empty() && measured).into())
}

/// The servers with pins.
fn pinned_servers(store: &Store) -> Result<Vec<ServerKey>, CliError> {
    let mut known = Vec::new();
    for server in store.servers()? {
        if !store.baselines(server.id)?.is_empty() {
            known.push(server.key);
        }
    }
    Ok(known)
}

/// Refuses to pin a list under a name that the store does not know, next to those that it knows: the
/// name may be mistyped, and the list would be compared with nothing. A configuration names its servers
/// on purpose, and one definition is pinned at its first check, as toolwatch does.
fn require_known(
    source: &WatchSource,
    args: &CheckArgs,
    known: &[ServerKey],
) -> Result<(), CliError> {
    let allowed = args.new || args.frozen || source.is_configured || !source.is_list();
    if allowed || known.is_empty() || known.contains(&source.key) {
        return Ok(());
    }
    let ServerKey { name, scope } = source.key.clone();
    let mut scopes = known.iter().filter(|key| key.name == name);
    let suggestion = match scopes.next() {
        Some(other) => format!("; it has pins in scope {}", other.scope),
        None => {
            let names = known.iter().map(|key| key.name.as_str());
            toolwarden_model::did_you_mean(&name, names)
        }
    };
    Err(CliError::UnknownServer {
        name,
        scope,
        suggestion,
    })
}

/// The servers of a lock file that this check does not look at.
fn unchecked_servers(
    lock: &LockFile,
    path: &Path,
    sources: &[WatchSource],
) -> Vec<UncheckedServer> {
    let looked_at = |key: &ServerKey| sources.iter().any(|source| source.key == *key);
    let others = lock.servers.iter().filter(|(key, _)| !looked_at(key));
    let others = others.map(|(key, server)| UncheckedServer {
        key: key.clone(),
        tools: server.tools.len(),
        lock: path.display().to_string(),
    });
    others.collect()
}

#[derive(Clone, Copy)]
enum PinLocation<'k> {
    Store(&'k Store),
    Lock(&'k LockFile, &'k Path),
}

impl<'k> PinLocation<'k> {
    fn check<'s>(
        self,
        source: &'s WatchSource,
        answer: Option<super::live_servers::LiveAnswer>,
        args: &CheckArgs,
        recorded: &[RecordedCall],
        places: &ReportLocations,
    ) -> Result<ServerCheck<'s>, CliError> {
        let mut pins = self.pins(source)?;
        let key = ValueKey::new(match self {
            Self::Store(store) => store.value_key()?,
            // A lock file has no hashes of values.
            Self::Lock(..) => [0; 16],
        });
        let mut look = observe(source, answer, &args.source, Some(&pins), &key)?;
        if args.fixtures {
            look.listing.sampling = ResultSampling::Fixtures;
        }
        look.listing.is_complete &= !(pins.open && source.is_unnamed() && !self.is_lock());
        let wanted = source.requested_tools(&args.source);
        if !wanted.is_empty() {
            pins.retain(wanted);
        }
        let approval = store_path::approval(&ApprovalArgs::default());
        let recording = RecordOptions {
            approval: &approval,
            version: &args.source.version,
            seal: source.is_complete && wanted.is_empty(),
            alert_on: &source.alert_on,
            alert_on_equivalent: args.compat || args.fail_on.contains(&FailOn::Any),
            wanted,
        };
        let mut check = ObservedServerCheck {
            location: self,
            source,
            args,
            wanted,
            pins: Some(pins),
            observed: look,
            toolwatch_output: Vec::new(),
            mutated: false,
            unpinned_results: Vec::new(),
        };
        let done = run_check(&mut check, &args.compare.options(), recorded, &recording)?;
        let mut observed = check.observed;
        let unknown = match self.is_lock() {
            true => &done.outcome.new_tools,
            false => &done.recorded.registered,
        };
        new_tool_warnings::warn_of_findings(source, &observed.listing, unknown);
        places.assign(source, &done.outcome.drift, &mut observed);
        self.warn_of_absent(source, &done.pins, &observed);
        Ok(ServerCheck {
            source,
            observed,
            judgement: done.outcome,
            recorded: done.recorded,
            toolwatch_output: check.toolwatch_output,
            mutated: check.mutated,
            unpinned_results: check.unpinned_results,
            is_recorded: matches!(self, Self::Store(_)),
        })
    }

    const fn is_lock(self) -> bool {
        matches!(self, Self::Lock(..))
    }

    /// The pins of a server. A list that has pins is compared as a whole, unless it was left open; a
    /// single definition is compared with its own pin.
    fn pins(self, source: &WatchSource) -> Result<Pins<'k>, CliError> {
        let store = match self {
            Self::Store(store) => store,
            Self::Lock(lock, _) => return Ok(Pins::from_lock(lock, &source.key)),
        };
        let mut pins = Pins::from_store(store, &source.key)?;
        pins.sealed = if source.is_list() {
            pins.sealed || (!pins.open && !pins.tools.is_empty())
        } else {
            false
        };
        Ok(pins)
    }

    /// A tool that was never pinned is an error if everything has to be pinned. So are two tools of one
    /// name, which could not be distinguished later.
    fn require_pinned(
        self,
        source: &WatchSource,
        args: &CheckArgs,
        look: &ObservedServer,
        pins: &Pins<'_>,
        outcome: &CheckOutcome,
    ) -> Result<(), CliError> {
        let lock = match self {
            Self::Store(_) => None,
            Self::Lock(_, path) => Some(path.to_owned()),
        };
        let Some(tool) = outcome.new_tools.first() else {
            return match outcome.first_results.first() {
                Some(tool) if args.frozen => Err(CliError::NoShape { tool: tool.clone() }),
                Some(tool) if lock.is_some() => {
                    print_status(&format!(
                        "the lock file has no shape of the results of `{}`",
                        escape_controls(tool)
                    ));
                    Ok(())
                }
                _ => Ok(()),
            };
        };
        // The report lists them: the lock file leaves the server open.
        if lock.is_some() && pins.known && !args.frozen {
            return Ok(());
        }
        if let Self::Lock(lock, path) = self
            && !pins.known
            && !lock.servers.is_empty()
        {
            return Err(CliError::NotInLock {
                server: source.key.clone(),
                lock: path.to_owned(),
                known: lock.servers.keys().cloned().collect(),
            });
        }
        if args.frozen || lock.is_some() {
            return Err(CliError::NotPinned {
                server: source.key.name.clone(),
                tool: tool.clone(),
                more: outcome.new_tools.len() - 1,
                lock,
            });
        }
        look.refuse_duplicates(source)
    }

    /// An open server may lose tools in silence; say so where a whole list was read.
    fn warn_of_absent(self, source: &WatchSource, pins: &Pins<'_>, look: &ObservedServer) {
        let from_files = matches!(source.kind, super::sources::SourceKind::Files(_));
        if !from_files
            || look.listing.is_complete
            || pins.tools.len() <= look.listing.unchanged.len()
        {
            return;
        }
        let seen = |name: &String| {
            look.listing.unchanged.contains(name) || look.locations.contains_key(name)
        };
        let absent: Vec<String> = pins
            .tools
            .keys()
            .filter(|name| !seen(name))
            .map(|name| escape_controls(name))
            .collect();
        if !absent.is_empty() {
            let (dim, count) = (style::DIM, absent.len());
            let some = absent
                .iter()
                .take(5)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            let dots = if count > 5 { ", …" } else { "" };
            print_status(&format!(
                "{dim}note:{dim:#} {count} pinned tools of `{}` are not in these files: {some}{dots}; the server was left open (`watch baseline` without --open seals it)",
                source.key.name
            ));
        }
    }
}

/// A server that was observed, for the check of it.
struct ObservedServerCheck<'k, 'c> {
    location: PinLocation<'k>,
    source: &'c WatchSource,
    args: &'c CheckArgs,
    wanted: &'c [String],
    /// The pins that the server was observed with, until the check takes them.
    pins: Option<Pins<'k>>,
    observed: ObservedServer,
    toolwatch_output: Vec<String>,
    mutated: bool,
    unpinned_results: Vec<String>,
}

impl<'k> CheckSource<'k> for ObservedServerCheck<'k, '_> {
    type Error = CliError;

    fn load_pins(&mut self) -> Result<Pins<'k>, CliError> {
        if let Some(pins) = self.pins.take() {
            return Ok(pins);
        }
        let mut pins = self.location.pins(self.source)?;
        if !self.wanted.is_empty() {
            pins.retain(self.wanted);
        }
        Ok(pins)
    }

    fn listing(&mut self) -> &mut ServerListing {
        &mut self.observed.listing
    }

    fn review(&mut self, pins: &Pins<'k>, outcome: &mut CheckOutcome) -> Result<(), CliError> {
        let Self { location, args, .. } = *self;
        location.require_pinned(self.source, args, &self.observed, pins, outcome)?;
        // What toolwatch pinned at its first check is pinned at that check still.
        self.unpinned_results = if args.compat && !location.is_lock() {
            Vec::new()
        } else {
            unpinned_results(outcome, pins)
        };
        if args.compat {
            (self.toolwatch_output, self.mutated) =
                toolwatch_output(pins, &self.observed, outcome)?;
        }
        Ok(())
    }
}

/// Takes out the tools that returned results and have a pin without any: a check never pins what it
/// checks. Results of which toolwatch knew the hash were compared by it, and are pinned.
fn unpinned_results(outcome: &mut CheckOutcome, pins: &Pins<'_>) -> Vec<String> {
    let known = |tool: &String| {
        let pin = pins.tools.get(tool);
        pin.is_some_and(|pin| pin.old.response.is_some())
    };
    let learned = std::mem::take(&mut outcome.first_results).into_iter();
    let (known, unpinned) = learned.partition(known);
    outcome.first_results = known;
    unpinned
}

/// What the toolwatch program would say of each tool, and whether any mutated.
fn toolwatch_output(
    pins: &Pins<'_>,
    look: &ObservedServer,
    outcome: &CheckOutcome,
) -> Result<(Vec<String>, bool), CliError> {
    let now = store_path::now();
    let (mut said, mut mutated) = (Vec::new(), false);
    let mut say = |name: &str, found: Option<ToolwatchChangeType>| {
        mutated |= found.is_some();
        said.push(toolwatch_line(name, found, now));
    };
    // Added, removed and duplicate tools are not found by comparing hashes.
    let by_name: Vec<&str> = outcome
        .drift
        .tools
        .iter()
        .filter(|it| !matches!(it, ToolDrift::Changed(_)))
        .map(ToolDrift::tool)
        .collect();
    for name in &by_name {
        say(name, Some(ToolwatchChangeType::Schema));
    }
    for seen in &look.listing.observed {
        if by_name.contains(&seen.name.as_str()) {
            continue;
        }
        let results = look.listing.results.get(&seen.name);
        say(&seen.name, toolwatch_mutation(pins, seen, results)?);
    }
    let unchanged = look.listing.unchanged.iter();
    for name in unchanged.filter(|name| !by_name.contains(&name.as_str())) {
        let Some(seen) = pins.observation(name)? else {
            continue;
        };
        say(
            name,
            toolwatch_mutation(pins, &seen, look.listing.results.get(name))?,
        );
    }
    Ok((said, mutated))
}

/// What the toolwatch program prints.
fn toolwatch_line(tool: &str, found: Option<ToolwatchChangeType>, now: jiff::Timestamp) -> String {
    let Some(change_type) = found else {
        return format!(
            "No mutation detected for tool '{}'.\n",
            escape_controls(tool)
        );
    };
    let severity = if change_type == ToolwatchChangeType::Behavior {
        "high"
    } else {
        "medium"
    };
    let at = format!("{now:.6}");
    json_document::to_text(&json!({
        "tool_name": tool,
        "change_type": change_type.as_str(),
        "severity": severity,
        "detected_at": format!("{}+00:00", at.trim_end_matches('Z')),
    }))
}
