//! Writes records in one of the formats, as they come.

use std::path::Path;

use toolwarden_store::RecordRow;

use super::lines::{Columns, Line};
use super::{csv, record};
use crate::args::RecordFormat;
use crate::error::CliError;
use crate::output::{Output, print_part};

/// As many lines are held to make columns of them.
const HELD: usize = 500;

pub(super) struct Sheet {
    way: Way,
    written: u64,
}

enum Way {
    Lines { held: Vec<Line>, columns: Columns },
    Json(Output),
    Ndjson(Output),
    Csv(Output),
}

impl Sheet {
    /// For standard output, or a file. Lines for people are always shown.
    pub(super) fn open(format: RecordFormat, path: Option<&Path>) -> Result<Self, CliError> {
        let way = match format {
            RecordFormat::Text => Way::Lines {
                held: Vec::new(),
                columns: Columns::default(),
            },
            RecordFormat::Json => {
                let mut out = Output::open(path)?;
                out.write("{\"schema\": \"toolwarden/audit/records/v1\", \"records\": [")?;
                Way::Json(out)
            }
            RecordFormat::Ndjson => Way::Ndjson(Output::open(path)?),
            RecordFormat::Csv => {
                let mut out = Output::open(path)?;
                out.write(csv::HEADER)?;
                Way::Csv(out)
            }
        };
        Ok(Self { way, written: 0 })
    }

    pub(super) fn push(&mut self, row: &RecordRow<'_>) -> Result<(), CliError> {
        let first = self.written == 0;
        self.written += 1;
        match &mut self.way {
            Way::Lines { held, .. } => {
                held.push(Line::of(row));
                if held.len() >= HELD {
                    self.flush()?;
                }
                Ok(())
            }
            Way::Json(out) => {
                out.write(if first { "\n" } else { ",\n" })?;
                out.write(&line(row)?)
            }
            Way::Ndjson(out) => out.write(&(line(row)? + "\n")),
            Way::Csv(out) => out.write(&csv::line(row)),
        }
    }

    /// Shows what is held back.
    pub(super) fn flush(&mut self) -> Result<(), CliError> {
        match &mut self.way {
            Way::Lines { held, columns } => {
                let text = columns.rendered(held);
                held.clear();
                print_part(&text)
            }
            Way::Json(out) | Way::Ndjson(out) | Way::Csv(out) => out.flush(),
        }
    }

    /// Ends it and tells how many records there were.
    pub(super) fn finish(mut self) -> Result<u64, CliError> {
        self.flush()?;
        match self.way {
            Way::Lines { .. } => {}
            Way::Json(mut out) => {
                out.write("\n]}\n")?;
                out.finish()?;
            }
            Way::Ndjson(out) | Way::Csv(out) => out.finish()?,
        }
        Ok(self.written)
    }
}

fn line(row: &RecordRow<'_>) -> Result<String, CliError> {
    record::line(row).map_err(|error| CliError::Write {
        place: format!("record {}", row.seq).into(),
        source: error.into(),
    })
}
