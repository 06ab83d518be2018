//! Writes records in one of the formats, as they come.

use std::path::Path;

use toolwarden_store::RecordRow;

use super::record_lines::{ColumnWidths, RecordLine};
use super::{csv, record_json};
use crate::args::RecordFormat;
use crate::error::CliError;
use crate::output::{OutputFile, print_chunk};

/// How many lines are buffered to align their columns.
const MAX_BUFFERED_LINES: usize = 500;

pub(super) struct RecordWriter {
    kind: WriterKind,
    written: u64,
}

enum WriterKind {
    Lines {
        held: Vec<RecordLine>,
        columns: ColumnWidths,
    },
    Json(OutputFile),
    Ndjson(OutputFile),
    Csv(OutputFile),
}

impl RecordWriter {
    /// For standard output, or a file. Lines for people are always shown.
    pub(super) fn open(format: RecordFormat, path: Option<&Path>) -> Result<Self, CliError> {
        let way = match format {
            RecordFormat::Text => WriterKind::Lines {
                held: Vec::new(),
                columns: ColumnWidths::default(),
            },
            RecordFormat::Json => {
                let mut out = OutputFile::open(path)?;
                out.write("{\"schema\": \"toolwarden/audit/records/v1\", \"records\": [")?;
                WriterKind::Json(out)
            }
            RecordFormat::Ndjson => WriterKind::Ndjson(OutputFile::open(path)?),
            RecordFormat::Csv => {
                let mut out = OutputFile::open(path)?;
                out.write(csv::HEADER)?;
                WriterKind::Csv(out)
            }
        };
        Ok(Self {
            kind: way,
            written: 0,
        })
    }

    pub(super) fn push(&mut self, row: &RecordRow<'_>) -> Result<(), CliError> {
        let first = self.written == 0;
        self.written += 1;
        match &mut self.kind {
            WriterKind::Lines { held, .. } => {
                held.push(RecordLine::from_row(row));
                if held.len() >= MAX_BUFFERED_LINES {
                    self.flush()?;
                }
                Ok(())
            }
            WriterKind::Json(out) => {
                out.write(if first { "\n" } else { ",\n" })?;
                out.write(&line(row)?)
            }
            WriterKind::Ndjson(out) => out.write(&(line(row)? + "\n")),
            WriterKind::Csv(out) => out.write(&csv::line(row)),
        }
    }

    /// Shows what is held back.
    pub(super) fn flush(&mut self) -> Result<(), CliError> {
        match &mut self.kind {
            WriterKind::Lines { held, columns } => {
                let text = columns.render(held);
                held.clear();
                print_chunk(&text)
            }
            WriterKind::Json(out) | WriterKind::Ndjson(out) | WriterKind::Csv(out) => out.flush(),
        }
    }

    /// Ends it and tells how many records there were.
    pub(super) fn finish(mut self) -> Result<u64, CliError> {
        self.flush()?;
        match self.kind {
            WriterKind::Lines { .. } => {}
            WriterKind::Json(mut out) => {
                out.write("\n]}\n")?;
                out.finish()?;
            }
            WriterKind::Ndjson(out) | WriterKind::Csv(out) => out.finish()?,
        }
        Ok(self.written)
    }
}

fn line(row: &RecordRow<'_>) -> Result<String, CliError> {
    record_json::line(row).map_err(|error| CliError::Write {
        place: format!("record {}", row.seq).into(),
        source: error.into(),
    })
}
