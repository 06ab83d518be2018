use serde_json::json;
use toolwarden_guard::{Availability, Code, INITIAL_STATE, Request, RequestedGroups};

use super::policy;
use crate::args::{AvailableArgs, PlainFormat};
use crate::ci_escape::in_json;
use crate::error::CliError;
use crate::output::{Verdict, print};
use crate::style::{self, visible};

pub(super) fn run(args: &AvailableArgs) -> Result<Verdict, CliError> {
    let loaded = policy::load_and_warn(&args.policy.policy)?;
    let circumstances = policy::circumstances(&loaded.guard, &args.circumstances);
    let groups: RequestedGroups = if args.groups.is_empty() && !args.no_groups {
        RequestedGroups::Default
    } else {
        args.groups.iter().map(String::as_str).collect()
    };
    let groups = loaded.guard.asked(&args.principal, &groups).into_owned();
    let given = args.state.as_deref().filter(|it| !it.is_empty());
    let initial = loaded.guard.initial_state(&args.principal);
    let state = given.or(initial.map(|it| &**it)).unwrap_or(INITIAL_STATE);
    let request = Request {
        principal: &args.principal,
        groups: &groups,
        state,
        circumstances: &circumstances,
        variant: None,
    };
    let found = loaded.guard.available(&request);
    match (&found, args.format) {
        (Ok(found), PlainFormat::Text) => print(&text(found))?,
        (Err(denial), PlainFormat::Text) => {
            let bad = style::ERROR;
            print(&format!("{bad}deny{bad:#}   {}\n", visible(&denial.reason)))?;
        }
        (found, PlainFormat::Json) => {
            let none = Availability::none();
            let shown = found.as_ref().unwrap_or(&none);
            let left_out = |code: Code| {
                let tools = shown.left_out.iter().filter(move |it| it.code == code);
                policy::names(tools.map(|it| &it.tool))
            };
            let why = shown
                .left_out
                .iter()
                .map(|it| json!({"tool": *it.tool, "code": it.code.as_str(), "reason": it.reason}));
            let document = json!({
                "schema": "toolwarden/guard/available/v1",
                "principal": args.principal,
                "requested_groups": groups.names().collect::<Vec<_>>(),
                "state": state,
                "denied": found.as_ref().err().map(|it| it.reason.as_str()),
                "available_tools": policy::names(&shown.available),
                "filtered_by_group": left_out(Code::FilteredByGroup),
                "filtered_by_state": left_out(Code::FilteredByState),
                "left_out": why.collect::<Vec<_>>(),
                "unknown_groups": shown.unknown_groups,
                "narrowed_groups": shown.narrowed,
            });
            print(&in_json(format!("{document:#}\n")))?;
        }
    }
    Ok(Verdict::of(found.is_err()))
}

fn text(found: &Availability) -> String {
    let (good, dim, warning) = (style::GOOD, style::DIM, style::WARNING);
    let mut out = String::new();
    for group in &found.unknown_groups {
        out.push_str(&format!(
            "{warning}no tool is in group `{}`{warning:#}\n",
            visible(group)
        ));
    }
    for group in &found.narrowed {
        out.push_str(&format!(
            "{warning}group `{}` is not granted and left away{warning:#}\n",
            visible(group)
        ));
    }
    let names = found
        .available
        .iter()
        .chain(found.left_out.iter().map(|it| &it.tool));
    let width = names
        .map(|it| visible(it).chars().count())
        .max()
        .unwrap_or_default();
    for tool in &found.available {
        out.push_str(&format!("{good}yes{good:#}  {}\n", visible(tool)));
    }
    for left in &found.left_out {
        out.push_str(&format!(
            "no   {:width$}  {dim}{}: {}{dim:#}\n",
            visible(&left.tool),
            left.code,
            visible(&left.reason)
        ));
    }
    let (yes, no) = (found.available.len(), found.left_out.len());
    out.push_str(&format!("{yes} available, {no} left out\n"));
    out
}
