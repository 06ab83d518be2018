use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::probe::share;
use super::{AskArgs, FailThreshold};

#[derive(Debug, Args)]
pub(crate) struct ProbeReportArgs {
    /// Snapshots of one suite; the first is the baseline
    #[arg(value_name = "SNAPSHOT", required_unless_present = "contract")]
    pub(crate) snapshots: Vec<PathBuf>,

    /// Judge by the pins of this contract; without snapshots, run its providers
    #[arg(long, value_name = "PATH")]
    pub(crate) contract: Option<PathBuf>,

    /// Only this provider of the contract; may be given several times
    #[arg(
        long,
        short,
        value_name = "NAME",
        requires = "contract",
        conflicts_with = "snapshots"
    )]
    pub(crate) base: Vec<String>,

    /// Take bundled answers instead of asking the providers of the contract
    #[arg(long, requires = "contract", conflicts_with = "snapshots")]
    pub(crate) from_fixtures: bool,

    /// Quote the bytes of answers that --capture kept; a file or a folder
    #[arg(long, value_name = "PATH")]
    pub(crate) answers: Vec<PathBuf>,

    /// Take token prices from this file instead of the bundled table
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) ask: AskArgs,

    /// What makes a model a no-go: breaking unless said otherwise
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) fail_on: Option<FailThreshold>,

    /// By how much a rate may drop, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = share)]
    pub(crate) allowed_drop: f64,

    /// Write to this file instead of standard output; replaced as a whole or not at all
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,

    /// The output format
    #[arg(long, short, value_enum, default_value_t)]
    pub(crate) format: ModelReportFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelReportFormat {
    /// One page without external resources
    #[default]
    Html,
    Markdown,
    /// One document
    Json,
}
