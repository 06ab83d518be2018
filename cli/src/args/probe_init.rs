use std::path::PathBuf;

use clap::Args;
use toolwarden_canon::FormatChoice;

use super::source;

#[derive(Debug, Args)]
pub(crate) struct ProbeInitArgs {
    /// Files or globs with definitions in any format; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Start this MCP server and take its tools; may be given several times
    #[arg(long, value_name = "COMMAND")]
    pub(crate) mcp_command: Vec<String>,

    /// Take the tools of the MCP server at this address; may be given several times
    #[arg(long, value_name = "URL")]
    pub(crate) mcp_url: Vec<String>,

    /// Take the tools of this lock file
    #[arg(long, value_name = "FILE")]
    pub(crate) lock: Option<PathBuf>,

    /// Take arguments from recorded calls: an audit export, or one call per line
    ///
    /// Without definitions from elsewhere, the tools themselves are inferred from the calls.
    #[arg(long, value_name = "FILE")]
    pub(crate) calls: Vec<PathBuf>,

    /// Only the tool of this name; may be given several times
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,

    /// Read definitions as this format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = source, default_value = "auto", hide_default_value = true)]
    pub(crate) source_format: FormatChoice,

    /// Name the suite
    #[arg(long, value_name = "NAME", default_value = "tools")]
    pub(crate) name: String,

    /// Give up on a server after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,

    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the output file if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}
