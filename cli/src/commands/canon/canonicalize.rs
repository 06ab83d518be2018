use serde::Serialize;
use toolwarden_model::Tool;

use crate::args::{CanonicalizeArgs, DocumentFormat};
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::{
    WarningEntry, print_status, print_unread_members, print_warnings, warning_entries,
};
use crate::error::CliError;
use crate::input::each_tool;
use crate::output::{DefinitionWriter, ListDocumentWriter, OutputFile};

#[derive(Serialize)]
struct Entry<'t> {
    file: String,
    pointer: &'t str,
    tool: &'t Tool,
    warnings: Vec<WarningEntry>,
}

pub(super) fn run(args: &CanonicalizeArgs) -> Result<CommandOutcome, CliError> {
    let out = OutputFile::open(args.output.output.as_deref())?;
    let mut warned = false;
    let count = if args.output.format == DocumentFormat::Json {
        let mut envelope =
            ListDocumentWriter::open(out, "toolwarden/canon/canonicalize/v1", &[], "tools")?;
        let facts = each_tool(&args.input, |read| {
            warned |= !read.canonicalized.warnings.is_empty();
            envelope.push(&Entry {
                file: read.location.file.display().to_string(),
                pointer: read.canonicalized.pointer.as_str(),
                tool: &read.canonicalized.tool,
                warnings: warning_entries(&read.canonicalized.warnings),
            })
        })?;
        print_unread_members(&facts);
        envelope.finish(&[])?
    } else {
        let mut documents = DefinitionWriter::new(out, args.output.format);
        let facts = each_tool(&args.input, |read| {
            warned |= !read.canonicalized.warnings.is_empty();
            print_warnings(&read);
            documents.push(&read.canonicalized.tool, read.is_only)
        })?;
        print_unread_members(&facts);
        documents.finish()?
    };
    if count == 0 {
        print_status("Warning: no tool definition found.");
    }
    if let Some(path) = &args.output.output {
        let what = if count == 1 {
            "Canonical tool".to_owned()
        } else {
            format!("{count} canonical tools")
        };
        announce(&format!("{what} written to {}", path.display()))?;
    }
    Ok(if warned && args.strict {
        CommandOutcome::Finding
    } else {
        CommandOutcome::Pass
    })
}

/// Says on standard output where the result went.
pub(super) fn announce(line: &str) -> Result<(), CliError> {
    let mut out = OutputFile::open(None)?;
    out.write(&format!("{line}\n"))?;
    out.finish()
}
