//! Records as lines for people, in columns.

use anstyle::Style;
use serde_json::{Map, Value};
use toolwarden_store::RecordRow;

use super::record_json::time;
use crate::style::{self, escape_controls};

/// The most characters that are shown of a name, and of a reason.
const MAX_NAME_CHARS: usize = 48;
const MAX_REASON_CHARS: usize = 400;

/// One record, ready to be shown.
pub(super) struct RecordLine {
    seq: String,
    at: String,
    word: String,
    colour: Style,
    tool: String,
    principal: String,
    code: String,
    reason: String,
}

impl RecordLine {
    pub(super) fn from_row(row: &RecordRow<'_>) -> Self {
        let (word, colour) = match (row.allowed, row.kind) {
            (Some(true), _) => ("allow", style::SUCCESS),
            (Some(false), _) => ("deny", style::ERROR),
            (None, "escalation") => (row.kind, style::WARNING),
            (None, kind) => (kind, style::DIM),
        };
        Self {
            seq: row.seq.to_string(),
            at: time(row.at_ms),
            word: name(Some(word)),
            colour,
            tool: name(row.tool),
            principal: name(row.principal),
            code: name(Some(row.code)),
            reason: truncate(&escape_controls(&reason(row)), MAX_REASON_CHARS),
        }
    }
}

/// How wide columns are; they only ever grow.
#[derive(Default)]
pub(super) struct ColumnWidths {
    seq: usize,
    word: usize,
    tool: usize,
    principal: usize,
    code: usize,
}

impl ColumnWidths {
    /// Lines below each other, and below those before.
    pub(super) fn render(&mut self, lines: &[RecordLine]) -> String {
        for line in lines {
            let grow = |width: &mut usize, text: &str| *width = (*width).max(text.chars().count());
            grow(&mut self.seq, &line.seq);
            grow(&mut self.word, &line.word);
            grow(&mut self.tool, &line.tool);
            grow(&mut self.principal, &line.principal);
            grow(&mut self.code, &line.code);
        }
        lines.iter().map(|line| self.line(line)).collect()
    }

    fn line(&self, line: &RecordLine) -> String {
        let (dim, colour) = (style::DIM, line.colour);
        let told = format!(
            "{dim}{:>seq$} {}{dim:#} {colour}{:<word$}{colour:#} {:<tool$} {:<principal$} {:<code$} {}",
            line.seq,
            line.at,
            line.word,
            line.tool,
            line.principal,
            line.code,
            line.reason,
            seq = self.seq,
            word = self.word,
            tool = self.tool,
            principal = self.principal,
            code = self.code,
        );
        told.trim_end().to_owned() + "\n"
    }
}

/// Why it was so, or what else a record says, in one line.
pub(super) fn reason(row: &RecordRow<'_>) -> String {
    let body: Map<String, Value> = serde_json::from_str(row.body).unwrap_or_default();
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    if let Some(reason) = text("reason").or_else(|| text("error")) {
        return reason.to_owned();
    }
    match row.kind {
        "transition" => format!(
            "{} -> {}",
            text("from").unwrap_or_default(),
            text("to").unwrap_or_default()
        ),
        "checkpoint" => match body.get("removed_through") {
            Some(through) => format!("records up to {through} were removed"),
            None => String::new(),
        },
        "outcome" => match body.get("pointers") {
            Some(places) => format!("the result does not fit at {places}"),
            None => String::new(),
        },
        _ => {
            let members = body.iter().filter(|(key, _)| *key != "id");
            let members: Vec<String> = members.map(|(key, it)| format!("{key}={it}")).collect();
            members.join(" ")
        }
    }
}

/// A name that cannot be taken for several columns or lines.
pub(super) fn name(text: Option<&str>) -> String {
    let Some(text) = text else {
        return "-".to_owned();
    };
    let shown = truncate(&escape_controls(text), MAX_NAME_CHARS);
    if shown.is_empty() || shown == "-" || shown.contains(|c: char| c.is_whitespace() || c == '"') {
        return format!("\"{shown}\"");
    }
    shown
}

fn truncate(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned() + "…",
        None => text.to_owned(),
    }
}
