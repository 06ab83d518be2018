use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};

use super::{PlainFormat, Since, StoreArgs, since};

/// The kinds of records the guard writes.
const KINDS: [&str; 8] = [
    "decision",
    "outcome",
    "transition",
    "session",
    "escalation",
    "policy",
    "administration",
    "checkpoint",
];

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Show records, the newest last
    ///
    /// Prints one line for each record: number, time, decision or kind of record, tool, principal,
    /// reason code and reason. Characters that a terminal would interpret are escaped, and names
    /// with spaces are quoted, because names and reasons come from callers and tools.
    #[command(after_help = "\
Examples:
  toolwarden audit list
  toolwarden audit list --denied --since 24h
  toolwarden audit list --principal ada --tool delete_file --limit 0
  toolwarden audit list --code rate_limited --since 2026-01-31 --until 2026-02-01
  toolwarden audit list --kind escalation --format json")]
    List(AuditListArgs),

    /// Show the newest records, and follow the log
    ///
    /// With --follow, shows new records of all processes until SIGINT or SIGTERM.
    #[command(after_help = "\
Examples:
  toolwarden audit tail
  toolwarden audit tail --follow --denied
  toolwarden audit tail -f -n 0 --format ndjson | your-collector")]
    Tail(AuditTailArgs),

    /// Verify that the log was not tampered with
    ///
    /// Every record holds the hash of the one before, so a record that was changed, removed, added
    /// or moved breaks the chain. The chain has no key: a user who can write the file can recompute it
    /// or cut off its end. To detect both, store the head that this command prints in another place,
    /// and pass it with --head later.
    #[command(after_help = "\
Exit codes:
  0  intact, or there are no records
  1  tampered with
  2  --head is not a head
  3  no store, one that cannot be read, or the record of --head was pruned since

Examples:
  toolwarden audit verify
  toolwarden audit verify --head 1204:9f2c…
  toolwarden audit verify --head /mnt/elsewhere/heads.txt
  toolwarden audit verify --format json | jq --raw-output '.head // empty' >> heads.txt")]
    Verify(AuditVerifyArgs),

    /// Write records for other programs, the oldest first
    ///
    /// Writes the body of each record byte for byte, so that other programs can verify an export of
    /// the whole log; docs/audit.md has a script. The export is consistent, and needs little memory
    /// for any number of records.
    #[command(after_help = "\
Examples:
  toolwarden audit export --output audit.ndjson
  toolwarden audit export --since 2026-01-01 --until 2026-02-01 | gzip > january.ndjson.gz
  toolwarden audit export --format csv --denied --output denied.csv")]
    Export(AuditExportArgs),

    /// Count decisions and denials
    ///
    /// Shows how many calls were allowed and denied, the busiest tools and principals, the reasons
    /// of denials, escalations, and the latency of decisions.
    #[command(after_help = "\
Examples:
  toolwarden audit stats --since 24h
  toolwarden audit stats --by principal
  toolwarden audit stats --by hour --since 2d --format json")]
    Stats(AuditStatsArgs),

    /// Remove the oldest records
    ///
    /// Without --yes, prints what it would remove and changes nothing. A checkpoint record says who
    /// removed what, and links the remaining records to it, so that `audit verify` still works. The
    /// command refuses to prune a log that was tampered with, because the evidence may be in the
    /// removed records.
    #[command(after_help = "\
Examples:
  toolwarden audit prune --before 90d
  toolwarden audit prune --before 90d --yes
  toolwarden audit prune --keep 1000000 --yes")]
    Prune(AuditPruneArgs),
}

/// Which records.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    pub(crate) about: RecordFilterArgs,

    /// Only records with this reason code, such as rate_limited
    #[arg(long, value_name = "CODE")]
    pub(crate) code: Option<String>,

    /// Only records of this kind
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(KINDS))]
    pub(crate) kind: Option<String>,
}

/// Of which time, about what and whom.
#[derive(Debug, Args)]
pub(crate) struct RecordFilterArgs {
    /// Only records since then: a time, a date, or an age such as 90, 30m or 7d
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub(crate) since: Option<Since>,

    /// Only records before then, in the same notation
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub(crate) until: Option<Since>,

    /// Only records of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,

    /// Only records of this principal
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,

    /// Only records of this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,

    /// Only denied calls
    #[arg(long)]
    pub(crate) denied: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AuditListArgs {
    #[command(flatten)]
    pub(crate) records: RecordArgs,

    /// Show this many of the newest records; 0 for all
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u64,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: RecordFormat,
}

#[derive(Debug, Args)]
pub(crate) struct AuditTailArgs {
    #[command(flatten)]
    pub(crate) records: RecordArgs,

    /// Follow new records as they are written
    #[arg(long, short, conflicts_with = "until")]
    pub(crate) follow: bool,

    /// Start with this many of the newest records
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
    pub(crate) lines: u64,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: LineFormat,
}

#[derive(Debug, Args)]
pub(crate) struct AuditVerifyArgs {
    /// A head that you noted: SEQ:HASH, or a file whose last line ends with it
    #[arg(long, value_name = "HEAD")]
    pub(crate) head: Option<String>,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
pub(crate) struct AuditExportArgs {
    #[command(flatten)]
    pub(crate) records: RecordArgs,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,

    /// Write to this file instead of standard output, atomically
    #[arg(long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: DataFormat,
}

#[derive(Debug, Args)]
pub(crate) struct AuditStatsArgs {
    #[command(flatten)]
    pub(crate) about: RecordFilterArgs,

    /// Print only a table with one row for each of these
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) by: Option<StatsBy>,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub(crate) struct AuditPruneArgs {
    /// Remove records older than this: an age such as 90d, a date or a time
    #[arg(long, value_name = "TIME", value_parser = since, group = "which")]
    pub(crate) before: Option<Since>,

    /// Keep this many of the newest records, and remove all others
    #[arg(long, value_name = "N", group = "which")]
    pub(crate) keep: Option<u64>,

    /// Remove the records
    #[arg(long)]
    pub(crate) yes: bool,

    /// Do not verify the log first, even if it may have been tampered with
    #[arg(long)]
    pub(crate) unverified: bool,

    #[command(flatten)]
    pub(crate) kept: StoreArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordFormat {
    #[default]
    Text,
    /// One document
    Json,
    /// One JSON object per line
    #[value(alias = "jsonl")]
    Ndjson,
    /// RFC 4180, for spreadsheets
    Csv,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LineFormat {
    #[default]
    Text,
    /// One JSON object per line
    #[value(alias = "jsonl", alias = "json")]
    Ndjson,
    /// RFC 4180, for spreadsheets
    Csv,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataFormat {
    /// One JSON object per line
    #[default]
    #[value(alias = "jsonl")]
    Ndjson,
    /// One document
    Json,
    /// RFC 4180, for spreadsheets
    Csv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsBy {
    Tool,
    Principal,
    Code,
    Hour,
}

impl From<LineFormat> for RecordFormat {
    fn from(format: LineFormat) -> Self {
        match format {
            LineFormat::Text => Self::Text,
            LineFormat::Ndjson => Self::Ndjson,
            LineFormat::Csv => Self::Csv,
        }
    }
}

impl From<DataFormat> for RecordFormat {
    fn from(format: DataFormat) -> Self {
        match format {
            DataFormat::Ndjson => Self::Ndjson,
            DataFormat::Json => Self::Json,
            DataFormat::Csv => Self::Csv,
        }
    }
}
