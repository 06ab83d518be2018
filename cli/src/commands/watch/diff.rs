use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use serde_json::{Value, json};
use toolwarden_drift::compare_lists;
use toolwarden_model::closest;
use toolwarden_model::json::Object;
use toolwarden_warden::{LOCK_SCHEMA, LockFile, Observation, share_words};

use super::comparison::{Comparison, failing};
use super::seen::{Seen, read};
use super::{calls, document, findings, keep, markdown, screen};
use crate::args::{DiffArgs, ReportFormat};
use crate::commands::talk::say;
use crate::error::CliError;
use crate::input::KeptPlace;
use crate::output::{Verdict, print};

pub(super) fn run(args: &DiffArgs) -> Result<Verdict, CliError> {
    let stdin = Path::new("-");
    let from_stdin = [
        Some(&args.old),
        Some(&args.new),
        args.compare.observed.as_ref(),
    ];
    if from_stdin
        .into_iter()
        .flatten()
        .filter(|path| *path == stdin)
        .count()
        > 1
    {
        return Err(CliError::TwiceStdin);
    }
    let mut old = side(args, &args.old)?;
    let mut new = side(args, &args.new)?;
    if old.is_empty() && new.is_empty() {
        let places = format!("{} and {}", args.old.display(), args.new.display());
        return Err(CliError::NoTools { places });
    }
    let names: Vec<String> = old.iter().map(|seen| seen.tool.name.clone()).collect();
    select(&mut old, &mut new, &args.tools)?;
    let across = across_formats(&mut old, &mut new);
    if across > 0 {
        say(&format!(
            "{across} tools are in different formats: what both can say is compared"
        ));
    }
    let recorded = match &args.compare.observed {
        Some(file) => calls::read(file)?,
        None => Vec::new(),
    };
    let known = |name: &str| names.iter().any(|known| known == name);
    let strangers = recorded
        .iter()
        .filter(|call| call.tool.as_deref().is_some_and(|tool| !known(tool)));
    match strangers.count() {
        0 => {}
        count => say(&format!(
            "{count} of {} recorded calls are of tools the old version does not have",
            recorded.len()
        )),
    }
    let options = args.compare.options();
    let before: Vec<_> = old.iter().map(|seen| seen.tool.observed()).collect();
    let after: Vec<_> = new.iter().map(|seen| seen.tool.observed()).collect();
    let mut drift = compare_lists(&before, &after, &options, &recorded);
    let opaque = new.iter().filter(|seen| seen.tool.opaque);
    for name in opaque.map(|seen| seen.tool.name.as_str()) {
        drift.doubt(name);
    }
    let places = places(&old, &new);
    let mut subjects: Vec<String> = new.iter().map(|seen| seen.tool.name.clone()).collect();
    subjects.extend(findings::gone(&drift));
    let fail_on = failing(&args.fail_on, &[], &args.allow);
    let comparison = Comparison {
        options,
        fail_on: &fail_on,
        places: &places,
        subjects,
        drift: &drift,
    };
    print(&match args.format {
        ReportFormat::Text => screen::render(&comparison),
        ReportFormat::Json => {
            let mut members = Object::new();
            members.insert("schema".to_owned(), json!("toolwarden/watch/diff/v1"));
            members.insert("old".to_owned(), json!(args.old.display().to_string()));
            members.insert("new".to_owned(), json!(args.new.display().to_string()));
            members.extend(document::members(&comparison));
            document::rendered(&Value::Object(members))
        }
        ReportFormat::Markdown => markdown::render(&[(None, &comparison)]),
        format => findings::report("toolwarden/watch/diff/v1", &[&comparison]).render(format),
    })?;
    Ok(Verdict::of(comparison.failed()))
}

/// The tools a side names: those of a file, of a lock file, or of the store.
fn side(args: &DiffArgs, word: &Path) -> Result<Vec<Seen>, CliError> {
    if let Some(wanted) = word.to_str().and_then(|word| word.strip_prefix('@')) {
        return keep::seen(&args.pinned, wanted);
    }
    if is_lock(word) {
        let lock = keep::lock(word)?;
        return of_lock(args, &lock, word);
    }
    read(word, args.source_format)
}

/// Whether a file is a lock file, whatever it is called.
fn is_lock(path: &Path) -> bool {
    if path.extension().is_some_and(|it| it == "lock") {
        return true;
    }
    // A pipe is read once.
    if !path.is_file() {
        return false;
    }
    let mut head = [0; 256];
    let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut head));
    let head = head.get(..read.unwrap_or(0)).unwrap_or_default();
    String::from_utf8_lossy(head).contains(LOCK_SCHEMA)
}

fn of_lock(args: &DiffArgs, lock: &LockFile, path: &Path) -> Result<Vec<Seen>, CliError> {
    let mut seen = Vec::new();
    if let Some(wanted) = &args.pinned.server
        && !lock.servers.keys().any(|key| key.name == *wanted)
    {
        return Err(CliError::NothingPinned {
            server: wanted.clone(),
        });
    }
    let lines = keep::lock_lines(path);
    for (key, server) in &lock.servers {
        if args
            .pinned
            .server
            .as_ref()
            .is_some_and(|wanted| *wanted != key.name)
        {
            continue;
        }
        for (name, tool) in &server.tools {
            let read = Observation::read(name, tool.kept.format, &tool.text);
            let read = read.map_err(|source| CliError::Kept {
                tool: name.clone(),
                source,
            })?;
            let line = lines.tool(key, name).unwrap_or(1);
            let place = KeptPlace::at_line(&path.display().to_string(), line);
            seen.push(Seen { place, tool: read });
        }
    }
    Ok(seen)
}

/// Brings the tools of one name that are in different formats to what both can say; tells how many.
fn across_formats(old: &mut [Seen], new: &mut [Seen]) -> usize {
    let mut waiting: BTreeMap<String, Vec<&mut Seen>> = BTreeMap::new();
    for seen in old {
        waiting
            .entry(seen.tool.name.clone())
            .or_default()
            .push(seen);
    }
    let mut across = 0;
    for seen in new {
        let named = waiting.get_mut(&seen.tool.name);
        for before in named.into_iter().flatten() {
            across += usize::from(!share_words(&mut before.tool, &mut seen.tool));
        }
    }
    across
}

/// Where each tool stands now, or stood.
fn places(old: &[Seen], new: &[Seen]) -> BTreeMap<String, KeptPlace> {
    let all = old.iter().chain(new.iter().rev());
    all.map(|seen| (seen.tool.name.clone(), seen.place.clone()))
        .collect()
}

/// Keeps the wanted tools of both lists.
fn select(old: &mut Vec<Seen>, new: &mut Vec<Seen>, tools: &[String]) -> Result<(), CliError> {
    if tools.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = old
        .iter()
        .chain(&*new)
        .map(|seen| seen.tool.name.clone())
        .collect();
    if let Some(missing) = tools.iter().find(|tool| !names.contains(tool)) {
        return Err(CliError::NoSuchTool {
            name: missing.clone(),
            suggestion: closest(missing, names.iter().map(String::as_str)),
        });
    }
    for list in [old, new] {
        list.retain(|seen| tools.contains(&seen.tool.name));
    }
    Ok(())
}
