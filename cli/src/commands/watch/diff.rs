use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;

use serde_json::{Value, json};
use toolwarden_drift::{Change, Drift, ListDrift, compare_lists, format_change};
use toolwarden_model::json::Object;
use toolwarden_model::{Verdict, did_you_mean};
use toolwarden_watch::{
    LOCK_SCHEMA, LockFile, Observation, align_formats, differ_beyond_common_form,
};

use super::comparison::{DIFF_FAILS_ON, ServerComparison, effective_fail_on};
use super::read_tools::{LocatedTool, read_tools};
use super::{findings, json_document, markdown, recorded_calls, store_path, text_report};
use crate::args::{DiffArgs, ReportFormat};
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::print_status;
use crate::error::CliError;
use crate::input::SourceLocation;
use crate::output::print_text;

pub(super) fn run(args: &DiffArgs) -> Result<CommandOutcome, CliError> {
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
        return Err(CliError::DuplicateStdin);
    }
    let fail_on = effective_fail_on(&args.fail_on, &DIFF_FAILS_ON, &args.allow)?;
    let mut old = load_side(args, &args.old)?;
    let mut new = load_side(args, &args.new)?;
    if old.is_empty() && new.is_empty() {
        let places = format!("{} and {}", args.old.display(), args.new.display());
        return Err(CliError::NoTools { places });
    }
    let names: Vec<String> = old
        .iter()
        .map(|seen| seen.observation.name.clone())
        .collect();
    select(&mut old, &mut new, &args.tools)?;
    let across = align_tool_formats(&mut old, &mut new);
    if across.tools > 0 {
        print_status(&format!(
            "{} tools are in different formats: what both can say is compared",
            across.tools
        ));
    }
    let recorded = match &args.compare.observed {
        Some(file) => recorded_calls::read(file)?,
        None => Vec::new(),
    };
    let known = |name: &str| names.iter().any(|known| known == name);
    let strangers = recorded
        .iter()
        .filter(|call| call.tool.as_deref().is_some_and(|tool| !known(tool)));
    match strangers.count() {
        0 => {}
        count => print_status(&format!(
            "{count} of {} recorded calls are of tools the old version does not have",
            recorded.len()
        )),
    }
    let options = args.compare.options();
    let before: Vec<_> = old.iter().map(|seen| seen.observation.observed()).collect();
    let after: Vec<_> = new.iter().map(|seen| seen.observation.observed()).collect();
    let mut drift = compare_lists(&before, &after, &options, &recorded);
    let opaque = new.iter().filter(|seen| seen.observation.opaque);
    for name in opaque.map(|seen| seen.observation.name.as_str()) {
        drift.mark_unknown(name);
    }
    add_doubles(&new, &mut drift);
    for (tool, change) in across.not_compared {
        let known = drift.tools.len();
        drift.add(Drift::of_results(&tool, None, vec![change]));
        // A tool that seemed unchanged in what both formats can express.
        drift.unchanged -= (drift.tools.len() - known).min(drift.unchanged);
    }
    let places = locations(&old, &new);
    let mut subjects: Vec<String> = new
        .iter()
        .map(|seen| seen.observation.name.clone())
        .collect();
    subjects.extend(findings::removed_tools(&drift));
    let comparison = ServerComparison {
        options,
        fail_on: &fail_on,
        locations: &places,
        subjects,
        server: None,
        drift: &drift,
    };
    print_text(&match args.format {
        ReportFormat::Text => text_report::render(&comparison),
        ReportFormat::Json => {
            let mut members = Object::new();
            members.insert("schema".to_owned(), json!("toolwarden/watch/diff/v1"));
            members.insert("old".to_owned(), json!(args.old.display().to_string()));
            members.insert("new".to_owned(), json!(args.new.display().to_string()));
            members.extend(json_document::comparison_members(&comparison));
            json_document::to_text(&Value::Object(members))
        }
        ReportFormat::Markdown => markdown::render(&[(None, &comparison)]),
        format => findings::report("toolwarden/watch/diff/v1", &[&comparison]).render(format),
    })?;
    Ok(Verdict::new(comparison.has_failures(), true).into())
}

/// The tools a side names: those of a file, of a lock file, or of the store.
fn load_side(args: &DiffArgs, word: &Path) -> Result<Vec<LocatedTool>, CliError> {
    if let Some(wanted) = word.to_str().and_then(|word| word.strip_prefix('@')) {
        return store_path::stored_tools(&args.pinned, wanted);
    }
    if is_lock(word) {
        let lock = store_path::read_lock(word)?;
        return tools_of_lock(args, &lock, word);
    }
    read_tools(word, args.source_format)
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

fn tools_of_lock(
    args: &DiffArgs,
    lock: &LockFile,
    path: &Path,
) -> Result<Vec<LocatedTool>, CliError> {
    let mut seen = Vec::new();
    if let Some(wanted) = &args.pinned.server
        && !lock.servers.keys().any(|key| key.name == *wanted)
    {
        return Err(CliError::NothingPinned {
            server: wanted.clone(),
        });
    }
    let lines = store_path::lock_lines(path);
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
            let read = Observation::parse(name, tool.kept.format, &tool.text);
            let read = read.map_err(|source| CliError::StoredDefinition {
                tool: name.clone(),
                source,
            })?;
            let line = lines.tool(key, name).unwrap_or(1);
            let place = SourceLocation::at_line(&path.display().to_string(), line);
            seen.push(LocatedTool {
                location: place,
                observation: read,
            });
        }
    }
    Ok(seen)
}

/// Tools of one name that are in different formats.
#[derive(Default)]
struct ReformattedTools {
    tools: usize,
    /// The tools with members that were not compared.
    not_compared: Vec<(String, Change)>,
}

/// Brings the tools of one name that are in different formats to what both can express.
fn align_tool_formats(old: &mut [LocatedTool], new: &mut [LocatedTool]) -> ReformattedTools {
    let mut waiting: BTreeMap<String, Vec<&mut LocatedTool>> = BTreeMap::new();
    for seen in old {
        waiting
            .entry(seen.observation.name.clone())
            .or_default()
            .push(seen);
    }
    let mut across = ReformattedTools::default();
    for seen in new {
        let named = waiting.get_mut(&seen.observation.name);
        for before in named.into_iter().flatten() {
            let (was, is) = (&mut before.observation, &mut seen.observation);
            let formats = (was.view().id(), is.view().id());
            if align_formats(was, is) {
                continue;
            }
            across.tools += 1;
            if differ_beyond_common_form(was, is) {
                let change = format_change(&is.name, formats.0, formats.1);
                across.not_compared.push((is.name.clone(), change));
            }
        }
    }
    across
}

/// Two tools of one name are never fine, also where the old list had them already: one reader takes
/// the first of them, another the last.
fn add_doubles(new: &[LocatedTool], drift: &mut ListDrift) {
    let mut known = BTreeSet::new();
    let doubles = new.iter().map(|seen| seen.observation.name.as_str());
    for name in doubles.filter(|name| !known.insert(*name)) {
        drift.add_double(name);
    }
}

/// Where each tool stands now, or stood.
fn locations(old: &[LocatedTool], new: &[LocatedTool]) -> BTreeMap<String, SourceLocation> {
    let all = old.iter().chain(new.iter().rev());
    all.map(|seen| (seen.observation.name.clone(), seen.location.clone()))
        .collect()
}

/// Keeps the wanted tools of both lists.
fn select(
    old: &mut Vec<LocatedTool>,
    new: &mut Vec<LocatedTool>,
    tools: &[String],
) -> Result<(), CliError> {
    if tools.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = old
        .iter()
        .chain(&*new)
        .map(|seen| seen.observation.name.clone())
        .collect();
    if let Some(missing) = tools.iter().find(|tool| !names.contains(tool)) {
        return Err(CliError::NoSuchTool {
            name: missing.clone(),
            suggestion: did_you_mean(missing, names.iter().map(String::as_str)),
        });
    }
    for list in [old, new] {
        list.retain(|seen| tools.contains(&seen.observation.name));
    }
    Ok(())
}
