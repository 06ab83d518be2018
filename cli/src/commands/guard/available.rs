use serde_json::json;
use toolwarden_guard::{Availability, INITIAL_STATE, ReasonCode, Request, RequestedGroups};
use toolwarden_model::StateName;

use super::policy;
use super::policy_location::PolicyLocation;
use crate::args::{AvailableArgs, PlainFormat};
use crate::ci_escape::escape_json;
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;
use crate::output::print_text;
use crate::style::{self, escape_controls};

pub(super) fn run(args: &AvailableArgs) -> Result<CommandOutcome, CliError> {
    let loaded = policy::load_and_warn(&PolicyLocation::find(&args.policy)?)?;
    let condition_inputs = policy::condition_inputs(&loaded.guard, &args.condition_inputs);
    let groups: RequestedGroups = if args.groups.is_empty() && !args.no_groups {
        RequestedGroups::Default
    } else {
        args.groups.iter().map(String::as_str).collect()
    };
    let groups = loaded.guard.asked(&args.principal, &groups).into_owned();
    let given = args.state.as_deref().filter(|it| !it.is_empty());
    let given = given.map(StateName::new);
    let initial = loaded.guard.initial_state(&args.principal);
    let state = given.as_ref().or(initial).unwrap_or(&INITIAL_STATE);
    let request = Request {
        principal: &args.principal,
        groups: &groups,
        state,
        condition_inputs: &condition_inputs,
        variant: None,
    };
    let found = loaded.guard.available_tools(&request);
    match (&found, args.format) {
        (Ok(found), PlainFormat::Text) => print_text(&text(found))?,
        (Err(denial), PlainFormat::Text) => {
            let bad = style::ERROR;
            print_text(&format!(
                "{bad}deny{bad:#}   {}\n",
                escape_controls(&denial.reason)
            ))?;
        }
        (found, PlainFormat::Json) => {
            let none = Availability::none();
            let shown = found.as_ref().unwrap_or(&none);
            let left_out = |code: ReasonCode| {
                let tools = shown.unavailable.iter().filter(move |it| it.code == code);
                policy::names(tools.map(|it| &it.tool))
            };
            let why = shown
                .unavailable
                .iter()
                .map(|it| json!({"tool": *it.tool, "code": it.code.as_str(), "reason": it.reason}));
            let document = json!({
                "schema": "toolwarden/guard/available/v1",
                "principal": args.principal,
                "requested_groups": groups.names().collect::<Vec<_>>(),
                "state": state,
                "denied": found.as_ref().err().map(|it| it.reason.as_str()),
                "available_tools": policy::names(&shown.available),
                "filtered_by_group": left_out(ReasonCode::FilteredByGroup),
                "filtered_by_state": left_out(ReasonCode::FilteredByState),
                "left_out": why.collect::<Vec<_>>(),
                "unknown_groups": shown.unknown_groups,
                "narrowed_groups": shown.dropped_groups,
            });
            print_text(&escape_json(format!("{document:#}\n")))?;
        }
    }
    Ok(CommandOutcome::from_finding(found.is_err()))
}

fn text(found: &Availability) -> String {
    let (good, dim, warning) = (style::SUCCESS, style::DIM, style::WARNING);
    let mut out = String::new();
    for group in &found.unknown_groups {
        out.push_str(&format!(
            "{warning}no tool is in group `{}`{warning:#}\n",
            escape_controls(group.as_str())
        ));
    }
    for group in &found.dropped_groups {
        out.push_str(&format!(
            "{warning}group `{}` is not granted and was left out{warning:#}\n",
            escape_controls(group.as_str())
        ));
    }
    let names = found
        .available
        .iter()
        .chain(found.unavailable.iter().map(|it| &it.tool));
    let width = names
        .map(|it| escape_controls(it).chars().count())
        .max()
        .unwrap_or_default();
    for tool in &found.available {
        out.push_str(&format!("{good}yes{good:#}  {}\n", escape_controls(tool)));
    }
    for left in &found.unavailable {
        out.push_str(&format!(
            "no   {:width$}  {dim}{}: {}{dim:#}\n",
            escape_controls(&left.tool),
            left.code,
            escape_controls(&left.reason)
        ));
    }
    let (yes, no) = (found.available.len(), found.unavailable.len());
    out.push_str(&format!("{yes} available, {no} left out\n"));
    out
}
