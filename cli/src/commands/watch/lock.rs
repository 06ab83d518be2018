use std::collections::BTreeSet;

use serde_json::Value;
use toolwarden_drift::shape::{Shape, ValueKey};
use toolwarden_store::{Approval, ServerKey};
use toolwarden_watch::{LockFile, LockedServer, LockedTool, ServerListing};

use super::live_servers::query_servers;
use super::observe::observe;
use super::sources::{WatchSource, tool_sources};
use super::{recorded_calls, store_path};
use crate::args::LockArgs;
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::print_error;
use crate::error::CliError;
use crate::output::print_text;
use crate::style::escape_controls;

pub(super) fn run(args: &LockArgs) -> Result<CommandOutcome, CliError> {
    let mut unanswered = 0;
    let mut seen: Vec<(WatchSource, ServerListing)> = Vec::new();
    if !args.from_store {
        let sources = tool_sources(&args.source, &args.pinned)?;
        let calls = recorded_calls::live_calls(args.source.calls.as_deref())?;
        let answers = query_servers(&sources, &calls)?;
        for (source, answer) in sources.into_iter().zip(answers) {
            match answer.transpose() {
                Ok(answer) => {
                    // A lock file has no hashes of values, so their key does not matter.
                    let key = ValueKey::new([0; 16]);
                    let look = observe(&source, answer, &args.source, None, &key)?;
                    look.refuse_duplicates(&source)?;
                    // Where its tools stand is not written, and takes room in a long list.
                    seen.push((source, look.listing));
                }
                Err(error) => {
                    unanswered += 1;
                    print_error(&source.live_error(error));
                }
            }
        }
    }
    let failed = |source| CliError::Write {
        place: args.output.clone(),
        source,
    };
    let exclusive = LockFile::lock_exclusive(&args.output).map_err(failed)?;
    let exists = args.output.exists();
    let before = if exists {
        store_path::read_lock(&args.output)?
    } else {
        LockFile::default()
    };
    let mut lock = before.clone();
    if args.from_store {
        let kept = lock_from_store(args)?;
        if args.pinned.server.is_none() {
            lock.servers.clear();
        }
        lock.servers.extend(kept.servers);
    }
    for (source, listing) in &seen {
        add_server(&mut lock, source, listing, args);
    }
    if lock != before || !exists {
        lock.write(&args.output).map_err(failed)?;
    }
    drop(exclusive);
    print_text(&summary(&before, &lock, args))?;
    Ok(CommandOutcome::from_measured(unanswered == 0))
}

/// Puts what was seen of a server into the lock. What stays the same keeps its approval.
fn add_server(lock: &mut LockFile, source: &WatchSource, seen: &ServerListing, args: &LockArgs) {
    let said = args.approval.why.is_some() || args.approval.by.is_some();
    let approval = said.then(|| store_path::approval(&args.approval));
    let server = lock.servers.entry(source.key.clone()).or_default();
    let whole = source.requested_tools(&args.source).is_empty() && args.source.schema.is_none();
    server.sealed |= whole && !args.open;
    if whole {
        let names: BTreeSet<&String> = seen.observed.iter().map(|it| &it.name).collect();
        server.tools.retain(|name, _| names.contains(name));
    }
    for tool in &seen.observed {
        let known = server.tools.get(&tool.name);
        let results = seen.results.get(&tool.name);
        let shape = results.map(|results| results.shape().without_values().to_json());
        let shape = shape.or_else(|| known.and_then(|known| known.shape.clone()));
        let kept = tool.kept();
        let same = known.filter(|known| known.kept == kept && known.shape == shape);
        if same.is_some_and(|known| known.version == args.source.version) {
            continue;
        }
        let locked = LockedTool {
            kept,
            text: tool.shared_text(),
            version: args.source.version.clone(),
            approval: approval.clone(),
            shape,
        };
        server.tools.insert(tool.name.clone(), locked);
    }
}

fn lock_from_store(args: &LockArgs) -> Result<LockFile, CliError> {
    let nothing = || CliError::NothingPinned {
        server: args.pinned.server.clone().unwrap_or_default(),
    };
    let store = store_path::open_existing_store(&args.pinned.kept)?.ok_or_else(nothing)?;
    let mut lock = LockFile::default();
    for server in store_path::matching_servers(&store, args.pinned.server.as_ref(), None)? {
        let mut locked = LockedServer {
            sealed: server.sealed && !args.open,
            ..LockedServer::default()
        };
        for baseline in store.baselines(server.id)? {
            let Some(kept) = baseline.definition else {
                return Err(CliError::HashOnly {
                    tool: baseline.tool,
                });
            };
            let shape = baseline
                .shape
                .as_deref()
                .map(without_value_hashes)
                .transpose()?;
            let Approval { by, at, why } = baseline.approval;
            let tool = LockedTool {
                kept,
                text: store.definition(kept.fingerprint)?.into(),
                version: baseline.version,
                approval: Some(Approval { by, at, why }),
                shape,
            };
            locked.tools.insert(baseline.tool, tool);
        }
        lock.servers.insert(server.key, locked);
    }
    Ok(lock)
}

/// A kept shape without the hashes of values.
fn without_value_hashes(text: &str) -> Result<Value, CliError> {
    let json = serde_json::from_str(text).unwrap_or_default();
    let shape = Shape::from_json(&json).map_err(|source| CliError::Shape { source })?;
    Ok(shape.without_values().to_json())
}

fn summary(before: &LockFile, after: &LockFile, args: &LockArgs) -> String {
    let (old, new) = (names(before), names(after));
    let text = |lock: &LockFile, at: &(&ServerKey, &str)| {
        let tool = lock.servers.get(at.0).and_then(|it| it.tools.get(at.1));
        tool.map(|tool| (tool.kept.fingerprint, tool.shape.clone()))
    };
    let mut out = String::new();
    let mut line = |word: &str, (key, name): &(&ServerKey, &str)| {
        out.push_str(&format!(
            "{word} {} of `{}`\n",
            escape_controls(name),
            escape_controls(&key.name)
        ));
    };
    if !old.is_empty() {
        for at in &new {
            match text(before, at) {
                None => line("added  ", at),
                known if known != text(after, at) => line("changed", at),
                Some(_) => {}
            }
        }
        for at in old.iter().filter(|at| text(after, at).is_none()) {
            line("removed", at);
        }
    }
    let tools = if new.len() == 1 { "tool" } else { "tools" };
    out.push_str(&format!(
        "{} {tools} in {}\n",
        new.len(),
        args.output.display()
    ));
    out
}

/// Every tool of a lock file, by server and name.
fn names(lock: &LockFile) -> Vec<(&ServerKey, &str)> {
    let servers = lock.servers.iter();
    let named = servers.flat_map(|(key, server)| {
        let names = server.tools.keys();
        names.map(move |name| (key, name.as_str()))
    });
    named.collect()
}
