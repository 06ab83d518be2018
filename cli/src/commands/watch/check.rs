use std::path::Path;

use serde_json::json;
use toolwarden_drift::shape::ValueKey;
use toolwarden_drift::{ChangeType, RecordedCall, ToolDrift};
use toolwarden_store::{ServerKey, Store};
use toolwarden_warden::{
    Judged, LockFile, Pins, Recorded, Recording, Sampling, judge, mutation, record,
};

use super::comparison::{CHECK_FAILS_ON, failing};
use super::live::ask;
use super::look::{Look, look};
use super::places::Places;
use super::sources::{Source, sources};
use super::told::{Checked, Unchecked, report};
use super::{calls, document, first_sight, keep};
use crate::args::{ApprovalArgs, CheckArgs, FailOn};
use crate::commands::talk::{say, say_error};
use crate::error::CliError;
use crate::output::Verdict;
use crate::style::{self, visible};

pub(super) fn run(args: &CheckArgs) -> Result<Verdict, CliError> {
    let mut sources = sources(&args.source, &args.pinned)?;
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
        return Err(CliError::TwiceStdin);
    }
    let results = !source.responses.is_empty()
        || source.calls.is_some()
        || sources.iter().any(|it| !it.calls.is_empty());
    if args.fixtures && !results {
        return Err(CliError::NoFixtures);
    }
    let path = keep::store_path(args.pinned.kept.store.as_ref());
    if args.frozen && args.lock.is_none() && !path?.exists() {
        return Err(CliError::NothingPinned {
            server: args.pinned.server.clone().unwrap_or_default(),
        });
    }
    let lock = args.lock.as_deref().map(keep::lock).transpose()?;
    if lock.is_some() {
        // A lock file states everything, also of tools that come from files.
        for source in &mut sources {
            source.whole = args.source.schema.is_none();
        }
    }
    let recorded = match &args.compare.observed {
        Some(file) => calls::read(file)?,
        None => Vec::new(),
    };
    let to_make = calls::to_make(args.source.calls.as_deref())?;
    let answers = ask(&sources, &to_make)?;
    let store = match &lock {
        Some(_) => None,
        None => Some(keep::store(args.pinned.kept.store.as_ref())?),
    };
    let keeper = match (&lock, &store) {
        (Some(lock), _) => Keeper::Lock(lock, args.lock.as_deref().unwrap_or(Path::new(""))),
        (None, Some(store)) => Keeper::Store(store),
        (None, None) => return Err(CliError::NoSource),
    };
    let places = Places::of(args);
    let mut checked = Vec::new();
    let mut unanswered = Vec::new();
    for (source, answer) in sources.iter().zip(answers) {
        match answer.transpose() {
            Ok(answer) => match keeper.check(source, answer, args, &recorded, &places) {
                Ok(found) => checked.push(found),
                // The others are looked at, and told, all the same.
                Err(error) if sources.len() > 1 => {
                    say_error(&error);
                    unanswered.push((source, error));
                }
                Err(error) => return Err(error),
            },
            Err(error) => {
                let error = CliError::live(source, error);
                say_error(&error);
                unanswered.push((source, error));
            }
        }
    }
    let default = if args.compat {
        &[FailOn::Any][..]
    } else {
        &CHECK_FAILS_ON
    };
    let fail_on = failing(&args.fail_on, default, &args.allow);
    let unchecked = match (&lock, &args.lock) {
        (Some(lock), Some(path)) => unchecked(lock, path, &sources),
        _ => Vec::new(),
    };
    let failed = report(args, &checked, (&unanswered, &unchecked), &fail_on, &places)?;
    let measured = args.compat || checked.iter().all(Checked::is_measured);
    Ok(if failed {
        Verdict::Finding
    } else {
        Verdict::measured(unanswered.is_empty() && measured)
    })
}

/// The servers of a lock file that this check does not look at.
fn unchecked(lock: &LockFile, path: &Path, sources: &[Source]) -> Vec<Unchecked> {
    let looked_at = |key: &ServerKey| sources.iter().any(|source| source.key == *key);
    let others = lock.servers.iter().filter(|(key, _)| !looked_at(key));
    let others = others.map(|(key, server)| Unchecked {
        key: key.clone(),
        tools: server.tools.len(),
        lock: path.display().to_string(),
    });
    others.collect()
}

#[derive(Clone, Copy)]
enum Keeper<'k> {
    Store(&'k Store),
    Lock(&'k LockFile, &'k Path),
}

impl<'k> Keeper<'k> {
    fn check<'s>(
        self,
        source: &'s Source,
        answer: Option<super::live::Answer>,
        args: &CheckArgs,
        recorded: &[RecordedCall],
        places: &Places,
    ) -> Result<Checked<'s>, CliError> {
        let mut pins = self.pins(source)?;
        let key = ValueKey::new(match self {
            Self::Store(store) => store.value_key()?,
            // A lock file has no hashes of values.
            Self::Lock(..) => [0; 16],
        });
        let mut look = look(source, answer, &args.source, Some(&pins), &key)?;
        if args.fixtures {
            look.listing.sampling = Sampling::Fixtures;
        }
        look.listing.whole &= !(pins.open && source.is_unnamed() && !self.is_lock());
        let wanted = source.wanted(&args.source);
        if !wanted.is_empty() {
            pins.retain(wanted);
        }
        let options = args.compare.options();
        let (judged, recorded, old_form, mutated) = loop {
            let judged = judge(&pins, &mut look.listing, &options, recorded)?;
            self.refuse_unpinned(source, args, &look, &pins, &judged)?;
            let (said, mutated) = if args.compat {
                toolwatch_says(&pins, &look, &judged)?
            } else {
                (Vec::new(), false)
            };
            let Self::Store(store) = self else {
                break (judged, Recorded::default(), said, mutated);
            };
            let approval = keep::approval(&ApprovalArgs::default());
            let recording = Recording {
                approval: &approval,
                version: &args.source.version,
                seal: source.whole && wanted.is_empty(),
                alert_on: &source.alert_on,
                alert_on_equivalent: args.compat || args.fail_on.contains(&FailOn::Any),
                wanted,
            };
            let recorded = record(store, &pins, &look.listing, &judged, &recording)?;
            if !recorded.overtaken {
                break (judged, recorded, said, mutated);
            }
            // What another process pinned while this one looked is what tools are held to.
            pins = self.pins(source)?;
            if !wanted.is_empty() {
                pins.retain(wanted);
            }
        };
        first_sight::warn(source, &look.listing, &recorded.registered);
        places.assign(source, &judged.drift, &mut look);
        self.notice_absent(source, &pins, &look);
        Ok(Checked {
            source,
            look,
            judged,
            recorded,
            old_form,
            mutated,
            kept: matches!(self, Self::Store(_)),
        })
    }

    const fn is_lock(self) -> bool {
        matches!(self, Self::Lock(..))
    }

    /// The pins of a server. A list that has pins is compared as a whole, unless it was left open; a
    /// single definition is compared with its own pin.
    fn pins(self, source: &Source) -> Result<Pins<'k>, CliError> {
        let store = match self {
            Self::Store(store) => store,
            Self::Lock(lock, _) => return Ok(Pins::of_lock(lock, &source.key)),
        };
        let mut pins = Pins::of_store(store, &source.key)?;
        pins.sealed = if source.is_list() {
            pins.sealed || (!pins.open && !pins.tools.is_empty())
        } else {
            false
        };
        Ok(pins)
    }

    /// What was never pinned is an error where everything has to be, and so are two tools of one name
    /// that nobody could tell apart later.
    fn refuse_unpinned(
        self,
        source: &Source,
        args: &CheckArgs,
        look: &Look,
        pins: &Pins<'_>,
        judged: &Judged,
    ) -> Result<(), CliError> {
        let lock = match self {
            Self::Store(_) => None,
            Self::Lock(_, path) => Some(path.to_owned()),
        };
        let Some(tool) = judged.newcomers.first() else {
            return match judged.learned.first() {
                Some(tool) if args.frozen => Err(CliError::NoShape { tool: tool.clone() }),
                Some(tool) if lock.is_some() => {
                    say(&format!(
                        "the lock file has no shape of the results of `{}`",
                        visible(tool)
                    ));
                    Ok(())
                }
                _ => Ok(()),
            };
        };
        if lock.is_some() && pins.known && !args.frozen {
            let count = judged.newcomers.len();
            say(&format!(
                "{count} tools of `{}` are not in the lock file, which leaves the server open",
                visible(&source.key.name)
            ));
            return Ok(());
        }
        if args.frozen || lock.is_some() {
            return Err(CliError::NotPinned {
                server: source.key.name.clone(),
                tool: tool.clone(),
                more: judged.newcomers.len() - 1,
                lock,
            });
        }
        look.refuse_doubled(source)
    }

    /// An open server may lose tools in silence; say so where a whole list was read.
    fn notice_absent(self, source: &Source, pins: &Pins<'_>, look: &Look) {
        let from_files = matches!(source.from, super::sources::From::Files(_));
        if !from_files || look.listing.whole || pins.tools.len() <= look.listing.unchanged.len() {
            return;
        }
        let seen =
            |name: &String| look.listing.unchanged.contains(name) || look.places.contains_key(name);
        let absent: Vec<String> = pins
            .tools
            .keys()
            .filter(|name| !seen(name))
            .map(|name| visible(name))
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
            say(&format!(
                "{dim}note:{dim:#} {count} pinned tools of `{}` are not in these files: {some}{dots}; the server was left open (`watch baseline` without --open seals it)",
                source.key.name
            ));
        }
    }
}

/// What the toolwatch program would say of each tool, and whether any mutated.
fn toolwatch_says(
    pins: &Pins<'_>,
    look: &Look,
    judged: &Judged,
) -> Result<(Vec<String>, bool), CliError> {
    let now = keep::now();
    let (mut said, mut mutated) = (Vec::new(), false);
    let mut say = |name: &str, found: Option<ChangeType>| {
        mutated |= found.is_some();
        said.push(compat(name, found, now));
    };
    // What came, went or doubled is no matter of hashes.
    let by_name: Vec<&str> = judged
        .drift
        .tools
        .iter()
        .filter(|it| !matches!(it, ToolDrift::Changed(_)))
        .map(ToolDrift::tool)
        .collect();
    for name in &by_name {
        say(name, Some(ChangeType::Schema));
    }
    for seen in &look.listing.observed {
        if by_name.contains(&seen.name.as_str()) {
            continue;
        }
        let results = look.listing.results.get(&seen.name);
        say(&seen.name, mutation(pins, seen, results)?);
    }
    let unchanged = look.listing.unchanged.iter();
    for name in unchanged.filter(|name| !by_name.contains(&name.as_str())) {
        let Some(seen) = pins.observation(name)? else {
            continue;
        };
        say(name, mutation(pins, &seen, look.listing.results.get(name))?);
    }
    Ok((said, mutated))
}

/// What the toolwatch program prints.
fn compat(tool: &str, found: Option<ChangeType>, now: jiff::Timestamp) -> String {
    let Some(change_type) = found else {
        return format!("No mutation detected for tool '{}'.\n", visible(tool));
    };
    let severity = if change_type == ChangeType::Behavior {
        "high"
    } else {
        "medium"
    };
    let at = format!("{now:.6}");
    document::rendered(&json!({
        "tool_name": tool,
        "change_type": change_type.as_str(),
        "severity": severity,
        "detected_at": format!("{}+00:00", at.trim_end_matches('Z')),
    }))
}
