use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use toolwarden_guard::{ALL_PASSED, Guard, INITIAL_STATE, RequestedGroups, StateSet};
use toolwarden_live_guard::{AuditLog, Call, Clock, LiveGuard, ManualClock};

use super::call_input::{self, CallInput, CallLine, LoggedDecision};
use super::policy_location::PolicyLocation;
use super::{check, policy};
use crate::args::{PlainFormat, SimulateArgs};
use crate::command_outcome::CommandOutcome;
use crate::error::{CliError, GuardError};
use crate::output::print_text;
use crate::style::{self, escape_controls};

pub(super) fn run(args: &SimulateArgs) -> Result<CommandOutcome, CliError> {
    let stdin = Path::new("-");
    let inputs = [
        Some(&args.calls),
        args.policy.policy.as_ref(),
        args.old.as_ref(),
    ];
    if inputs
        .into_iter()
        .flatten()
        .filter(|it| *it == stdin)
        .count()
        > 1
    {
        return Err(GuardError::DuplicateStdin.into());
    }
    let new = policy::load_and_warn(&PolicyLocation::find(&args.policy)?)?;
    let old = args
        .old
        .as_ref()
        .map(|path| policy::load_and_warn(&PolicyLocation::File(path.clone())))
        .transpose()?;
    let mut simulation = Simulation {
        new: PolicyReplay::new(new.guard, args.load)?,
        old: old
            .map(|old| PolicyReplay::new(old.guard, args.load))
            .transpose()?,
        summary: SimulationSummary::default(),
    };
    let mut lines = Vec::new();
    call_input::each_line(&args.calls, |line| {
        lines.push(line);
        Ok(())
    })?;
    let ended = logged_outcomes(&lines);
    for line in &lines {
        if let CallLine::Call(call) = line {
            simulation.add_call(call, success(call, &ended));
        }
    }
    let outcome = simulation.summary;
    if outcome.calls == 0 {
        let place = args.calls.clone();
        return Err(GuardError::NoCalls { place }.into());
    }
    print_text(&match args.format {
        PlainFormat::Text => outcome.text(),
        PlainFormat::Json => format!("{:#}\n", outcome.document()),
    })?;
    let found = if outcome.compared {
        !outcome.changes.is_empty()
    } else {
        outcome.denied() > 0
    };
    Ok(CommandOutcome::from_finding(found))
}

/// How the calls of a log ended, by the name of their decision.
fn logged_outcomes(lines: &[CallLine]) -> BTreeMap<&str, bool> {
    let mut ended = BTreeMap::new();
    for line in lines {
        if let CallLine::Outcome { call, success } = line {
            ended.insert(call.as_str(), *success);
        }
    }
    ended
}

/// Whether a call succeeded. A call from the log did if the log says so; any other did unless its
/// input says otherwise.
fn success(call: &CallInput, ended: &BTreeMap<&str, bool>) -> bool {
    match &call.recorded {
        Some(recorded) => ended.get(recorded.id.as_str()) == Some(&true),
        None => call.success.unwrap_or(true),
    }
}

/// A policy under which calls are made again, at the times they were made.
struct PolicyReplay {
    guard: LiveGuard,
    clock: Arc<ManualClock>,
    initial_states: StateSet,
}

/// What a policy says of a call.
#[derive(Clone, PartialEq, Eq)]
struct ReplayDecision {
    allowed: bool,
    code: String,
    reason: String,
}

impl PolicyReplay {
    fn new(guard: Guard, load: Option<f64>) -> Result<Self, CliError> {
        // Calls out of order are taken at the latest time seen; so the clock starts before them all.
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
        let initial_states = guard.sessions().initial_states.clone();
        let guard = LiveGuard::new(guard, AuditLog::recent(), Clock::Manual(Arc::clone(&clock)));
        let guard = guard.map_err(GuardError::from)?;
        if let Some(load) = load {
            guard.report_load(load);
        }
        Ok(Self {
            guard,
            clock,
            initial_states,
        })
    }

    fn decide(&self, written: &CallInput, success: bool) -> ReplayDecision {
        if let Some(at) = written.at {
            self.clock.advance_to(at);
        }
        written.register_server(&self.guard);
        let mut call: Call<'_> = written.call();
        self.restore_state(written, &mut call);
        match self.guard.decide(&call) {
            Ok(open) => {
                check::report_outcome(open, success);
                ReplayDecision {
                    allowed: true,
                    code: "allowed".to_owned(),
                    reason: ALL_PASSED.to_owned(),
                }
            }
            Err(denial) => ReplayDecision {
                allowed: false,
                code: denial.code.as_str().to_owned(),
                reason: denial.reason,
            },
        }
    }

    /// A log may begin in the middle of a session: it stands where its first record says. Where the
    /// policy lets a client start there, it is taken for the client's word.
    fn restore_state<'w>(&self, written: &'w CallInput, call: &mut Call<'w>) {
        let Some(state) = written.recorded.as_ref().and_then(|it| it.state.as_ref()) else {
            return;
        };
        let session = written.session.as_deref().unwrap_or_default();
        if *state == INITIAL_STATE || self.guard.session(&written.principal, session).is_some() {
            return;
        }
        if self.initial_states.contains(state.as_str()) {
            call.state = Some(state);
            return;
        }
        let groups = RequestedGroups::Default;
        let restored = self
            .guard
            .restore_session(&written.principal, session, groups, state);
        // Where there is no room for it, the session starts over, as it would have.
        drop(restored);
    }
}

struct Simulation {
    new: PolicyReplay,
    old: Option<PolicyReplay>,
    summary: SimulationSummary,
}

/// What the simulation found.
#[derive(Default)]
struct SimulationSummary {
    calls: usize,
    compared: bool,
    codes: BTreeMap<String, usize>,
    changes: Vec<DecisionChange>,
    /// Calls that cannot be decided again because their arguments were not kept.
    unsure: usize,
}

/// A call that is decided differently.
struct DecisionChange {
    line: usize,
    tool: String,
    principal: String,
    before: ReplayDecision,
    after: ReplayDecision,
}

impl Simulation {
    fn add_call(&mut self, call: &CallInput, success: bool) {
        let after = self.new.decide(call, success);
        let before = match &self.old {
            Some(old) => Some(old.decide(call, success)),
            None => call.recorded.as_ref().map(ReplayDecision::from_log),
        };
        let outcome = &mut self.summary;
        outcome.calls += 1;
        *outcome.codes.entry(after.code.clone()).or_default() += 1;
        let Some(before) = before else { return };
        outcome.compared = true;
        // Arguments that were not kept cannot be validated again. The log does not keep the load or secret
        // attributes either.
        let either = |code: &str| before.code == code || after.code == code;
        let recorded = self.old.is_none();
        let by_arguments = [
            "invalid_input",
            "number_out_of_range",
            "key_case",
            "approval_mismatch",
        ];
        let by_arguments = by_arguments.into_iter().any(either);
        if recorded && (either("group_off") || (call.is_redacted() && by_arguments)) {
            outcome.unsure += 1;
            return;
        }
        if (before.allowed, &before.code) != (after.allowed, &after.code) {
            outcome.changes.push(DecisionChange {
                line: call.line,
                tool: call.tool.clone(),
                principal: call.principal.clone(),
                before,
                after,
            });
        }
    }
}

impl ReplayDecision {
    fn from_log(recorded: &LoggedDecision) -> Self {
        Self {
            allowed: recorded.allowed,
            code: recorded.code.clone(),
            reason: String::new(),
        }
    }

    fn document(&self) -> Value {
        json!({"allowed": self.allowed, "code": self.code, "reason": self.reason})
    }
}

impl SimulationSummary {
    fn denied(&self) -> usize {
        let allowed = self.codes.get("allowed").copied().unwrap_or_default();
        self.calls - allowed
    }

    fn document(&self) -> Value {
        let changes = self.changes.iter().map(|it| {
            json!({
                "line": it.line,
                "tool": it.tool,
                "principal": it.principal,
                "before": it.before.document(),
                "after": it.after.document(),
            })
        });
        json!({
            "schema": "toolwarden/guard/simulate/v1",
            "calls": self.calls,
            "allowed": self.calls - self.denied(),
            "denied": self.denied(),
            "codes": self.codes,
            "compared": self.compared,
            "unsure": self.unsure,
            "changes": changes.collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let (good, bad, dim) = (style::SUCCESS, style::ERROR, style::DIM);
        let mut out = String::new();
        for change in &self.changes {
            let (colour, word) = match (change.before.allowed, change.after.allowed) {
                (true, false) => (bad, "now denied"),
                (false, true) => (good, "now allowed"),
                (true, true) | (false, false) => (style::WARNING, "other reason"),
            };
            out.push_str(&format!(
                "{colour}{word}{colour:#}  line {}: {} {dim}by {}{dim:#}\n    {} → {}: {}\n",
                change.line,
                escape_controls(&change.tool),
                escape_controls(&change.principal),
                change.before.code,
                change.after.code,
                escape_controls(&change.after.reason)
            ));
        }
        let codes = self.codes.iter().filter(|(code, _)| *code != "allowed");
        let codes: Vec<String> = codes
            .map(|(code, count)| format!("{code} {count}"))
            .collect();
        let codes = if codes.is_empty() {
            String::new()
        } else {
            format!(" ({})", codes.join(", "))
        };
        out.push_str(&format!(
            "{} calls: {} allowed, {} denied{codes}\n",
            self.calls,
            self.calls - self.denied(),
            self.denied()
        ));
        if self.compared {
            let word = if self.changes.len() == 1 {
                "decision changes"
            } else {
                "decisions change"
            };
            out.push_str(&format!("{} {word}\n", self.changes.len()));
        }
        if !self.compared {
            out.push_str("nothing to compare with; --old names another policy\n");
        }
        if self.unsure > 0 {
            out.push_str(&format!(
                "{} cannot be told: what they depend on was not kept\n",
                self.unsure
            ));
        }
        out
    }
}
