use std::path::{Path, PathBuf};

use toolwarden_guard::audit::{ChainFault, ChainLink, HeadCheck, VerifiedLog};
use toolwarden_live_guard::audit::{Verification, describe_fault, verify};

use super::{records, store};
use crate::args::{AuditVerifyArgs, PlainFormat};
use crate::command_outcome::CommandOutcome;
use crate::error::{AuditCommandError, CliError};
use crate::output::print_text;
use crate::style::{self, escape_controls};

const WITHOUT_KEY: &str = "store this head elsewhere: the chain has no key, so only --head can \
    detect a log that was truncated or recomputed\n";

pub(super) fn run(args: &AuditVerifyArgs) -> Result<CommandOutcome, CliError> {
    let noted = args.head.as_deref().map(head).transpose()?;
    let store = store(&args.kept)?;
    let found = verify(&store, noted)?;
    print_text(&match args.format {
        PlainFormat::Text => text(&found, noted),
        PlainFormat::Json => format!("{:#}\n", found.document(noted)),
    })?;
    Ok(match &found.chain {
        Err(_) => CommandOutcome::Finding,
        Ok(_) => CommandOutcome::from_measured(found.is_conclusive()),
    })
}

/// A head as it was given: itself, or a file that ends with it.
fn head(text: &str) -> Result<ChainLink, CliError> {
    if let Ok(link) = text.trim().parse() {
        return Ok(link);
    }
    let path = Path::new(text);
    if !path.exists() {
        let text = text.to_owned();
        return Err(AuditCommandError::NotAHead { text }.into());
    }
    let content = toolwarden_files::read_to_string(path).map_err(|source| CliError::Read {
        place: path.to_owned(),
        source,
    })?;
    let last = content.split_whitespace().next_back().unwrap_or_default();
    let no_head = |source| AuditCommandError::NoHeadIn {
        path: PathBuf::from(path),
        source,
    };
    Ok(last.parse().map_err(no_head)?)
}

fn text(found: &Verification, noted: Option<ChainLink>) -> String {
    let mut out = match &found.chain {
        Ok(intact) => intact_text(found, intact, noted),
        Err(fault) => fault_text(found, fault),
    };
    if !found.damage.is_empty() {
        let error = style::ERROR;
        out.push_str(&format!(
            "{error}damaged{error:#}: SQLite finds in the file:\n"
        ));
    }
    for line in &found.damage {
        out.push_str(&format!("  {}\n", escape_controls(line)));
    }
    out
}

fn intact_text(found: &Verification, intact: &VerifiedLog, noted: Option<ChainLink>) -> String {
    if intact.head.seq == 0 {
        return "No records: nothing was decided with this store yet.\n".to_owned();
    }
    let good = style::SUCCESS;
    let all = records(intact.records, intact.head.seq);
    let mut out = format!("{good}intact{good:#}: {all}\n");
    if found.removed.seq > 0 {
        let removed = found.removed.seq;
        out.push_str(&format!(
            "removed: 1 to {removed}, as a checkpoint record says\n"
        ));
    }
    if let Some(noted) = noted {
        let seq = noted.seq;
        let told = match intact.noted {
            HeadCheck::Confirmed => {
                format!(
                    "record {seq} matches the noted head, so no record up to it was changed since"
                )
            }
            // INVARIANT: a noted head that was given is confirmed or removed.
            HeadCheck::Removed | HeadCheck::NotGiven => {
                format!("record {seq} was removed since, so the noted head cannot be compared")
            }
        };
        out.push_str(&format!("noted: {told}\n"));
    }
    out.push_str(&format!("head: {}\n", intact.head));
    if noted.is_none() {
        out.push_str(WITHOUT_KEY);
    }
    out
}

fn fault_text(found: &Verification, fault: &ChainFault) -> String {
    let (error, dim) = (style::ERROR, style::DIM);
    format!(
        "{error}TAMPERED{error:#}: {fault}\n  {}\n  {dim}the store claims the head {}; do not note it{dim:#}\n",
        describe_fault(fault),
        found.head,
    )
}
