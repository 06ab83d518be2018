use toolwarden_store::{Cut, Removal, Store};
use toolwarden_warden::guard::audit::{prune, verify};

use super::{keep, records, store};
use crate::args::AuditPruneArgs;
use crate::error::CliError;
use crate::output::{Verdict, print};
use crate::style::{self, visible};

pub(super) fn run(args: &AuditPruneArgs) -> Result<Verdict, CliError> {
    let store = store(&args.kept)?;
    let now = keep::now();
    // INVARIANT: clap lets one of them through.
    let before = |since: crate::args::Since| Cut::Before(since.time(now).as_millisecond());
    let cut = match args.keep {
        Some(count) => Cut::Keep(count),
        None => args.before.map_or(Cut::Keep(u64::MAX), before),
    };
    if !args.yes {
        print(&would(&store, cut)?)?;
        return Ok(Verdict::Fine);
    }
    if !args.unverified
        && let Some(refusal) = refusal(&store)?
    {
        print(&refusal)?;
        return Ok(Verdict::Finding);
    }
    let user = keep::user();
    let done = match prune(&store, cut, now.as_millisecond(), &user)? {
        Some(removal) => format!(
            "removed {}; a checkpoint record says so, by {}\n",
            told(removal),
            visible(&user)
        ),
        None => "nothing to remove\n".to_owned(),
    };
    print(&done)?;
    Ok(Verdict::Fine)
}

fn would(store: &Store, cut: Cut) -> Result<String, CliError> {
    let head = store.audit_head()?.seq;
    Ok(match store.removal(cut)? {
        Some(removal) => format!(
            "would remove {}; {} would stay\nnothing was changed: give --yes to do it\n",
            told(removal),
            head.saturating_sub(removal.through),
        ),
        None => "nothing to remove\n".to_owned(),
    })
}

/// Why a log is not shortened: what is removed is no longer there to be looked at, and the log would
/// pass for intact afterwards.
fn refusal(store: &Store) -> Result<Option<String>, CliError> {
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

fn told(removal: Removal) -> String {
    records(removal.records, removal.through)
}
