use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use toolwarden_guard::{Decision, Durability, Gate};
use toolwarden_warden::guard::audit::{AuditOptions, AuditWriter};
use toolwarden_warden::guard::{LiveGuard, Log, OpenCall};

use super::calls::{self, WrittenCall};
use super::{GuardError, policy};
use crate::args::{DecisionFormat, GuardCheckArgs};
use crate::ci_escape::in_json;
use crate::commands::watch::keep;
use crate::error::CliError;
use crate::output::{Output, Verdict, print};
use crate::style::{self, visible};

pub(super) fn run(args: &GuardCheckArgs) -> Result<Verdict, CliError> {
    let from_stdin = |path: &std::path::Path| path == std::path::Path::new("-");
    if from_stdin(&args.policy.policy) && args.call.call.as_deref().is_some_and(from_stdin) {
        return Err(GuardError::TwiceStdin.into());
    }
    let loaded = policy::load_and_warn(&args.policy.policy)?;
    let writer = if args.record {
        // Whoever waits for an answer has it recorded first; nothing else could be told to wait.
        let durability = match loaded.guard.audit().durability {
            Durability::Async => Durability::Group,
            other => other,
        };
        let path = keep::store_path(args.kept.store.as_ref())?;
        let options = AuditOptions::new(durability);
        Some(Arc::new(AuditWriter::open(&path, options)?))
    } else {
        None
    };
    let log = writer.clone().map_or_else(Log::recent, Log::Kept);
    let guard = policy::live(loaded, log, &args.circumstances)?;
    policy::assume_state(&guard, &args.call)?;
    let mut told = Told::new(args.format);
    calls::each(&args.call, &args.circumstances, |call| {
        told.add(&call, &decide(&guard, &call))
    })?;
    let flushed = writer.as_ref().map_or(Ok(()), |writer| writer.flush());
    let denied = told.finish(&args.policy.policy.display().to_string())?;
    flushed.map_err(GuardError::from)?;
    // Without a record a denial leaves no trace, and whoever tries doors goes unseen.
    match guard.metrics().unrecorded_entries() {
        0 => Ok(Verdict::of(denied > 0)),
        entries => Err(GuardError::Lost { entries }.into()),
    }
}

/// Decides a call, and moves its session on where the call says that it succeeded.
pub(super) fn decide(guard: &LiveGuard, written: &WrittenCall) -> Decision {
    written.introduce_server(guard);
    let call = written.call();
    let Some(success) = written.success else {
        return guard.intercept(&call);
    };
    let began = Instant::now();
    match guard.decide(&call) {
        Ok(open) => {
            let latency = open.latency();
            settle(open, success);
            Decision::allow(latency)
        }
        Err(denial) => Decision::deny(&denial, began.elapsed()),
    }
}

/// Tells the guard how a call ended, as somebody wrote it down.
pub(super) fn settle(open: OpenCall, success: bool) {
    if success {
        open.succeeded_unseen();
    } else {
        open.failed(&"reported as failed");
    }
}

/// Shows decisions, as they come where the format allows it.
struct Told {
    format: DecisionFormat,
    decisions: Vec<Value>,
    calls: usize,
    denied: usize,
}

impl Told {
    const fn new(format: DecisionFormat) -> Self {
        Self {
            format,
            decisions: Vec::new(),
            calls: 0,
            denied: 0,
        }
    }

    fn add(&mut self, call: &WrittenCall, decision: &Decision) -> Result<(), CliError> {
        self.calls += 1;
        self.denied += usize::from(!decision.allowed);
        match self.format {
            DecisionFormat::Text => print(&line(call, decision)),
            DecisionFormat::Json => {
                self.decisions.push(document(call, decision));
                Ok(())
            }
            DecisionFormat::Jsonl => {
                let mut out = Output::open(None)?;
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
                print(&format!(
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
                print(&in_json(format!("{document:#}\n")))?;
            }
        }
        Ok(denied)
    }
}

fn document(call: &WrittenCall, decision: &Decision) -> Value {
    let mut document = decision.document();
    if let Some(members) = document.as_object_mut() {
        members.insert("line".to_owned(), call.line.into());
        members.insert("tool".to_owned(), call.tool.as_str().into());
        members.insert("principal".to_owned(), call.principal.as_str().into());
        members.insert("session".to_owned(), call.session.clone().into());
    }
    document
}

fn line(call: &WrittenCall, decision: &Decision) -> String {
    let (good, bad, dim) = (style::GOOD, style::ERROR, style::DIM);
    let (tool, principal) = (visible(&call.tool), visible(&call.principal));
    if decision.allowed {
        return format!("{good}allow{good:#}  {tool}  {dim}{principal}{dim:#}\n");
    }
    let gate = decision.step.map_or("", Gate::as_str);
    let mut line = format!(
        "{bad}deny{bad:#}   {tool}  {dim}{principal}{dim:#}  {gate}: {}\n",
        visible(&decision.reason)
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
        line.push_str(&format!("       {dim}in {}{more}{dim:#}\n", visible(place)));
    }
    line
}
