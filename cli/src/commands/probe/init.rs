//! Drafts a suite from definitions, servers, a lock file and recorded calls.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use toolwarden_canon::{FormatChoice, canonicalize};
use toolwarden_drift::RecordedCall;
use toolwarden_guard::{AuditRules, REDACTED, Redaction};
use toolwarden_mcp::{ConnectionLimits, Endpoint, McpClient, McpError};
use toolwarden_model::{Tool, did_you_mean};
use toolwarden_probe::{CallExample, draft_suite, infer_tools};
use toolwarden_watch::{LockFile, is_definition, server_name};

use super::live_servers::runtime;
use super::write_file;
use crate::args::{InputArgs, ProbeInitArgs};
use crate::command_outcome::CommandOutcome;
use crate::commands::progress::print_status;
use crate::error::{CliError, ProbeError};
use crate::input::each_tool;
use crate::output::print_text;
use crate::style::escape_controls;

pub(super) fn run(args: &ProbeInitArgs) -> Result<CommandOutcome, CliError> {
    let exists = args.output.as_ref().filter(|it| it.exists());
    if let Some(path) = exists.filter(|_| !args.force) {
        return Err(ProbeError::Exists { path: path.clone() }.into());
    }
    let mut origins = Vec::new();
    let mut tools = Vec::new();
    if !args.files.is_empty() {
        tools.extend(tools_of_files(args)?);
        origins.extend(args.files.iter().map(|it| it.display().to_string()));
    }
    for endpoint in endpoints(args)? {
        // Its command line and address may hold secrets; its name does not.
        origins.push(format!("the server `{}`", server_name(&endpoint)));
        tools.extend(tools_of_server(&endpoint, args.timeout)?);
    }
    if let Some(path) = &args.lock {
        origins.push(path.display().to_string());
        tools.extend(tools_of_lock(path)?);
    }
    let calls = recorded_calls(&args.calls)?;
    let no_source = args.files.is_empty() && args.mcp_command.is_empty() && args.mcp_url.is_empty();
    if no_source && args.lock.is_none() {
        if args.calls.is_empty() {
            return Err(CliError::NoSource);
        }
        tools = infer_tools(&calls);
    }
    origins.extend(args.calls.iter().map(|it| it.display().to_string()));
    retain_requested(&mut tools, &args.tools)?;
    if tools.is_empty() {
        return Err(CliError::NoTools {
            places: origins.join(", "),
        });
    }
    let draft =
        draft_suite(&args.name, &origins.join(", "), &tools, &calls).map_err(ProbeError::File)?;
    for (name, reason) in &draft.skipped {
        print_status(&format!(
            "left out {}: {}",
            escape_controls(name),
            escape_controls(reason)
        ));
    }
    match &args.output {
        Some(path) => write_file::write_file(path, &draft.text)?,
        None => print_text(&draft.text)?,
    }
    print_status(&format!(
        "{} cases for {} tools; each repetition sends {} requests to each provider in each mode",
        draft.cases, draft.tools, draft.requests
    ));
    Ok(CommandOutcome::Pass)
}

fn tools_of_files(args: &ProbeInitArgs) -> Result<Vec<Tool>, CliError> {
    let input = InputArgs {
        files: args.files.clone(),
        input: Vec::new(),
        source_format: args.source_format,
        tools: Vec::new(),
    };
    let mut tools = Vec::new();
    each_tool(&input, |read| {
        tools.push(read.canonicalized.tool);
        Ok(())
    })?;
    tools.retain(is_definition);
    Ok(tools)
}

fn endpoints(args: &ProbeInitArgs) -> Result<Vec<Endpoint>, CliError> {
    let mut endpoints = Vec::new();
    for line in &args.mcp_command {
        // Typed by the user, who would start it in the same shell.
        endpoints.push(Endpoint::command_line(line)?.with_whole_environment());
    }
    for url in &args.mcp_url {
        endpoints.push(Endpoint::url(url)?);
    }
    for endpoint in &endpoints {
        endpoint.validate()?;
    }
    Ok(endpoints)
}

fn tools_of_server(endpoint: &Endpoint, seconds: u64) -> Result<Vec<Tool>, CliError> {
    let timeout = Duration::from_secs(seconds);
    let limits = ConnectionLimits {
        start: timeout,
        request: timeout,
        total: timeout,
        ..ConnectionLimits::default()
    };
    let listed = runtime()?.block_on(async {
        let client = McpClient::connect(endpoint, &limits).await?;
        let listed = client.list_tools().await;
        client.close().await;
        listed
    });
    let listed = listed.map_err(|source: McpError| ProbeError::Server {
        server: server_name(endpoint),
        source: Box::new(source),
    })?;
    let texts = listed.tools.iter().map(|it| it.get());
    Ok(texts.flat_map(tools_of_text).collect())
}

fn tools_of_lock(path: &Path) -> Result<Vec<Tool>, CliError> {
    let lock = LockFile::read(path).map_err(|source| CliError::Lock {
        path: path.to_owned(),
        source,
    })?;
    let locked = lock.servers.values().flat_map(|it| it.tools.values());
    Ok(locked.flat_map(|it| tools_of_text(&it.text)).collect())
}

/// The tool of a definition. A text that is not a definition has none.
fn tools_of_text(text: &str) -> Vec<Tool> {
    let read = toolwarden_model::json::parse(text).ok();
    let read = read.and_then(|it| canonicalize(it.value, FormatChoice::Detect).ok());
    let found = read.into_iter().flat_map(|it| it.tools);
    found.map(|it| it.tool).filter(is_definition).collect()
}

fn retain_requested(tools: &mut Vec<Tool>, wanted: &[String]) -> Result<(), CliError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let names = || tools.iter().map(|it| it.name.as_str());
    if let Some(missing) = wanted.iter().find(|it| !names().any(|name| name == **it)) {
        return Err(CliError::NoSuchTool {
            name: missing.clone(),
            suggestion: did_you_mean(missing, names()),
        });
    }
    tools.retain(|it| wanted.contains(&it.name));
    Ok(())
}

/// The calls of files, without those that hold a secret.
fn recorded_calls(files: &[PathBuf]) -> Result<Vec<CallExample>, CliError> {
    let redaction = Redaction::new(&AuditRules::default());
    let mut calls = Vec::new();
    let mut withheld = 0;
    for file in files {
        for (line, record) in records(file)? {
            let Some(call) = read_call(&record) else {
                return Err(CliError::Call {
                    place: file.clone(),
                    line,
                    source: toolwarden_drift::InvalidCall,
                });
            };
            let Some((tool, arguments)) = call else {
                continue;
            };
            let kept = redaction.redact(&arguments);
            match (kept.as_ref(), is_whole(kept.as_ref())) {
                (Value::Object(kept), true) => calls.push(CallExample {
                    tool,
                    arguments: kept.clone(),
                }),
                _ => withheld += 1,
            }
        }
    }
    if withheld > 0 {
        print_status(&format!(
            "{withheld} recorded calls hold redacted or shortened values and are not used"
        ));
    }
    Ok(calls)
}

/// The records of a file with their lines: one JSON object per line, or a document of `audit export`.
fn records(file: &Path) -> Result<Vec<(usize, Value)>, CliError> {
    let failed = |source| CliError::Read {
        place: file.to_owned(),
        source,
    };
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin()).map_err(failed)?
    } else {
        toolwarden_files::read_to_string(file).map_err(failed)?
    };
    if let Ok(Value::Object(mut document)) = serde_json::from_str(&text)
        && let Some(Value::Array(records)) = document.remove("records")
    {
        return Ok(records.into_iter().map(|it| (1, it)).collect());
    }
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            let record = serde_json::from_str(line).map_err(|_| CliError::Call {
                place: file.to_owned(),
                line: index + 1,
                source: toolwarden_drift::InvalidCall,
            })?;
            Ok((index + 1, record))
        })
        .collect()
}

/// The tool and the arguments of a record: `Some(None)` for a record of the audit log that is not an
/// allowed call, and `None` for a record that cannot be read.
fn read_call(record: &Value) -> Option<Option<(String, Value)>> {
    if let (Some(kind), Some(body)) = (record.get("kind"), record.get("body")) {
        let allowed = kind == "decision" && record.get("allowed") == Some(&Value::Bool(true));
        let tool = record.get("tool").and_then(Value::as_str);
        let arguments = body.get("arguments").filter(|it| it.is_object());
        let call = tool.map(str::to_owned).zip(arguments.cloned());
        return Some(call.filter(|_| allowed));
    }
    let call = RecordedCall::read(record).ok()?;
    Some(call.tool.map(|tool| (tool, call.arguments)))
}

/// Whether a record kept every value: no redaction, and no digest in the place of a long value.
fn is_whole(value: &Value) -> bool {
    match value {
        Value::String(text) => text != REDACTED && !text.contains("sha256:"),
        Value::Array(items) => items.iter().all(is_whole),
        Value::Object(members) => !is_digest(value) && members.values().all(is_whole),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

fn is_digest(value: &Value) -> bool {
    let digest = value.get("digest").and_then(Value::as_str);
    digest.is_some_and(|it| it.starts_with("sha256:"))
}
