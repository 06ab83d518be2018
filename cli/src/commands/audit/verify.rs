use std::path::{Path, PathBuf};

use serde_json::json;
use toolwarden_guard::audit::{Fault, Intact, Link, NotedHead};
use toolwarden_warden::guard::audit::{Verification, verify};

use super::error::AuditCommandError;
use super::{records, store};
use crate::args::{AuditVerifyArgs, PlainFormat};
use crate::error::CliError;
use crate::output::{Verdict, print};
use crate::style::{self, visible};

const WITHOUT_KEY: &str = "note the head elsewhere: the chain has no key, so only --head can show \
    an end that was cut off or a log that was computed anew\n";

pub(super) fn run(args: &AuditVerifyArgs) -> Result<Verdict, CliError> {
    let noted = args.head.as_deref().map(head).transpose()?;
    let store = store(&args.kept)?;
    let found = verify(&store, noted)?;
    print(&match args.format {
        PlainFormat::Text => text(&found, noted),
        PlainFormat::Json => document(&found, noted),
    })?;
    Ok(match &found.chain {
        Err(_) => Verdict::Finding,
        Ok(intact) => Verdict::measured(found.damage.is_empty() && is_answered(intact)),
    })
}

/// Whether it can be said if the log still holds the noted head. Who computes a log anew can also
/// make it say that the noted record was removed, so this is no yes.
const fn is_answered(intact: &Intact) -> bool {
    match intact.noted {
        NotedHead::Confirmed | NotedHead::NotGiven => true,
        NotedHead::Removed => false,
    }
}

/// A head as it was given: itself, or a file that ends with it.
fn head(text: &str) -> Result<Link, CliError> {
    if let Ok(link) = text.trim().parse() {
        return Ok(link);
    }
    let path = Path::new(text);
    if !path.exists() {
        let text = text.to_owned();
        return Err(AuditCommandError::NotAHead { text }.into());
    }
    let content = std::fs::read_to_string(path).map_err(|source| CliError::Read {
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

fn text(found: &Verification, noted: Option<Link>) -> String {
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
        out.push_str(&format!("  {}\n", visible(line)));
    }
    out
}

fn intact_text(found: &Verification, intact: &Intact, noted: Option<Link>) -> String {
    if intact.head.seq == 0 {
        return "No records: nothing was decided with this store yet.\n".to_owned();
    }
    let good = style::GOOD;
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
            NotedHead::Confirmed => {
                format!("record {seq} is as noted, so nothing up to it was changed since")
            }
            // INVARIANT: a noted head that was given is confirmed or removed.
            NotedHead::Removed | NotedHead::NotGiven => {
                format!(
                    "record {seq} was removed since, so it cannot be said whether it was changed"
                )
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

fn fault_text(found: &Verification, fault: &Fault) -> String {
    let (error, dim) = (style::ERROR, style::DIM);
    format!(
        "{error}TAMPERED{error:#}: {fault}\n  {}\n  {dim}the store claims the head {}; do not note it{dim:#}\n",
        why(fault),
        found.head,
    )
}

/// What a fault means, in plain words.
const fn why(fault: &Fault) -> &'static str {
    match fault {
        Fault::StartMissing { .. } => {
            "the oldest records are gone, and not by `audit prune`: that would have said so"
        }
        Fault::Missing { .. } => "somebody removed it from between the others",
        Fault::Unexpected { .. } => {
            "it is before the start of the log or out of order: somebody put it there"
        }
        Fault::Changed { .. } => {
            "what it says or the record it follows is not what its hash was computed from; \
             everything before it fits"
        }
        Fault::TailMissing { .. } => "the newest records are gone",
        Fault::BeyondHead { .. } => "it was written past the program, which moves the head along",
        Fault::HeadDiffers { .. } => "somebody changed the head, or the last record with its hash",
        Fault::HeadUnreadable => "the program always keeps one: somebody removed or changed it",
        Fault::RemovalUnproven { .. } => {
            "the oldest records are gone, and not by `audit prune`: its record is missing"
        }
        Fault::NotedMissing { .. } => {
            "the log ends before it: the newest records were cut off, or this is another or older log"
        }
        Fault::NotedDiffers { .. } => {
            "the log was computed anew since the head was noted, or this is another log"
        }
    }
}

/// The word for a fault in documents.
const fn code(fault: &Fault) -> &'static str {
    match fault {
        Fault::StartMissing { .. } => "start_missing",
        Fault::Missing { .. } => "missing",
        Fault::Unexpected { .. } => "unexpected",
        Fault::Changed { .. } => "changed",
        Fault::TailMissing { .. } => "tail_missing",
        Fault::BeyondHead { .. } => "beyond_head",
        Fault::HeadDiffers { .. } => "head_differs",
        Fault::HeadUnreadable => "head_unreadable",
        Fault::RemovalUnproven { .. } => "removal_unproven",
        Fault::NotedMissing { .. } => "noted_missing",
        Fault::NotedDiffers { .. } => "noted_differs",
    }
}

/// The first record that is missing or wrong.
fn record(fault: &Fault) -> i64 {
    let seq = match *fault {
        Fault::Unexpected { seq } => return seq,
        // Without a head nothing vouches for the first record either.
        Fault::HeadUnreadable => 1,
        Fault::StartMissing { expected: seq, .. }
        | Fault::Missing { seq }
        | Fault::Changed { seq }
        | Fault::BeyondHead { seq }
        | Fault::HeadDiffers { seq }
        | Fault::RemovalUnproven { through: seq }
        | Fault::NotedMissing { seq }
        | Fault::NotedDiffers { seq } => seq,
        Fault::TailMissing { found, .. } => found.saturating_add(1),
    };
    i64::try_from(seq).unwrap_or(i64::MAX)
}

fn document(found: &Verification, noted: Option<Link>) -> String {
    let intact = found.chain.as_ref().ok();
    let fault = found.chain.as_ref().err().map(|fault| {
        json!({
            "code": code(fault),
            "record": record(fault),
            "message": fault.to_string(),
            "meaning": why(fault),
        })
    });
    let noted = noted.zip(intact).map(|(noted, intact)| {
        let confirmed = intact.noted == NotedHead::Confirmed;
        json!({"head": noted.to_string(), "status": if confirmed { "confirmed" } else { "removed" }})
    });
    // A script must not note the head of a log that may not be the one it knew.
    let head = intact.filter(|it| found.is_intact() && is_answered(it));
    let head = head.map(|it| it.head.to_string());
    let document = json!({
        "schema": "toolwarden/audit/verification/v1",
        "intact": found.is_intact(),
        "records": intact.map(|it| it.records),
        "removed_through": found.removed.seq,
        "head": head,
        "noted": noted,
        "fault": fault,
        "damage": found.damage,
    });
    format!("{document:#}\n")
}
