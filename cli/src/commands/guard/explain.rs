use serde_json::{Value, json};
use toolwarden_guard::{Denial, Gate, GateResult};
use toolwarden_live_guard::AuditLog;

use super::call_input::{self, CallInput};
use super::policy_location::PolicyLocation;
use super::{check, policy};
use crate::args::{ExplainArgs, PlainFormat};
use crate::ci_escape::escape_json;
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;
use crate::output::print_text;
use crate::style::{self, escape_controls};

pub(super) fn run(args: &ExplainArgs) -> Result<CommandOutcome, CliError> {
    let loaded = policy::load_and_warn(&PolicyLocation::find(&args.policy)?)?;
    let guard = policy::live_guard(loaded, AuditLog::recent(), &args.condition_inputs)?;
    policy::assume_state(&guard, &args.call)?;
    let mut denied = false;
    let mut documents = Vec::new();
    call_input::each_call(&args.call, &args.condition_inputs, |call| {
        call.register_server(&guard);
        let steps = guard.explain(&call.call());
        let refused = steps.iter().find_map(denial);
        denied |= refused.is_some();
        // What follows is explained as if this call had been made.
        if let Ok(open) = guard.decide(&call.call()) {
            check::report_outcome(open, call.success == Some(true));
        }
        match args.format {
            PlainFormat::Text => print_text(&text(&call, &steps)),
            PlainFormat::Json => {
                documents.push(json!({
                    "tool": call.tool,
                    "principal": call.principal,
                    "allowed": refused.is_none(),
                    "code": refused.map_or("allowed", |it| it.code.as_str()),
                    "steps": steps.iter().map(entry).collect::<Vec<_>>(),
                }));
                Ok(())
            }
        }
    })?;
    if args.format == PlainFormat::Json {
        let document = json!({"schema": "toolwarden/guard/explain/v1", "calls": documents});
        print_text(&escape_json(format!("{document:#}\n")))?;
    }
    Ok(CommandOutcome::from_finding(denied))
}

fn denial(step: &GateResult) -> Option<&Denial> {
    match &step.outcome {
        Some(Err(denial)) => Some(denial),
        Some(Ok(_)) | None => None,
    }
}

fn entry(step: &GateResult) -> Value {
    let (outcome, reason) = match &step.outcome {
        Some(Ok(reason)) => ("pass", Some(reason.as_str())),
        Some(Err(denial)) => ("deny", Some(denial.reason.as_str())),
        None => ("not asked", None),
    };
    let refused = denial(step);
    let faults = refused.map_or(Vec::new(), |denial| {
        let faults = denial.faults.iter();
        faults
            .map(|it| json!({"pointer": it.pointer.as_str(), "message": it.message}))
            .collect()
    });
    json!({
        "step": step.gate.as_str(),
        "outcome": outcome,
        "code": refused.map(|it| it.code.as_str()),
        "reason": reason,
        "faults": faults,
    })
}

fn text(call: &CallInput, steps: &[GateResult]) -> String {
    let (good, bad, dim) = (style::SUCCESS, style::ERROR, style::DIM);
    let mut out = format!(
        "{} by {}\n",
        escape_controls(&call.tool),
        escape_controls(&call.principal)
    );
    let first = steps.iter().position(|step| denial(step).is_some());
    for (at, step) in steps.iter().enumerate() {
        let gate = format!("{:<10}", step.gate.as_str());
        let line = match &step.outcome {
            Some(Ok(reason)) => format!(
                "{good}pass{good:#}  {gate}  {dim}{}{dim:#}",
                escape_controls(reason)
            ),
            Some(Err(denial)) => {
                let also = if first == Some(at) { "" } else { " (too)" };
                format!(
                    "{bad}deny{bad:#}  {gate}  {}{also}",
                    escape_controls(&denial.reason)
                )
            }
            None => format!("{dim}-     {gate}  not evaluated{dim:#}"),
        };
        out.push_str(&format!("  {line}\n"));
        for fault in denial(step).into_iter().flat_map(|it| &it.faults) {
            let place = if fault.pointer.as_str().is_empty() {
                "/"
            } else {
                fault.pointer.as_str()
            };
            out.push_str(&format!(
                "          {dim}{}: {}{dim:#}\n",
                escape_controls(place),
                escape_controls(&fault.message)
            ));
        }
    }
    let verdict = match first.and_then(|at| steps.get(at)) {
        None => format!("{good}allow{good:#}: every gate passes\n"),
        Some(step) => {
            let help = denial(step).map_or(String::new(), |it| remedy(step.gate, it, call));
            format!("{bad}deny{bad:#}: the {} gate decides{help}\n", step.gate)
        }
    };
    out + &verdict
}

/// What would change the decision.
fn remedy(gate: Gate, denial: &Denial, call: &CallInput) -> String {
    use toolwarden_guard::ReasonCode;
    let remedy = match (gate, denial.code) {
        (Gate::Group, ReasonCode::GroupsNotGranted) if call.groups.is_none() => {
            "the call requests no group, which means `default`; request a granted one"
        }
        (Gate::Group, ReasonCode::GroupsNotGranted) => {
            "request fewer groups, or grant them to the principal"
        }
        (Gate::Group, ReasonCode::FilteredByGroup) => "request one of the tool's groups",
        (Gate::State, _) => "make the call that leads to one of these states first",
        (Gate::Permission, _) => "grant the permissions to the principal or to one of its roles",
        _ => return String::new(),
    };
    format!("; {remedy}")
}
