use std::collections::BTreeSet;

use serde_json::Value;
use toolwarden_drift::shape::{Shape, ValueKey};
use toolwarden_store::{Approval, ServerKey};
use toolwarden_warden::{LockFile, LockedServer, LockedTool};

use super::live::ask;
use super::look::{Look, look};
use super::sources::{Source, sources};
use super::{calls, keep};
use crate::args::LockArgs;
use crate::commands::talk::say_error;
use crate::error::CliError;
use crate::output::{Verdict, print};
use crate::style::visible;

pub(super) fn run(args: &LockArgs) -> Result<Verdict, CliError> {
    let mut unanswered = 0;
    let mut seen: Vec<(Source, Look)> = Vec::new();
    if !args.from_store {
        let sources = sources(&args.source, &args.pinned)?;
        let calls = calls::to_make(args.source.calls.as_deref())?;
        let answers = ask(&sources, &calls)?;
        for (source, answer) in sources.into_iter().zip(answers) {
            match answer.transpose() {
                Ok(answer) => {
                    // A lock file has no hashes of values, so their key does not matter.
                    let key = ValueKey::new([0; 16]);
                    let look = look(&source, answer, &args.source, None, &key)?;
                    look.refuse_doubled(&source)?;
                    seen.push((source, look));
                }
                Err(error) => {
                    unanswered += 1;
                    say_error(&CliError::live(&source, error));
                }
            }
        }
    }
    let failed = |source| CliError::Write {
        place: args.output.clone(),
        source,
    };
    let exclusive = LockFile::exclusive(&args.output).map_err(failed)?;
    let exists = args.output.exists();
    let before = if exists {
        keep::lock(&args.output)?
    } else {
        LockFile::default()
    };
    let mut lock = before.clone();
    if args.from_store {
        let kept = of_store(args)?;
        if args.pinned.server.is_none() {
            lock.servers.clear();
        }
        lock.servers.extend(kept.servers);
    }
    for (source, look) in &seen {
        add(&mut lock, source, look, args);
    }
    if lock != before || !exists {
        lock.write(&args.output).map_err(failed)?;
    }
    drop(exclusive);
    print(&summary(&before, &lock, args))?;
    Ok(Verdict::measured(unanswered == 0))
}

/// Puts what was seen of a server into the lock. What stays the same keeps its approval.
fn add(lock: &mut LockFile, source: &Source, seen: &Look, args: &LockArgs) {
    let said = args.approval.why.is_some() || args.approval.by.is_some();
    let approval = said.then(|| keep::approval(&args.approval));
    let server = lock.servers.entry(source.key.clone()).or_default();
    let whole = source.wanted(&args.source).is_empty() && args.source.schema.is_none();
    server.sealed |= whole && !args.open;
    if whole {
        let names: BTreeSet<&String> = seen.listing.observed.iter().map(|it| &it.name).collect();
        server.tools.retain(|name, _| names.contains(name));
    }
    for tool in &seen.listing.observed {
        let known = server.tools.get(&tool.name);
        let results = seen.listing.results.get(&tool.name);
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

fn of_store(args: &LockArgs) -> Result<LockFile, CliError> {
    let nothing = || CliError::NothingPinned {
        server: args.pinned.server.clone().unwrap_or_default(),
    };
    let store = keep::existing_store(args.pinned.kept.store.as_ref())?.ok_or_else(nothing)?;
    let mut lock = LockFile::default();
    for server in keep::servers(&store, args.pinned.server.as_ref(), None)? {
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
            let shape = baseline.shape.as_deref().map(published).transpose()?;
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
fn published(text: &str) -> Result<Value, CliError> {
    let json = serde_json::from_str(text).unwrap_or_default();
    let shape = Shape::from_json(&json).map_err(|source| CliError::Shape { source })?;
    Ok(shape.without_values().to_json())
}

fn summary(before: &LockFile, after: &LockFile, args: &LockArgs) -> String {
    let tools = |lock: &LockFile| -> Vec<(ServerKey, String)> {
        let servers = lock.servers.iter();
        let named = servers.flat_map(|(key, server)| {
            server
                .tools
                .keys()
                .map(move |name| (key.clone(), name.clone()))
        });
        named.collect()
    };
    let (old, new) = (tools(before), tools(after));
    let text = |lock: &LockFile, at: &(ServerKey, String)| {
        let tool = lock.servers.get(&at.0).and_then(|it| it.tools.get(&at.1));
        tool.map(|tool| (tool.kept.fingerprint, tool.shape.clone()))
    };
    let mut out = String::new();
    let mut line = |word: &str, (key, name): &(ServerKey, String)| {
        out.push_str(&format!(
            "{word} {} of `{}`\n",
            visible(name),
            visible(&key.name)
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
