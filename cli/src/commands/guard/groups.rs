use serde_json::{Value, json};
use toolwarden_guard::GroupSummary;

use super::policy;
use super::policy_location::PolicyLocation;
use crate::args::{GroupsArgs, PlainFormat};
use crate::ci_escape::escape_json;
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;
use crate::output::print_text;
use crate::style::{self, escape_controls};

pub(super) fn run(args: &GroupsArgs) -> Result<CommandOutcome, CliError> {
    let loaded = policy::load_and_warn(&PolicyLocation::find(&args.policy)?)?;
    let condition_inputs = policy::condition_inputs(&loaded.guard, &args.condition_inputs);
    let principal = args.principal.as_deref();
    let groups = loaded
        .guard
        .groups(principal.unwrap_or_default(), &condition_inputs);
    print_text(&match args.format {
        PlainFormat::Text => text(&groups, principal.is_some()),
        PlainFormat::Json => {
            let entries = groups.iter().map(|group| entry(group, principal.is_some()));
            let document = json!({
                "schema": "toolwarden/guard/groups/v1",
                "principal": principal,
                "groups": entries.collect::<Vec<_>>(),
            });
            escape_json(format!("{document:#}\n"))
        }
    })?;
    Ok(CommandOutcome::Pass)
}

fn entry(group: &GroupSummary, asked: bool) -> Value {
    json!({
        "name": group.name,
        "description": group.description,
        "tools": policy::names(&group.tools),
        "when": group.when,
        "on": group.on,
        "granted": asked.then_some(group.granted),
    })
}

fn text(groups: &[GroupSummary], asked: bool) -> String {
    let (good, dim, warning) = (style::SUCCESS, style::DIM, style::WARNING);
    let mut out = String::new();
    let width = groups
        .iter()
        .map(|it| escape_controls(it.name.as_str()).chars().count());
    let width = width.max().unwrap_or_default();
    for group in groups {
        let granted = match (asked, group.granted) {
            (false, _) => String::new(),
            (true, true) => format!("{good}yes{good:#}  "),
            (true, false) => "no   ".to_owned(),
        };
        let tools: Vec<String> = group.tools.iter().map(|it| escape_controls(it)).collect();
        let tools = if tools.is_empty() {
            "no tools".to_owned()
        } else {
            tools.join(", ")
        };
        out.push_str(&format!(
            "{granted}{:width$}  {tools}\n",
            escape_controls(group.name.as_str())
        ));
        let indent = if asked { "       " } else { "  " };
        if let Some(description) = &group.description {
            out.push_str(&format!(
                "{indent}{dim}{}{dim:#}\n",
                escape_controls(description)
            ));
        }
        if let Some(when) = &group.when {
            let now = if group.on { "on now" } else { "off now" };
            out.push_str(&format!(
                "{indent}{warning}{now}{warning:#} {dim}when {}{dim:#}\n",
                escape_controls(when)
            ));
        }
    }
    out
}
