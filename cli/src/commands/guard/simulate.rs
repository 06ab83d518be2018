use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use toolwarden_guard::{ALL_PASSED, Guard, INITIAL_STATE, RequestedGroups, States};
use toolwarden_warden::guard::{Call, Clock, LiveGuard, Log, SetClock};

use super::calls::{self, Line, Recorded, WrittenCall};
use super::{GuardError, check, policy};
use crate::args::{PlainFormat, SimulateArgs};
use crate::error::CliError;
use crate::output::{Verdict, print};
use crate::style::{self, visible};

pub(super) fn run(args: &SimulateArgs) -> Result<Verdict, CliError> {
    let stdin = Path::new("-");
    let inputs = [
        Some(&args.calls),
        Some(&args.policy.policy),
        args.old.as_ref(),
    ];
    if inputs
        .into_iter()
        .flatten()
        .filter(|it| *it == stdin)
        .count()
        > 1
    {
        return Err(GuardError::TwiceStdin.into());
    }
    let new = policy::load_and_warn(&args.policy.policy)?;
    let old = args
        .old
        .as_ref()
        .map(|path| policy::load_and_warn(path))
        .transpose()?;
    let mut simulation = Simulation {
        new: Replay::new(new.guard, args.load)?,
        old: old
            .map(|old| Replay::new(old.guard, args.load))
            .transpose()?,
        outcome: Outcome::default(),
    };
    let mut lines = Vec::new();
    calls::each_line(&args.calls, |line| {
        lines.push(line);
        Ok(())
    })?;
    let ended = endings(&lines);
    for line in &lines {
        if let Line::Call(call) = line {
            simulation.take(call, success(call, &ended));
        }
    }
    let outcome = simulation.outcome;
    if outcome.calls == 0 {
        let place = args.calls.clone();
        return Err(GuardError::NoCalls { place }.into());
    }
    print(&match args.format {
        PlainFormat::Text => outcome.text(),
        PlainFormat::Json => format!("{:#}\n", outcome.document()),
    })?;
    let found = if outcome.compared {
        !outcome.changes.is_empty()
    } else {
        outcome.denied() > 0
    };
    Ok(Verdict::of(found))
}

/// How the calls of a log ended, by the name of their decision.
fn endings(lines: &[Line]) -> BTreeMap<&str, bool> {
    let mut ended = BTreeMap::new();
    for line in lines {
        if let Line::Outcome { call, success } = line {
            ended.insert(call.as_str(), *success);
        }
    }
    ended
}

/// Whether a call succeeded. One out of the log did if the log says so, any other if nobody says
/// otherwise.
fn success(call: &WrittenCall, ended: &BTreeMap<&str, bool>) -> bool {
    match &call.recorded {
        Some(recorded) => ended.get(recorded.id.as_str()) == Some(&true),
        None => call.success.unwrap_or(true),
    }
}

/// A policy under which calls are made again, at the times they were made.
struct Replay {
    guard: LiveGuard,
    clock: Arc<SetClock>,
    initial_states: States,
}

/// What a policy says of a call.
#[derive(Clone, PartialEq, Eq)]
struct Answer {
    allowed: bool,
    code: String,
    reason: String,
}

impl Replay {
    fn new(guard: Guard, load: Option<f64>) -> Result<Self, CliError> {
        // Calls out of order are taken at the latest time seen; so the clock starts before them all.
        let clock = SetClock::at(Timestamp::UNIX_EPOCH);
        let initial_states = guard.sessions().initial_states.clone();
        let guard = LiveGuard::new(guard, Log::recent(), Clock::Set(Arc::clone(&clock)));
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

    fn answer(&self, written: &WrittenCall, success: bool) -> Answer {
        if let Some(at) = written.at {
            self.clock.reach(at);
        }
        written.introduce_server(&self.guard);
        let mut call: Call<'_> = written.call();
        self.start_where_it_was(written, &mut call);
        match self.guard.decide(&call) {
            Ok(open) => {
                check::settle(open, success);
                Answer {
                    allowed: true,
                    code: "allowed".to_owned(),
                    reason: ALL_PASSED.to_owned(),
                }
            }
            Err(denial) => Answer {
                allowed: false,
                code: denial.code.as_str().to_owned(),
                reason: denial.reason,
            },
        }
    }

    /// A log may begin in the middle of a session: it stands where its first record says. Where the
    /// policy lets a client start there, it is taken for the client's word.
    fn start_where_it_was<'w>(&self, written: &'w WrittenCall, call: &mut Call<'w>) {
        let Some(state) = written.recorded.as_ref().and_then(|it| it.state.as_deref()) else {
            return;
        };
        let session = written.session.as_deref().unwrap_or_default();
        if state == INITIAL_STATE || self.guard.session(&written.principal, session).is_some() {
            return;
        }
        if self.initial_states.contain(state) {
            call.state = Some(state);
            return;
        }
        let groups = RequestedGroups::Default;
        let restored = self
            .guard
            .restore_session(&written.principal, session, groups, state);
        // Where there is no room for it the session starts anew, as it would have.
        drop(restored);
    }
}

struct Simulation {
    new: Replay,
    old: Option<Replay>,
    outcome: Outcome,
}

/// What the simulation found.
#[derive(Default)]
struct Outcome {
    calls: usize,
    compared: bool,
    codes: BTreeMap<String, usize>,
    changes: Vec<Change>,
    /// Calls whose arguments were not kept, so that nobody can tell.
    unsure: usize,
}

/// A call that is decided differently.
struct Change {
    line: usize,
    tool: String,
    principal: String,
    before: Answer,
    after: Answer,
}

impl Simulation {
    fn take(&mut self, call: &WrittenCall, success: bool) {
        let after = self.new.answer(call, success);
        let before = match &self.old {
            Some(old) => Some(old.answer(call, success)),
            None => call.recorded.as_ref().map(Answer::recorded),
        };
        let outcome = &mut self.outcome;
        outcome.calls += 1;
        *outcome.codes.entry(after.code.clone()).or_default() += 1;
        let Some(before) = before else { return };
        outcome.compared = true;
        // What was not kept cannot be held to a schema again, and neither load nor secret attributes
        // are kept.
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
            outcome.changes.push(Change {
                line: call.line,
                tool: call.tool.clone(),
                principal: call.principal.clone(),
                before,
                after,
            });
        }
    }
}

impl Answer {
    fn recorded(recorded: &Recorded) -> Self {
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

impl Outcome {
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
        let (good, bad, dim) = (style::GOOD, style::ERROR, style::DIM);
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
                visible(&change.tool),
                visible(&change.principal),
                change.before.code,
                change.after.code,
                visible(&change.after.reason)
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
