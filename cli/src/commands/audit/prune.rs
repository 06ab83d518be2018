use toolwarden_live_guard::audit::{prune, verify};
use toolwarden_store::{PruneRange, PrunedRecords, Store};

use super::{records, store, store_path};
use crate::args::AuditPruneArgs;
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;
use crate::output::print_text;
use crate::style::{self, escape_controls};

pub(super) fn run(args: &AuditPruneArgs) -> Result<CommandOutcome, CliError> {
    let store = store(&args.kept)?;
    let now = store_path::now();
    // INVARIANT: clap lets one of them through.
    let before = |since: crate::args::Since| PruneRange::Before(since.time(now).as_millisecond());
    let cut = match args.keep {
        Some(count) => PruneRange::Keep(count),
        None => args.before.map_or(PruneRange::Keep(u64::MAX), before),
    };
    if !args.yes {
        print_text(&dry_run_text(&store, cut)?)?;
        return Ok(CommandOutcome::Pass);
    }
    if !args.unverified
        && let Some(refusal) = refusal_reason(&store)?
    {
        print_text(&refusal)?;
        return Ok(CommandOutcome::Finding);
    }
    let user = store_path::user_name();
    let done = match prune(&store, cut, now.as_millisecond(), &user)? {
        Some(removal) => format!(
            "removed {}; a checkpoint record says so, by {}\n",
            pruned_text(removal),
            escape_controls(&user)
        ),
        None => "nothing to remove\n".to_owned(),
    };
    print_text(&done)?;
    Ok(CommandOutcome::Pass)
}

fn dry_run_text(store: &Store, cut: PruneRange) -> Result<String, CliError> {
    let head = store.audit_head()?.seq;
    Ok(match store.prunable_records(cut)? {
        Some(removal) => format!(
            "would remove {}; {} would stay\nnothing was changed; pass --yes to remove them\n",
            pruned_text(removal),
            head.saturating_sub(removal.through),
        ),
        None => "nothing to remove\n".to_owned(),
    })
}

/// Why a log must not be pruned, if it must not: pruning could remove the evidence of tampering, and
/// the log would pass for intact afterwards.
fn refusal_reason(store: &Store) -> Result<Option<String>, CliError> {
    let found = verify(store, None)?;
    let problem = match &found.chain {
        Err(fault) => fault.to_string(),
        Ok(_) if !found.damage.is_empty() => "the file is damaged".to_owned(),
        Ok(_) => return Ok(None),
    };
    let (error, dim) = (style::ERROR, style::DIM);
    Ok(Some(format!(
        "{error}refused{error:#}: {problem}; nothing was removed\n  \
         {dim}help:{dim:#} keep a copy of the store, then give --unverified\n"
    )))
}

fn pruned_text(removal: PrunedRecords) -> String {
    records(removal.records, removal.through)
}
