//! What is said on standard error while a result is made.

use anstream::eprintln;
use serde::Serialize;
use toolwarden_canon::{Edit, Kind, Warning};

use crate::input::ReadTool;
use crate::style;

/// Says a line to whoever runs the command.
pub(crate) fn say(line: &str) {
    eprintln!("{}", toolwarden_mcp::masked(line));
}

/// Says why a part of the work could not be done, while the rest goes on.
pub(crate) fn say_error(error: &crate::error::CliError) {
    error.print();
}

/// Prints the warnings of one tool, with its place where there are others.
pub(crate) fn warn(read: &ReadTool<'_>) {
    let (warning, place) = (style::WARNING, style::PLACE);
    for text in read
        .found
        .warnings
        .iter()
        .map(|warning| style::visible(&warning.to_string()))
    {
        if read.alone {
            eprintln!("{warning}Warning{warning:#}: {text}");
        } else {
            let (file, pointer) = (read.place.file_and_line(), &read.found.pointer);
            eprintln!("{warning}Warning{warning:#}: {place}{file} {pointer}{place:#}: {text}");
        }
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
    let path = style::visible(edit.path.as_str());
    let what = match edit.kind {
        Kind::Loss(toolwarden_canon::Severity::Semantic) => {
            format!("{error}lost{error:#} (semantic) {path}")
        }
        Kind::Loss(toolwarden_canon::Severity::Metadata) => {
            format!("{warning}lost{warning:#} (metadata) {path}")
        }
        Kind::Change => format!("changed {path}"),
    };
    format!("{what}{dim}: {}{dim:#}", style::visible(&edit.reason))
}
