//! The store, the lock file, the current user and the current time.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use jiff::Timestamp;
use toolwarden_store::{Approval, Server, ServerKey, Store, StoredDefinition};
use toolwarden_watch::{LOCAL_SERVER, LockFile, LockLines, Observation, Pins};

use super::read_tools::LocatedTool;
use super::sources;
use crate::args::{ApprovalArgs, PinnedArgs, StoreArgs};
use crate::error::CliError;
use crate::input::SourceLocation;

pub(in crate::commands) fn now() -> Timestamp {
    Timestamp::now()
}

/// The file of the store: the one given, that of the settings, that of the environment, or the user's.
pub(in crate::commands) fn store_path(args: &StoreArgs) -> Result<PathBuf, CliError> {
    if let Some(path) = &args.store {
        return Ok(path.clone());
    }
    if let Some(config) = &args.config
        && let Some(store) = sources::settings_store(config)?
    {
        return Ok(store);
    }
    if let Some(path) = environment_store() {
        return Ok(path);
    }
    let strategy = etcetera::choose_base_strategy().map_err(|_| CliError::NoHome)?;
    Ok(strategy.data_dir().join("toolwarden").join("toolwarden.db"))
}

/// The store that the environment names.
fn environment_store() -> Option<PathBuf> {
    let path = std::env::var_os("TOOLWARDEN_STORE").filter(|it| !it.is_empty());
    path.map(PathBuf::from)
}

/// The store, made where there is none.
pub(super) fn open_store(args: &StoreArgs) -> Result<Store, CliError> {
    Ok(Store::open(&store_path(args)?)?)
}

/// The store of a command that only reads; `None` if the user has no store yet. A store that was named
/// must exist: a misspelled path must not look like an empty store.
pub(in crate::commands) fn open_existing_store(
    args: &StoreArgs,
) -> Result<Option<Store>, CliError> {
    let path = store_path(args)?;
    let is_named = args.store.is_some() || (args.config.is_none() && environment_store().is_some());
    match Store::open_existing(&path)? {
        // A gateway that never ran has no store yet, so settings may name one that does not exist.
        None if is_named => Err(CliError::NoStore { path }),
        found => Ok(found),
    }
}

/// The store at a path, which must exist.
pub(in crate::commands) fn require_store(path: &Path) -> Result<Store, CliError> {
    Store::open_existing(path)?.ok_or_else(|| CliError::NoStore {
        path: path.to_owned(),
    })
}

pub(super) fn read_lock(path: &Path) -> Result<LockFile, CliError> {
    LockFile::read(path).map_err(|source| CliError::Lock {
        path: path.to_owned(),
        source,
    })
}

/// Where servers and tools stand in a lock file; nowhere if it cannot be read.
pub(super) fn lock_lines(path: &Path) -> LockLines {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    LockLines::of(text.strip_prefix('\u{feff}').unwrap_or(&text))
}

pub(super) fn approval(args: &ApprovalArgs) -> Approval {
    Approval {
        by: args.by.clone().unwrap_or_else(user_name),
        at: now(),
        why: args.why.clone(),
    }
}

/// The user of this process.
pub(in crate::commands) fn user_name() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"];
    let user = named.iter().find_map(|name| std::env::var(name).ok());
    user.unwrap_or_else(|| "unknown".to_owned())
}

/// The servers a command may mean.
pub(super) fn matching_servers(
    store: &Store,
    name: Option<&String>,
    scope: Option<&String>,
) -> Result<Vec<Server>, CliError> {
    let mut servers = servers_called(store, name.map_or(&[], std::slice::from_ref))?;
    let scoped = |server: &Server| scope.is_none_or(|scope| server.key.scope == *scope);
    if let Some(scope) = scope.filter(|_| !servers.iter().any(scoped)) {
        let known = servers.iter().map(|server| server.key.scope.as_str());
        return Err(CliError::NoSuchScope {
            scope: scope.clone(),
            suggestion: toolwarden_model::did_you_mean(scope, known),
        });
    }
    servers.retain(scoped);
    Ok(servers)
}

/// The servers of these names, each of which must exist; all servers if there are no names.
pub(super) fn servers_called(store: &Store, names: &[String]) -> Result<Vec<Server>, CliError> {
    let mut servers = store.servers()?;
    let is_known = |name: &&String| servers.iter().any(|server| server.key.name == **name);
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        let known = servers.iter().map(|server| server.key.name.as_str());
        return Err(CliError::NoSuchServer {
            name: name.clone(),
            suggestion: toolwarden_model::did_you_mean(name, known),
        });
    }
    servers.retain(|server| names.is_empty() || names.contains(&server.key.name));
    Ok(servers)
}

/// Refuses names of servers where there is no store.
pub(super) fn refuse_names(servers: &[String]) -> Result<(), CliError> {
    match servers.first() {
        None => Ok(()),
        Some(server) => Err(CliError::NothingPinned {
            server: server.clone(),
        }),
    }
}

/// What the store has of the tools of a server: pinned, last seen, or pinned under a version.
pub(super) fn stored_tools(args: &PinnedArgs, wanted: &str) -> Result<Vec<LocatedTool>, CliError> {
    let key = ServerKey {
        name: args
            .server
            .clone()
            .unwrap_or_else(|| LOCAL_SERVER.to_owned()),
        scope: args.scope.clone(),
    };
    let nothing = || CliError::NothingPinned {
        server: key.name.clone(),
    };
    let store = open_existing_store(&args.kept)?.ok_or_else(nothing)?;
    let server = store.server(&key)?.ok_or_else(nothing)?;
    let pins = Pins::from_store(&store, &key)?;
    let mut kept: Vec<(String, StoredDefinition)> = Vec::new();
    match wanted {
        "" | "pinned" | "baseline" => {
            let pinned = pins.tools.iter();
            kept.extend(pinned.filter_map(|(name, pin)| Some((name.clone(), pin.definition?))));
        }
        "seen" => {
            let sightings = store.sightings(server.id)?;
            let waiting = |name: &String| sightings.iter().find(|it| it.tool == *name);
            let pinned = pins
                .tools
                .iter()
                .filter(|(name, _)| waiting(name).is_none());
            kept.extend(pinned.filter_map(|(name, pin)| Some((name.clone(), pin.definition?))));
            let waiting = sightings.iter();
            kept.extend(waiting.filter_map(|it| Some((it.tool.clone(), it.definition?))));
        }
        version => {
            for tool in store.tools(server.id)? {
                let history = store.history(server.id, &tool)?;
                let labelled = history.iter().rfind(|it| it.version == version);
                kept.extend(labelled.and_then(|it| Some((tool, it.definition?))));
            }
            if kept.is_empty() {
                return Err(CliError::NoSuchVersion {
                    version: version.to_owned(),
                    server: key.name,
                });
            }
        }
    }
    kept.sort_by(|a, b| a.0.cmp(&b.0));
    let file = format!("@{wanted}");
    let read = kept.into_iter().map(|(name, kept)| {
        let text = store.definition(kept.fingerprint)?;
        let tool = Observation::parse(&name, kept.format, &text);
        let tool = tool.map_err(|source| CliError::StoredDefinition { tool: name, source })?;
        let place = SourceLocation::from_text(&file, text);
        Ok(LocatedTool {
            location: place,
            observation: tool,
        })
    });
    read.collect()
}
