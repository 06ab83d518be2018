use std::collections::BTreeMap;

use serde::Serialize;
use toolwarden_canon::Detection;
use toolwarden_model::{Format, FormatFamily};

use crate::args::{DetectArgs, PlainFormat};
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::{print_status, print_unread_members};
use crate::error::CliError;
use crate::input::each_tool;
use crate::output::{ListDocumentWriter, OutputFile};
use crate::style;

/// The families the toolcanon document knows, in its order.
const ALWAYS_SHOWN: [&str; 5] = ["openai", "anthropic", "mcp", "langchain", "raw"];

#[derive(Serialize)]
struct Entry<'t> {
    file: String,
    pointer: &'t str,
    name: &'t str,
    source_format: &'static str,
    format: &'static str,
    scores: BTreeMap<&'static str, f64>,
    ambiguous_with: Vec<&'static str>,
}

pub(super) fn run(args: &DetectArgs) -> Result<CommandOutcome, CliError> {
    if args.format == PlainFormat::Json {
        return report_json(args);
    }
    let mut out = OutputFile::open(None)?;
    let mut counts: BTreeMap<FormatFamily, usize> = BTreeMap::new();
    let mut only = None;
    let facts = each_tool(&args.input, |read| {
        let detection = read.canonicalized.detection;
        *counts.entry(detection.format.family()).or_default() += 1;
        if args.verbose && !read.is_only {
            let (file, pointer) = (read.location.file.display(), &read.canonicalized.pointer);
            out.write(&format!(
                "{file} {pointer} {}\n",
                style::escape_controls(&read.canonicalized.tool.name)
            ))?;
            out.write(&describe(&detection, true))?;
            out.write("\n")?;
        }
        only = Some(detection).filter(|_| read.is_only);
        Ok(())
    })?;
    print_unread_members(&facts);
    match (&only, counts.len()) {
        (Some(detection), _) => out.write(&describe(detection, args.verbose))?,
        (None, 0) => print_status("Warning: no tool definition found."),
        (None, _) => {
            for (family, count) in &counts {
                let tools = if *count == 1 { "tool" } else { "tools" };
                out.write(&format!("Detected format: {family} ({count} {tools})\n"))?;
            }
        }
    }
    out.finish()?;
    Ok(CommandOutcome::Pass)
}

fn describe(detection: &Detection, verbose: bool) -> String {
    let mut text = format!("Detected format: {}\n", detection.format.family());
    if !detection.ambiguous_with.is_empty() {
        let others: Vec<&str> = detection
            .ambiguous_with
            .iter()
            .map(|format| format.id())
            .collect();
        text.push_str(&format!(
            "Ambiguous: {} could also be {}\n",
            detection.format,
            others.join(", ")
        ));
    }
    if !verbose {
        return text;
    }
    text.push_str("\nConfidence scores:\n");
    for family in families(detection) {
        let score = detection.family_score(family).percent();
        text.push_str(&format!("  {:12}: {score:>3}%\n", family.as_str()));
    }
    text.push_str(&format!("\nExact format: {}\n", detection.format));
    text
}

/// The families to show: those of the document, then others whose marks are there.
fn families(detection: &Detection) -> Vec<FormatFamily> {
    let mut families: Vec<FormatFamily> = ALWAYS_SHOWN
        .iter()
        .filter_map(|word| word.parse().ok())
        .collect();
    for (format, _) in &detection.scores {
        if !families.contains(&format.family()) {
            families.push(format.family());
        }
    }
    families
}

fn report_json(args: &DetectArgs) -> Result<CommandOutcome, CliError> {
    let mut envelope = ListDocumentWriter::open(
        OutputFile::open(None)?,
        "toolwarden/canon/detect/v1",
        &[],
        "tools",
    )?;
    let facts = each_tool(&args.input, |read| {
        let detection = &read.canonicalized.detection;
        envelope.push(&Entry {
            file: read.location.file.display().to_string(),
            pointer: read.canonicalized.pointer.as_str(),
            name: &read.canonicalized.tool.name,
            source_format: detection.format.family().as_str(),
            format: detection.format.id(),
            scores: detection
                .scores
                .iter()
                .map(|(format, score)| (format.id(), score.fraction()))
                .collect(),
            ambiguous_with: detection
                .ambiguous_with
                .iter()
                .map(|format: &Format| format.id())
                .collect(),
        })
    })?;
    print_unread_members(&facts);
    envelope.finish(&[])?;
    Ok(CommandOutcome::Pass)
}
