use std::path::Path;

use serde_json::Value;
use toolwarden_drift::{InvalidCall, RecordedCall};
use toolwarden_watch::SampleCall;

use crate::error::CliError;

/// Reads recorded calls, one per line.
pub(super) fn read(file: &Path) -> Result<Vec<RecordedCall>, CliError> {
    let failed = |source| CliError::Read {
        place: file.to_owned(),
        source,
    };
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin()).map_err(failed)?
    } else {
        toolwarden_files::read_to_string(file).map_err(failed)?
    };
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            parse_call(line).map_err(|source| CliError::Call {
                place: file.to_owned(),
                line: index + 1,
                source,
            })
        })
        .collect()
}

/// The calls of a file, to make to a live server.
pub(super) fn live_calls(file: Option<&Path>) -> Result<Vec<SampleCall>, CliError> {
    let Some(file) = file else {
        return Ok(Vec::new());
    };
    let calls = read(file)?.into_iter().enumerate();
    calls
        .map(|(index, call)| {
            let tool = call.tool.ok_or_else(|| CliError::UnnamedTool {
                place: file.to_owned(),
                index: index + 1,
            })?;
            Ok(SampleCall {
                tool,
                arguments: call.arguments,
            })
        })
        .collect()
}

fn parse_call(line: &str) -> Result<RecordedCall, InvalidCall> {
    let record: Value = serde_json::from_str(line).map_err(|_| InvalidCall)?;
    RecordedCall::read(&record)
}
