use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use toolwarden_canon::{Dialect, Source, Target};
use toolwarden_model::{Family, Format};

use crate::error::CliError;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// The contract layer between agents, models and tools.
#[derive(Debug, Parser)]
#[command(name = "toolwarden", version, styles = STYLES, max_term_width = 100, after_help = "\
Exit codes:
  0  fine
  1  a finding (something rejected, lost or denied); --exit-zero turns it into 0
  2  a mistake in the command, a file or its content
  3  could not measure

Examples:
  toolwarden canon detect tool.json
  toolwarden canon emit --target openai tools.json
  toolwarden canon lint --for kimi tools.json
  toolwarden watch diff old.json new.json
  toolwarden watch scan tools.json")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Colour the output
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        display_order = 900
    )]
    pub(crate) color: Color,

    /// Exit with 0 where a finding would exit with 1
    #[arg(long, global = true, display_order = 901)]
    pub(crate) exit_zero: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Read tool definitions in any format, write them in any other, say what was lost
    #[command(
        subcommand,
        after_help = "\
Examples:
  toolwarden canon detect --verbose tool.json
  toolwarden canon canonicalize tool.json
  toolwarden canon emit --target gemini --deny-loss semantic 'tools/*.json'
  toolwarden canon lint --for openai-strict --fix tool.json"
    )]
    Canon(CanonCommand),

    /// Say what a change of tools means, and prove it
    #[command(
        subcommand,
        after_help = "\
Examples:
  toolwarden watch diff old.json new.json
  toolwarden watch diff --observed calls.jsonl --format github old.json new.json
  toolwarden watch scan 'servers/*.json'"
    )]
    Watch(WatchCommand),

    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  toolwarden completions bash > ~/.local/share/bash-completion/completions/toolwarden
  toolwarden completions zsh > ~/.zfunc/_toolwarden
  toolwarden completions fish > ~/.config/fish/completions/toolwarden.fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CanonCommand {
    /// Bring definitions into the canonical form
    ///
    /// Reads a single definition, an array, an object with `tools`, a JSON-RPC tools/list
    /// response, a request body, JSON Lines, a map from names to definitions, or an OpenAPI
    /// document. One definition gives one object, anything else an array.
    ///
    /// What is odd about a definition is a warning on standard error and does not change the exit
    /// code; --strict makes it a finding.
    #[command(after_help = "\
Examples:
  toolwarden canon canonicalize --input tool.json
  toolwarden canon canonicalize --input tool.json --source-format anthropic
  toolwarden canon canonicalize --input tool.json --output canonical.json
  curl -s localhost:8000/openapi.json | toolwarden canon canonicalize -")]
    Canonicalize(CanonicalizeArgs),

    /// Write definitions in a provider's format
    ///
    /// Takes canonical tools or definitions in any format. The result goes to standard output, an
    /// account of everything lost or changed to standard error.
    #[command(after_help = "\
Examples:
  toolwarden canon emit --input canonical.json --target mcp
  toolwarden canon emit --target openai-strict --deny-loss semantic tools.json
  toolwarden canon emit --target json-schema --draft 2020-12 --tool read_file tools.json
  toolwarden canon emit --target anthropic --format json tools.json | jq '.tools[].losses'")]
    Emit(EmitArgs),

    /// Tell what format definitions are in
    #[command(after_help = "\
Examples:
  toolwarden canon detect --input tool.json
  toolwarden canon detect --input tool.json --verbose
  toolwarden canon detect --format json tools/*.json")]
    Detect(DetectArgs),

    /// Find what a provider would reject or ignore
    ///
    /// Checks schemas, names and sizes against dated tables of what each provider accepts,
    /// without asking the provider. With --fix, definitions are rewritten where that keeps their
    /// meaning, and written to standard output or --output.
    #[command(after_help = "\
Examples:
  toolwarden canon lint --for kimi tools.json
  toolwarden canon lint --for openai-strict --for gemini --format github tools/*.json
  toolwarden canon lint --for deepseek-strict --fix --output fixed.json tools.json")]
    Lint(LintArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum WatchCommand {
    /// Compare two versions of tools
    ///
    /// Reads one tool or a list of tools from each file, in any format `canon` reads. Tools are
    /// matched by name; what was renamed is found. Each change is told with its place and what it
    /// means: `breaking` with a call that worked and fails now, `widened`, `equivalent`,
    /// `behavioural` (a model may act differently), `trust` (less caution is asked for, or the text
    /// turned against its reader), `structural`, or `unknown`.
    #[command(after_help = "\
Examples:
  toolwarden watch diff old.json new.json
  toolwarden watch diff --tool browser_click v1.json v2.json
  toolwarden watch diff --policy open --fail-on any old.json new.json
  toolwarden watch diff --observed calls.jsonl old.json new.json
  curl -s localhost:8000/tools | toolwarden watch diff pinned.json -")]
    Diff(DiffArgs),

    /// Find what hides in the text of tools
    ///
    /// Looks at every string of every definition, names of properties included: invisible and
    /// reordering characters, terminal escapes, names that pass for others, references to tools of
    /// other servers, instructions to the model, and annotations that contradict the tool. Each
    /// file counts as one server.
    #[command(after_help = "\
Examples:
  toolwarden watch scan tools.json
  toolwarden watch scan --weight low 'servers/*.json'
  toolwarden watch scan --format sarif tools.json > findings.sarif")]
    Scan(ScanArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The tools as they were; `-` is standard input
    #[arg(value_name = "OLD")]
    pub(crate) old: PathBuf,

    /// The tools as they are now; `-` is standard input
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,

    /// Only the tool of this name; may be given several times
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,

    /// Take definitions for this format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = source, default_value = "auto", hide_default_value = true)]
    pub(crate) source_format: Source,

    /// What callers send
    #[arg(long, value_enum, default_value_t)]
    pub(crate) policy: CallerPolicy,

    /// Calls that were really made, one JSON object per line, to replay
    ///
    /// `{"tool": "name", "arguments": {…}}`, MCP `tools/call` requests, or tool calls as providers
    /// return them.
    #[arg(long, value_name = "FILE")]
    pub(crate) observed: Option<PathBuf>,

    /// `format` decides about a value, as for a receiver that checks it
    #[arg(long)]
    pub(crate) assert_formats: bool,

    /// Exit with 1 on drift of this class; several with commas or by repeating
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "CLASS",
        default_values_t = [FailOn::Breaking, FailOn::Trust, FailOn::Unknown]
    )]
    pub(crate) fail_on: Vec<FailOn>,

    /// The shape of the report
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CallerPolicy {
    /// Only keys the old schema declares
    #[default]
    Declared,
    /// Whatever the old schema accepts
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Breaking,
    Widened,
    Trust,
    Structural,
    Behavioural,
    Unknown,
    /// Any drift at all
    Any,
    /// No drift; only mistakes fail
    None,
}

#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Report findings of at least this weight
    #[arg(long, value_enum, default_value_t)]
    pub(crate) weight: LeastWeight,

    /// The shape of the report
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LeastWeight {
    /// Everything; honest tools look like this too
    Low,
    /// What is rare in honest tools
    #[default]
    Medium,
    /// What nothing legitimate looks like
    High,
}

/// Where definitions come from.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Files or globs to read; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "input")]
    pub(crate) files: Vec<PathBuf>,

    /// A file to read, as in the toolcanon document
    #[arg(long, value_name = "PATH")]
    pub(crate) input: Vec<PathBuf>,

    /// Take definitions for this format instead of detecting it
    ///
    /// A provider (openai, anthropic, mcp, langchain, gemini, bedrock, …) or one of its formats
    /// (openai-chat, openai-responses, …), or raw.
    #[arg(long, value_name = "FORMAT", value_parser = source, default_value = "auto", hide_default_value = true)]
    pub(crate) source_format: Source,

    /// Only the tool of this name; may be given several times
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,
}

/// Where the result goes.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Write to this file instead of standard output; replaced as a whole or not at all
    #[arg(long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,

    /// The shape of the result
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: DocumentFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    /// The definitions themselves, as JSON
    #[default]
    Text,
    /// One document with the definitions and everything there is to say about them
    Json,
    /// The definitions, one per line
    Jsonl,
}

#[derive(Debug, Args)]
pub(crate) struct CanonicalizeArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Warnings are findings: exit with 1
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EmitArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// The format to write
    ///
    /// openai (or openai-chat), openai-strict, openai-responses, openai-legacy, anthropic, mcp,
    /// mcp-2025-11-25, mcp-2026-07-28, langchain, gemini, gemini-json-schema, bedrock, json-schema.
    #[arg(long, value_name = "TARGET")]
    pub(crate) target: Target,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// The draft of a json-schema document
    #[arg(long, value_enum, default_value_t, value_name = "DRAFT")]
    pub(crate) draft: Draft,

    /// Exit with 1 when something is lost: what changes which calls are valid, or anything
    #[arg(long, value_enum, value_name = "LOSS")]
    pub(crate) deny_loss: Option<DeniedLoss>,

    /// Warnings are findings: exit with 1
    #[arg(long)]
    pub(crate) strict: bool,

    /// Tell every loss and change of every tool
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Draft {
    #[default]
    #[value(name = "2019-09")]
    Draft201909,
    #[value(name = "2020-12")]
    Draft202012,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeniedLoss {
    /// Losses that change which calls are valid
    Semantic,
    /// Every loss
    Any,
}

#[derive(Debug, Args)]
pub(crate) struct DetectArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Show how telling the marks of each format are
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// The shape of the result
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlainFormat {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct LintArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// The dialect to check for; may be given several times
    ///
    /// openai-strict, anthropic-strict, gemini, gemini-json-schema, kimi, deepseek-strict, bedrock,
    /// cohere.
    #[arg(long = "for", value_name = "DIALECT", required = true)]
    pub(crate) dialects: Vec<Dialect>,

    /// Rewrite what can be rewritten without changing its meaning, and write the definitions
    #[arg(long)]
    pub(crate) fix: bool,

    /// With --fix: write the definitions to this file instead of standard output
    #[arg(long, value_name = "PATH", requires = "fix")]
    pub(crate) output: Option<PathBuf>,

    /// What a provider ignores is a finding too: exit with 1
    #[arg(long)]
    pub(crate) strict: bool,

    /// The shape of the report
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    #[default]
    Text,
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// JUnit XML, for test reports
    Junit,
    /// GitHub workflow commands
    Github,
    Markdown,
}

/// Puts the `canon` word in when the binary is called by the name of the program it replaces.
pub(crate) fn with_alias(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    let called = args
        .first()
        .map(PathBuf::from)
        .and_then(|path| path.file_stem().map(OsString::from));
    let is_toolcanon = called.is_some_and(|name| name == "toolcanon" || name == "aumai-toolcanon");
    let asks_for_itself = args
        .get(1)
        .is_some_and(|word| word == "--version" || word == "-V");
    if is_toolcanon && !asks_for_itself {
        args.insert(1, "canon".into());
    }
    args
}

fn source(word: &str) -> Result<Source, toolwarden_model::UnknownFormat> {
    if word == "auto" {
        return Ok(Source::Detect);
    }
    word.parse::<Family>()
        .map(Source::Family)
        .or_else(|_| word.parse::<Format>().map(Source::Format))
}

impl Color {
    pub(crate) fn apply(self) {
        let choice = match self {
            Self::Auto => return,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

impl InputArgs {
    /// The error for inputs without a single definition.
    pub(crate) fn nothing_found(&self) -> CliError {
        let places: Vec<String> = self
            .paths()
            .map(|path| path.display().to_string())
            .collect();
        CliError::NothingToLint {
            places: places.join(", "),
        }
    }

    /// Everything named as input, in the order of the command line.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.input.iter().chain(&self.files).map(PathBuf::as_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_old_program_name_stands_for_the_canon_word() {
        let words = |args: &[&str]| with_alias(args.iter().map(OsString::from));
        assert_eq!(
            words(&["/usr/bin/toolcanon", "detect"]),
            ["/usr/bin/toolcanon", "canon", "detect"]
        );
        assert_eq!(
            words(&["toolcanon", "--version"]),
            ["toolcanon", "--version"]
        );
        assert_eq!(words(&["toolwarden", "canon"]), ["toolwarden", "canon"]);
    }
}
