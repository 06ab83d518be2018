use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use toolwarden_guard::{Decision, Durability, Gate};
use toolwarden_live_guard::audit::{AuditOptions, AuditWriter};
use toolwarden_live_guard::{AuditLog, LiveGuard, OpenCall};

use super::call_input::{self, CallInput};
use super::policy;
use super::policy_location::PolicyLocation;
use crate::args::{DecisionFormat, GuardCheckArgs, StoreArgs};
use crate::ci_escape::escape_json;
use crate::command_outcome::CommandOutcome;
use crate::commands::watch::store_path;
use crate::error::{CliError, GuardError};
use crate::output::{OutputFile, print_text};
use crate::style::{self, escape_controls};

pub(super) fn run(args: &GuardCheckArgs) -> Result<CommandOutcome, CliError> {
    let location = PolicyLocation::find(&args.policy)?;
    let calls = args.call.call.as_deref();
    if location.is_stdin() && calls == Some(std::path::Path::new("-")) {
        return Err(GuardError::DuplicateStdin.into());
    }
    let loaded = policy::load_and_warn(&location)?;
    let writer = if args.record {
        // The decision is recorded before the caller gets it, so asynchronous writes are not enough.
        let durability = match loaded.guard.audit().durability {
            Durability::Async => Durability::Group,
            other => other,
        };
        let path = store_path::store_path(&StoreArgs::at(args.store.as_ref()))?;
        let options = AuditOptions::new(durability);
        Some(Arc::new(AuditWriter::open(&path, options)?))
    } else {
        None
    };
    let log = writer
        .clone()
        .map_or_else(AuditLog::recent, AuditLog::Stored);
    let guard = policy::live_guard(loaded, log, &args.condition_inputs)?;
    policy::assume_state(&guard, &args.call)?;
    let mut told = DecisionPrinter::new(args.format);
    call_input::each_call(&args.call, &args.condition_inputs, |call| {
        told.add(&call, &decide(&guard, &call))
    })?;
    let flushed = writer.as_ref().map_or(Ok(()), |writer| writer.flush());
    let denied = told.finish(&location.path().display().to_string())?;
    flushed.map_err(GuardError::from)?;
    // A denial without a record leaves no trace of a caller that probes for access.
    match guard.metrics().unrecorded_entries() {
        0 => Ok(CommandOutcome::from_finding(denied > 0)),
        entries => Err(GuardError::Lost { entries }.into()),
    }
}

/// Decides a call, and moves its session on where the call says that it succeeded.
pub(super) fn decide(guard: &LiveGuard, written: &CallInput) -> Decision {
    written.register_server(guard);
    let call = written.call();
    let Some(success) = written.success else {
        return guard.intercept(&call);
    };
    let began = Instant::now();
    match guard.decide(&call) {
        Ok(open) => {
            let latency = open.latency();
            report_outcome(open, success);
            Decision::allow(latency)
        }
        Err(denial) => Decision::deny(&denial, began.elapsed()),
    }
}

/// Reports the recorded outcome of a call to the guard.
pub(super) fn report_outcome(open: OpenCall, success: bool) {
    if success {
        open.report_success_unchecked();
    } else {
        open.report_failure(&"reported as failed");
    }
}

/// Shows decisions, as they come where the format allows it.
struct DecisionPrinter {
    format: DecisionFormat,
    decisions: Vec<Value>,
    calls: usize,
    denied: usize,
}

impl DecisionPrinter {
    const fn new(format: DecisionFormat) -> Self {
        Self {
            format,
            decisions: Vec::new(),
            calls: 0,
            denied: 0,
        }
    }

    fn add(&mut self, call: &CallInput, decision: &Decision) -> Result<(), CliError> {
        self.calls += 1;
        self.denied += usize::from(!decision.allowed);
        match self.format {
            DecisionFormat::Text => print_text(&line(call, decision)),
            DecisionFormat::Json => {
                self.decisions.push(document(call, decision));
                Ok(())
            }
            DecisionFormat::Jsonl => {
                let mut out = OutputFile::open(None)?;
                out.write(&format!("{}\n", document(call, decision)))?;
                out.finish()
            }
        }
    }

    fn finish(self, policy: &str) -> Result<usize, CliError> {
        let (calls, denied) = (self.calls, self.denied);
        match self.format {
            DecisionFormat::Text if calls > 1 => {
                let allowed = calls - denied;
                print_text(&format!(
                    "{calls} calls: {allowed} allowed, {denied} denied\n"
                ))?;
            }
            DecisionFormat::Text | DecisionFormat::Jsonl => {}
            DecisionFormat::Json => {
                let document = json!({
                    "schema": "toolwarden/guard/check/v1",
                    "policy": policy,
                    "calls": calls,
                    "denied": denied,
                    "decisions": self.decisions,
                });
                print_text(&escape_json(format!("{document:#}\n")))?;
            }
        }
        Ok(denied)
    }
}

fn document(call: &CallInput, decision: &Decision) -> Value {
    let mut document = decision.to_json();
    if let Some(members) = document.as_object_mut() {
        members.insert("line".to_owned(), call.line.into());
        members.insert("tool".to_owned(), call.tool.as_str().into());
        members.insert("principal".to_owned(), call.principal.as_str().into());
        members.insert("session".to_owned(), call.session.clone().into());
    }
    document
}

fn line(call: &CallInput, decision: &Decision) -> String {
    let (good, bad, dim) = (style::SUCCESS, style::ERROR, style::DIM);
    let (tool, principal) = (
        escape_controls(&call.tool),
        escape_controls(&call.principal),
    );
    if decision.allowed {
        return format!("{good}allow{good:#}  {tool}  {dim}{principal}{dim:#}\n");
    }
    let gate = decision.step.map_or("", Gate::as_str);
    let mut line = format!(
        "{bad}deny{bad:#}   {tool}  {dim}{principal}{dim:#}  {gate}: {}\n",
        escape_controls(&decision.reason)
    );
    if let Some(wait) = decision.retry_after {
        line.push_str(&format!(
            "       {dim}try again in {:.1} s{dim:#}\n",
            wait.as_secs_f64()
        ));
    }
    // The first is in the reason.
    for pointer in decision.pointers.iter().take(1) {
        let place = if pointer.as_str().is_empty() {
            "the arguments"
        } else {
            pointer.as_str()
        };
        let more = match decision.pointers.len() {
            1 => String::new(),
            count => format!(", and {} more", count - 1),
        };
        line.push_str(&format!(
            "       {dim}in {}{more}{dim:#}\n",
            escape_controls(place)
        ));
    }
    line
}
