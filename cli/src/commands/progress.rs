//! What is said on standard error while a result is made.

use anstream::eprintln;
use serde::Serialize;
use toolwarden_canon::{Edit, EditKind, Warning};

use crate::input::{InputListFacts, InputTool};
use crate::style;

/// Prints a line to standard error.
pub(crate) fn print_status(line: &str) {
    eprintln!("{}", toolwarden_mcp::mask_secrets(line));
}

/// Prints an error that does not end the command.
pub(crate) fn print_error(error: &crate::error::CliError) {
    error.print();
}

/// Prints the warnings of one tool, with its place where there are others.
pub(crate) fn print_warnings(read: &InputTool<'_>) {
    let (warning, place) = (style::WARNING, style::LOCATION);
    for text in read
        .canonicalized
        .warnings
        .iter()
        .map(|warning| style::escape_controls(&warning.to_string()))
    {
        if read.is_only {
            eprintln!("{warning}Warning{warning:#}: {text}");
        } else {
            let (file, pointer) = (read.location.file_and_line(), &read.canonicalized.pointer);
            eprintln!("{warning}Warning{warning:#}: {place}{file} {pointer}{place:#}: {text}");
        }
    }
}

/// Prints the members beside the tools that a command does not read.
pub(crate) fn print_unread_members(facts: &InputListFacts) {
    let warning = style::WARNING;
    for text in facts.unread_members() {
        let text = style::escape_controls(&text);
        print_status(&format!("{warning}Warning{warning:#}: {text}."));
    }
}

/// A warning in a JSON report.
#[derive(Debug, Serialize)]
pub(crate) struct WarningEntry {
    code: &'static str,
    message: String,
}

pub(crate) fn warning_entries(warnings: &[Warning]) -> Vec<WarningEntry> {
    warnings
        .iter()
        .map(|it| WarningEntry {
            code: it.code(),
            message: it.to_string(),
        })
        .collect()
}

/// An edit in one line: what happened where, and why.
pub(crate) fn edit_line(edit: &Edit) -> String {
    let (error, warning, dim) = (style::ERROR, style::WARNING, style::DIM);
    let path = style::escape_controls(edit.path.as_str());
    let what = match edit.kind {
        EditKind::Loss(toolwarden_canon::LossKind::Semantic) => {
            format!("{error}lost{error:#} (semantic) {path}")
        }
        EditKind::Loss(toolwarden_canon::LossKind::Metadata) => {
            format!("{warning}lost{warning:#} (metadata) {path}")
        }
        EditKind::Change => format!("changed {path}"),
    };
    format!(
        "{what}{dim}: {}{dim:#}",
        style::escape_controls(&edit.reason)
    )
}
