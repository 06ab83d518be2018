//! Says why a principal sees a tool or does not.

mod offline;
mod online;

use serde_json::{Value, json};

use crate::args::{GatewayExplainArgs, PlainFormat};
use crate::ci_escape::escape_json;
use crate::command_outcome::CommandOutcome;
use crate::error::{CliError, GatewayCommandError};
use crate::output::print_text;
use crate::style::{self, escape_controls};

pub(in crate::commands) fn run(args: &GatewayExplainArgs) -> Result<CommandOutcome, CliError> {
    let mut explained = match &args.url {
        Some(url) => online::query_gateway(url, args)?,
        None => match args.online_option() {
            Some(option) => return Err(GatewayCommandError::NeedsUrl { option }.into()),
            None => offline::explain(args)?,
        },
    };
    let callable = explained.get("callable") == Some(&Value::Bool(true));
    match args.format {
        PlainFormat::Text => print_text(&text(&explained, args))?,
        PlainFormat::Json => {
            if let Value::Object(members) = &mut explained
                && !members.contains_key("schema")
            {
                members.shift_insert(0, "schema".to_owned(), json!("toolwarden/explain/v1"));
            }
            print_text(&(escape_json(format!("{explained:#}")) + "\n"))?;
        }
    }
    Ok(CommandOutcome::from_finding(!callable))
}

fn text(explained: &Value, args: &GatewayExplainArgs) -> String {
    let (good, bad, dim) = (style::SUCCESS, style::ERROR, style::DIM);
    let is = |key: &str| explained.get(key) == Some(&Value::Bool(true));
    let told = |keys: &[&str]| {
        let found = keys.iter().find_map(|key| explained.get(*key)?.as_str());
        found.map(escape_controls).unwrap_or_default()
    };
    let named = |given: &Option<String>, key: &str| {
        let known = explained.get(key).and_then(Value::as_str);
        escape_controls(given.as_deref().or(known).unwrap_or("you"))
    };
    let who = named(&args.principal, "principal");
    let tool = escape_controls(&args.subject());
    let mut out = match (is("visible"), is("callable")) {
        (true, true) => format!("{good}{tool}{good:#}: {who} sees it and may call it\n"),
        (true, false) => format!("{bad}{tool}{bad:#}: {who} sees it and may not call it now\n"),
        (false, _) => format!("{bad}{tool}{bad:#}: {who} does not see it\n"),
    };
    let steps = ["gates", "steps"]
        .iter()
        .find_map(|key| explained.get(*key)?.as_array());
    for step in steps.into_iter().flatten() {
        let word = |key: &str| step.get(key).and_then(Value::as_str).map(escape_controls);
        let gate = word("gate").unwrap_or_default();
        let reason = word("reason").unwrap_or_default();
        out.push_str(&match step.get("passes").and_then(Value::as_bool) {
            Some(true) => format!("  {good}pass{good:#}  {gate:<12} {dim}{reason}{dim:#}\n"),
            Some(false) => format!("  {bad}deny{bad:#}  {gate:<12} {reason}\n"),
            None => format!("  {dim}-     {gate:<12} not evaluated{dim:#}\n"),
        });
    }
    if !is("callable") {
        for line in [told(&["answer", "reason"]), told(&["remedy"])] {
            if !line.is_empty() {
                out.push_str(&format!("{line}\n"));
            }
        }
    }
    out
}
