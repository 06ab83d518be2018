//! What tools returned, from files.

use std::collections::BTreeSet;
use std::io::{self, BufReader, Read};
use std::path::Path;

use serde_json::Value;

use crate::commands::progress::print_status;
use crate::error::CliError;
use crate::input::json_files;

type ResultHandler<'t> = dyn FnMut(&str, &Value) -> Result<(), CliError> + 't;

/// Hands over every result of a file or of the files of a directory, with its tool; returns how many.
///
/// `only` is the tool that results without a name belong to; otherwise the name of the file says it.
pub(super) fn read(
    path: &Path,
    only: Option<&str>,
    tools: &BTreeSet<String>,
    take: &mut ResultHandler<'_>,
) -> Result<usize, CliError> {
    let mut strangers = 0;
    let mut stranger = None;
    let mut taken = 0;
    let take: &mut ResultHandler<'_> = &mut |name, result| {
        taken += 1;
        take(name, result)
    };
    if path.is_dir() {
        for file in json_files(path)? {
            let stem = file.file_stem().map(|it| it.to_string_lossy().into_owned());
            strangers += read_file(&file, stem.as_deref(), tools, take, &mut stranger)?;
        }
    } else {
        let stem = path.file_stem().map(|it| it.to_string_lossy().into_owned());
        let stem = stem.filter(|stem| tools.contains(stem));
        strangers += read_file(path, only.or(stem.as_deref()), tools, take, &mut stranger)?;
    }
    if let (0, Some(name)) = (taken, &stranger) {
        return Err(CliError::UnknownResultTool {
            place: path.to_owned(),
            name: name.clone(),
            suggestion: toolwarden_model::did_you_mean(name, tools.iter().map(String::as_str)),
        });
    }
    if strangers == 0 && taken == 0 {
        print_status(&format!("{}: contains no results", path.display()));
    }
    if strangers > 0 {
        let results = if strangers == 1 {
            "1 result is of a tool that was".to_owned()
        } else {
            format!("{strangers} results are of tools that were")
        };
        print_status(&format!("{}: {results} not checked", path.display()));
    }
    Ok(taken)
}

fn read_file(
    path: &Path,
    tool: Option<&str>,
    tools: &BTreeSet<String>,
    take: &mut ResultHandler<'_>,
    stranger: &mut Option<String>,
) -> Result<usize, CliError> {
    let failed = |source| CliError::Read {
        place: path.to_owned(),
        source,
    };
    let reader: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(toolwarden_files::open(path).map_err(failed)?)
    };
    let reader = BufReader::with_capacity(1 << 16, reader);
    let values = serde_json::Deserializer::from_reader(reader).into_iter::<Value>();
    let mut strangers = 0;
    let mut index = 0;
    let mut see = |value: &Value, index: usize| -> Result<usize, CliError> {
        let (named, result) = tool_and_result(value);
        let Some(name) = named.or(tool) else {
            return Err(CliError::UnnamedTool {
                place: path.to_owned(),
                index,
            });
        };
        if !tools.contains(name) {
            stranger.get_or_insert_with(|| name.to_owned());
            return Ok(1);
        }
        take(name, result)?;
        Ok(0)
    };
    let mut first: Option<Value> = None;
    for value in values {
        let value = value.map_err(|error| CliError::Result {
            place: path.to_owned(),
            source: error,
        })?;
        index += 1;
        if index == 1 {
            first = Some(value);
            continue;
        }
        if let Some(first) = first.take() {
            strangers += see(&first, 1)?;
        }
        strangers += see(&value, index)?;
    }
    match first {
        // A document that is a list holds results; a tool that returns lists has one per line.
        Some(Value::Array(results)) => {
            for (index, result) in results.iter().enumerate() {
                strangers += see(result, index + 1)?;
            }
        }
        Some(result) => strangers += see(&result, 1)?,
        None => {}
    }
    Ok(strangers)
}

/// The tool a record names and its result, or the whole as a result.
fn tool_and_result(value: &Value) -> (Option<&str>, &Value) {
    let named = value.get("tool").and_then(Value::as_str);
    let held = ["result", "response", "output"];
    let result = held.iter().find_map(|key| value.get(key));
    match (named, result) {
        (Some(name), Some(result)) => (Some(name), result),
        _ => (None, value),
    }
}
