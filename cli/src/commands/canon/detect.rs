use std::collections::BTreeMap;

use serde::Serialize;
use toolwarden_canon::Detection;
use toolwarden_model::{Family, Format};

use crate::args::{DetectArgs, PlainFormat};
use crate::commands::talk::say;
use crate::error::CliError;
use crate::input::each_tool;
use crate::output::{Envelope, Output, Verdict};
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

pub(super) fn run(args: &DetectArgs) -> Result<Verdict, CliError> {
    if args.format == PlainFormat::Json {
        return report_json(args);
    }
    let mut out = Output::open(None)?;
    let mut counts: BTreeMap<Family, usize> = BTreeMap::new();
    let mut only = None;
    each_tool(&args.input, |read| {
        let detection = read.found.detection;
        *counts.entry(detection.format.family()).or_default() += 1;
        if args.verbose && !read.alone {
            let (file, pointer) = (read.place.file.display(), &read.found.pointer);
            out.write(&format!(
                "{file} {pointer} {}\n",
                style::visible(&read.found.tool.name)
            ))?;
            out.write(&describe(&detection, true))?;
            out.write("\n")?;
        }
        only = Some(detection).filter(|_| read.alone);
        Ok(())
    })?;
    match (&only, counts.len()) {
        (Some(detection), _) => out.write(&describe(detection, args.verbose))?,
        (None, 0) => say("Warning: no tool definition found."),
        (None, _) => {
            for (family, count) in &counts {
                let tools = if *count == 1 { "tool" } else { "tools" };
                out.write(&format!("Detected format: {family} ({count} {tools})\n"))?;
            }
        }
    }
    out.finish()?;
    Ok(Verdict::Fine)
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
fn families(detection: &Detection) -> Vec<Family> {
    let mut families: Vec<Family> = ALWAYS_SHOWN
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

fn report_json(args: &DetectArgs) -> Result<Verdict, CliError> {
    let mut envelope = Envelope::open(
        Output::open(None)?,
        "toolwarden/canon/detect/v1",
        &[],
        "tools",
    )?;
    each_tool(&args.input, |read| {
        let detection = &read.found.detection;
        envelope.push(&Entry {
            file: read.place.file.display().to_string(),
            pointer: read.found.pointer.as_str(),
            name: &read.found.tool.name,
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
    envelope.finish(&[])?;
    Ok(Verdict::Fine)
}
