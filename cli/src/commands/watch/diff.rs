use std::path::Path;

use toolwarden_drift::{Class, ListDrift, Options, ToolDrift, compare_lists};
use toolwarden_model::closest;
use toolwarden_schema::{Budget, Callers, Formats};

use super::observe::{Seen, bring_together, read};
use super::{calls, document, findings, screen};
use crate::args::{CallerPolicy, DiffArgs, FailOn, ReportFormat};
use crate::commands::talk::say;
use crate::error::CliError;
use crate::output::{Verdict, print};

/// A comparison with everything a report needs.
pub(super) struct Comparison<'a> {
    pub(super) args: &'a DiffArgs,
    pub(super) options: Options,
    pub(super) old: &'a [Seen],
    pub(super) new: &'a [Seen],
    pub(super) drift: &'a ListDrift,
}

pub(super) fn run(args: &DiffArgs) -> Result<Verdict, CliError> {
    let stdin = Path::new("-");
    let from_stdin = [Some(&args.old), Some(&args.new), args.observed.as_ref()];
    if from_stdin
        .into_iter()
        .flatten()
        .filter(|path| *path == stdin)
        .count()
        > 1
    {
        return Err(CliError::TwiceStdin);
    }
    let mut old = read(&args.old, args.source_format)?;
    let mut new = read(&args.new, args.source_format)?;
    if old.is_empty() && new.is_empty() {
        let places = format!("{} and {}", args.old.display(), args.new.display());
        return Err(CliError::NothingToLint { places });
    }
    let names: Vec<String> = old.iter().map(|seen| seen.name.clone()).collect();
    select(&mut old, &mut new, &args.tools)?;
    if !bring_together(&mut old, &mut new) {
        say("the versions are in different formats: what both can say is compared");
    }
    let recorded = match &args.observed {
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
    let options = Options {
        callers: match args.policy {
            CallerPolicy::Declared => Callers::Declared,
            CallerPolicy::Open => Callers::Open,
        },
        formats: if args.assert_formats {
            Formats::Assert
        } else {
            Formats::Annotate
        },
        budget: Budget::default(),
    };
    let before: Vec<_> = old.iter().map(Seen::observed).collect();
    let after: Vec<_> = new.iter().map(Seen::observed).collect();
    let drift = compare_lists(&before, &after, &options, &recorded);
    let comparison = Comparison {
        args,
        options,
        old: &old,
        new: &new,
        drift: &drift,
    };
    print(&match args.format {
        ReportFormat::Text => screen::render(&comparison),
        ReportFormat::Json => document::render(&comparison),
        format => findings::report(&comparison).render(format),
    })?;
    let failed = drift.tools.iter().any(|tool| fails(args, tool));
    Ok(if failed {
        Verdict::Finding
    } else {
        Verdict::Fine
    })
}

/// Keeps the wanted tools of both lists.
fn select(old: &mut Vec<Seen>, new: &mut Vec<Seen>, tools: &[String]) -> Result<(), CliError> {
    if tools.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = old
        .iter()
        .chain(&*new)
        .map(|seen| seen.name.clone())
        .collect();
    if let Some(missing) = tools.iter().find(|tool| !names.contains(tool)) {
        return Err(CliError::NoSuchTool {
            name: missing.clone(),
            suggestion: closest(missing, names.iter().map(String::as_str)),
        });
    }
    for list in [old, new] {
        list.retain(|seen| tools.contains(&seen.name));
    }
    Ok(())
}

/// Whether what happened to a tool is what the caller wants to fail on.
pub(super) fn fails(args: &DiffArgs, tool: &ToolDrift) -> bool {
    let wants = |wanted: FailOn| args.fail_on.contains(&wanted);
    let classes = [
        (FailOn::Breaking, Class::Breaking),
        (FailOn::Widened, Class::Widened),
        (FailOn::Trust, Class::Trust),
        (FailOn::Structural, Class::Structural),
        (FailOn::Behavioural, Class::Behavioural),
        (FailOn::Unknown, Class::Unknown),
    ];
    !wants(FailOn::None)
        && (wants(FailOn::Any)
            || classes
                .iter()
                .any(|(wanted, class)| wants(*wanted) && tool.is(*class)))
}

impl Comparison<'_> {
    /// The definition a drift ends with, or started from where there is none any more.
    pub(super) fn seen(&self, tool: &ToolDrift) -> Option<&Seen> {
        let named = |list: &'_ [Seen], name: &str| list.iter().position(|seen| seen.name == name);
        let now = named(self.new, tool.tool()).and_then(|index| self.new.get(index));
        now.or_else(|| named(self.old, tool.tool()).and_then(|index| self.old.get(index)))
    }
}
