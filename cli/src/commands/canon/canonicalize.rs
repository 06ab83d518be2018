use serde::Serialize;
use toolwarden_model::Tool;

use crate::args::{CanonicalizeArgs, DocumentFormat};
use crate::commands::talk::{WarningEntry, say, warn, warning_entries};
use crate::error::CliError;
use crate::input::each_tool;
use crate::output::{Documents, Envelope, Output, Verdict};

#[derive(Serialize)]
struct Entry<'t> {
    file: String,
    pointer: &'t str,
    tool: &'t Tool,
    warnings: Vec<WarningEntry>,
}

pub(super) fn run(args: &CanonicalizeArgs) -> Result<Verdict, CliError> {
    let out = Output::open(args.output.output.as_deref())?;
    let mut warned = false;
    let count = if args.output.format == DocumentFormat::Json {
        let mut envelope = Envelope::open(out, "toolwarden/canon/canonicalize/v1", &[], "tools")?;
        each_tool(&args.input, |read| {
            warned |= !read.found.warnings.is_empty();
            envelope.push(&Entry {
                file: read.place.file.display().to_string(),
                pointer: read.found.pointer.as_str(),
                tool: &read.found.tool,
                warnings: warning_entries(&read.found.warnings),
            })
        })?;
        envelope.finish(&[])?
    } else {
        let mut documents = Documents::new(out, args.output.format);
        each_tool(&args.input, |read| {
            warned |= !read.found.warnings.is_empty();
            warn(&read);
            documents.push(&read.found.tool, read.alone)
        })?;
        documents.finish()?
    };
    if count == 0 {
        say("Warning: no tool definition found.");
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
        Verdict::Finding
    } else {
        Verdict::Fine
    })
}

/// Says on standard output where the result went.
pub(super) fn announce(line: &str) -> Result<(), CliError> {
    let mut out = Output::open(None)?;
    out.write(&format!("{line}\n"))?;
    out.finish()
}
