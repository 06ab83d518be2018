use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use thiserror::Error;
use toolwarden_canon::{
    Dialect, DialectFacts, DialectTable, EmitTarget, InvalidTable, UnknownDialect,
};

use super::{InputArgs, OutputArgs, PlainFormat, ReportFormat};

#[derive(Debug, Subcommand)]
pub(crate) enum CanonCommand {
    /// Convert definitions to the canonical form
    ///
    /// Reads a single definition, an array, an object with `tools`, a JSON-RPC tools/list
    /// response, a request body, JSON Lines, a map from names to definitions, or an OpenAPI
    /// document. One definition gives one object, anything else an array.
    ///
    /// Prints a warning to standard error for each oddity of a definition. Warnings do not change
    /// the exit code; with --strict they are findings.
    #[command(after_help = "\
Examples:
  toolwarden canon canonicalize --input tool.json
  toolwarden canon canonicalize --input tool.json --source-format anthropic
  toolwarden canon canonicalize --input tool.json --output canonical.json
  curl -s localhost:8000/openapi.json | toolwarden canon canonicalize -")]
    Canonicalize(CanonicalizeArgs),

    /// Write definitions in a provider's format
    ///
    /// Reads canonical tools, or definitions in any format. Writes the definitions to standard
    /// output, and everything that was lost or changed to standard error.
    #[command(after_help = "\
Examples:
  toolwarden canon emit --input canonical.json --target mcp
  toolwarden canon emit --target openai-strict --deny-loss semantic tools.json
  toolwarden canon emit --target json-schema --draft 2020-12 --tool read_file tools.json
  toolwarden canon emit --target anthropic --format json tools.json | jq '.tools[].losses'")]
    Emit(EmitArgs),

    /// Detect the format of definitions
    #[command(after_help = "\
Examples:
  toolwarden canon detect --input tool.json
  toolwarden canon detect --input tool.json --verbose
  toolwarden canon detect --format json tools/*.json")]
    Detect(DetectArgs),

    /// Find mistakes in schemas, and what a provider would reject or ignore
    ///
    /// Checks every schema against JSON Schema itself: keywords, references, patterns and names in
    /// `required`. With --for, also checks schemas, names and sizes against dated tables of what each
    /// provider accepts, without asking the provider; a table may also be a file that
    /// `toolwarden probe dialect` saved. With --fix, definitions are rewritten where that keeps their
    /// meaning, and written to standard output or --output.
    #[command(after_help = "\
Examples:
  toolwarden canon lint tools.json
  toolwarden canon lint --for kimi tools.json
  toolwarden canon lint --for openai-strict --for gemini --format github tools/*.json
  toolwarden canon lint --for deepseek-strict --fix --output fixed.json tools.json
  toolwarden canon lint --for kimi.dialect.json tools.json")]
    Lint(LintArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CanonicalizeArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Treat warnings as findings: exit with 1
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
    pub(crate) target: EmitTarget,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Convert a json-schema document to this draft
    ///
    /// Without it, a schema keeps the draft it names in `$schema`, and one that names none becomes
    /// draft 2019-09.
    #[arg(long, value_enum, value_name = "DRAFT")]
    pub(crate) draft: Option<DraftArg>,

    /// Exit with 1 on a loss of this kind
    #[arg(long, value_enum, value_name = "LOSS")]
    pub(crate) deny_loss: Option<DeniedLoss>,

    /// Treat warnings as findings: exit with 1
    #[arg(long)]
    pub(crate) strict: bool,

    /// Report every loss and change of every tool
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DraftArg {
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

    /// Show a confidence score for each format
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
pub(crate) struct LintArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// The dialect to check for; may be given several times
    ///
    /// openai-strict, anthropic-strict, gemini, gemini-json-schema, kimi, deepseek-strict, bedrock,
    /// cohere; or a file that `toolwarden probe dialect --output` wrote.
    #[arg(long = "for", value_name = "DIALECT")]
    pub(crate) dialects: Vec<LintDialect>,

    /// Apply every rewrite that keeps the meaning, and write the definitions
    #[arg(long, requires = "dialects")]
    pub(crate) fix: bool,

    /// With --fix: write the definitions to this file instead of standard output
    #[arg(long, value_name = "PATH", requires = "fix")]
    pub(crate) output: Option<PathBuf>,

    /// Treat keywords that a provider ignores as findings: exit with 1
    #[arg(long)]
    pub(crate) strict: bool,

    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,
}

/// What tools are checked for.
#[derive(Clone, Debug)]
pub(crate) enum LintDialect {
    /// A dialect that is shipped.
    Known(Dialect),
    /// What a provider was found to do.
    Probed(Arc<DialectTable>),
}

/// Why a word names nothing to check for.
#[derive(Debug, Error)]
pub(crate) enum InvalidLintDialect {
    #[error(transparent)]
    Unknown(UnknownDialect),
    #[error("cannot read the file: {0}")]
    Read(io::Error),
    #[error("not a dialect table: {0}")]
    Table(InvalidTable),
}

impl LintDialect {
    pub(crate) fn facts(&self) -> &DialectFacts {
        match self {
            Self::Known(dialect) => dialect.facts(),
            Self::Probed(table) => &table.facts,
        }
    }
}

impl FromStr for LintDialect {
    type Err = InvalidLintDialect;

    /// A known word is a dialect; what looks like a path, or is one, is a file.
    fn from_str(word: &str) -> Result<Self, InvalidLintDialect> {
        let unknown = match word.parse() {
            Ok(dialect) => return Ok(Self::Known(dialect)),
            Err(unknown) => unknown,
        };
        let path = Path::new(word);
        let is_path = word.contains(['/', '.', std::path::MAIN_SEPARATOR]) || path.exists();
        if !is_path {
            return Err(InvalidLintDialect::Unknown(unknown));
        }
        let text = toolwarden_files::read_to_string(path).map_err(InvalidLintDialect::Read)?;
        let table = DialectTable::read(&text).map_err(InvalidLintDialect::Table)?;
        Ok(Self::Probed(Arc::new(table)))
    }
}
