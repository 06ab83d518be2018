//! The parts of a decision that need what changes from call to call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_guard::{
    Availability, BoundValues, Circumstances, Code, Denial, Feature, Guard, INITIAL_STATE, Limits,
    OnFailure, Overrun, Permit, Request, RequestedGroups,
};

use super::audit::{AuditError, Ticket};
use super::denial_rate::SUMMED_UP;
use super::entry::{About, Entry, EntryId, Event, object};
use super::features::UsedFeature;
use super::limiter::{Counted, Exceeded, Key};
use super::listings::Asked;
use super::live::{Call, Current, Shared, Under};
use super::sessions::{Moment, Start, StateClaim, Whose};

/// What the gates need to know of a session.
#[derive(Debug)]
pub(super) struct Standing {
    /// None is the initial one.
    pub(super) state: Option<Arc<str>>,
    pub(super) groups: RequestedGroups,
    /// Whether requests may not ask for more than these groups.
    pub(super) bounds_groups: bool,
    /// Whether the one call was permitted that its state allows.
    pub(super) state_used: bool,
    /// What calls in its state have to repeat.
    pub(super) bound: BoundValues,
    /// Which stay in its state this is, where the session is open in it.
    pub(super) stay: Option<StateClaim>,
    /// What the client's own word on its state is worth.
    claim: Claim,
    /// Whether the session is open.
    pub(super) open: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Claim {
    /// It said nothing, or what is known anyway.
    None,
    /// It may start there.
    Starts,
    /// It is not there.
    Refused,
}

/// A decision that still has to be put down.
#[derive(Debug)]
pub(super) struct Weighed {
    pub(super) answer: Result<Permit, Denial>,
    /// None where the denial is summed up with others.
    pub(super) entry: Option<Entry>,
    pub(super) trail: Trail,
    pub(super) on_failure: OnFailure,
}

/// What a decision leaves behind for those who follow it up.
#[derive(Debug)]
pub(super) struct Trail {
    pub(super) id: EntryId,
    /// The state it was made in; none is the initial one.
    pub(super) state: Option<Arc<str>>,
    /// The single-use state that the call has to itself.
    pub(super) claim: Option<StateClaim>,
    pub(super) ended: u64,
    pub(super) latency: Duration,
}

impl Standing {
    pub(super) fn name(&self) -> &str {
        self.state.as_deref().unwrap_or(INITIAL_STATE)
    }

    /// How a session that is opened now starts.
    pub(super) fn start(&self) -> Start {
        let state = self.name().into();
        match self.claim {
            Claim::Starts => Start::Claimed(state),
            Claim::None | Claim::Refused => Start::Initial(state),
        }
    }
}

impl<'c> Call<'c> {
    pub(super) fn whose(&self) -> Whose<'c> {
        Whose {
            principal: self.principal,
            session: self.session.unwrap_or_default(),
        }
    }

    /// What is to be used.
    pub(super) fn wanted(&self) -> Feature<'c> {
        self.feature.unwrap_or_else(|| self.tool.into())
    }

    fn about(&self, guard: &Guard) -> About {
        About {
            principal: guard.principal_ref(self.principal),
            tool: guard.tool_ref(&self.wanted().record_name()),
            session: self.session.map(Box::from),
        }
    }
}

impl Shared {
    /// Decides a call and puts the decision down: nothing is let through that the log does not know
    /// of, unless the policy says otherwise.
    pub(super) fn decide(&self, call: &Call<'_>) -> (Result<Permit, Denial>, Trail) {
        let (answer, trail) = self.conclude(self.weigh(call));
        if answer.is_err() {
            self.release_state(call.whose(), trail.claim);
        }
        (answer, trail)
    }

    /// Takes a call through the gates. What comes of it still has to be put down.
    pub(super) fn weigh(&self, call: &Call<'_>) -> Weighed {
        let began = self.clock.monotonic();
        let current = self.current_for(call);
        let guard = &current.guard;
        let standing = self.standing(guard, call, began);
        let answer = self.asking(guard, call, &standing, |request| {
            let answer = self.pass(&current, request, call, &standing, began);
            if let Err(denial) = &answer {
                self.count_denial(guard, denial, request);
            }
            answer
        });
        let mut claim = None;
        let answer = answer.and_then(|permit| {
            self.keep_session(guard, call, &standing, began)?;
            claim = self.claim_state(guard, call, &standing, began)?;
            Ok(permit)
        });
        let ended = self.clock.monotonic();
        self.note_claim(&current, call, &standing);
        let mut weighed = self.weighed(&current, call, standing, answer, (began, ended));
        weighed.trail.claim = claim;
        weighed
    }

    /// Puts down that a call was refused before it could be decided.
    pub(super) fn refuse(&self, call: &Call<'_>, denial: Denial) -> Denial {
        let now = self.clock.monotonic();
        let current = self.current_for(call);
        let standing = self.standing(&current.guard, call, now);
        let answer = Err(denial.clone());
        let weighed = self.weighed(&current, call, standing, answer, (now, now));
        let (answer, _) = self.conclude(weighed);
        answer.err().unwrap_or(denial)
    }

    /// As [`Self::refuse`], without waiting for the record.
    pub(super) fn refuse_soon(&self, call: &Call<'_>, denial: Denial) -> Denial {
        let now = self.clock.monotonic();
        let current = self.current_for(call);
        let standing = self.standing(&current.guard, call, now);
        let answer = Err(denial.clone());
        let weighed = self.weighed(&current, call, standing, answer, (now, now));
        if let Some(entry) = weighed.entry
            && let Err(error) = self.log.begin(entry)
        {
            // A refusal stands without a record.
            drop(self.unrecorded(weighed.on_failure, &error));
        }
        self.metrics.decided(denial.code);
        denial
    }

    fn weighed(
        &self,
        current: &Current,
        call: &Call<'_>,
        standing: Standing,
        answer: Result<Permit, Denial>,
        (began, ended): (u64, u64),
    ) -> Weighed {
        let latency = between(began, ended);
        let event = Event::Decision {
            denial: answer.as_ref().err().cloned().map(Box::new),
            groups: call.groups.as_ref().and_then(RequestedGroups::named),
            state: standing.state.clone(),
            arguments: Arc::clone(&call.arguments),
            feature: call.feature.as_ref().map(UsedFeature::of),
            attributes: (!call.attributes.is_empty()).then(|| Box::new(call.attributes.clone())),
            issuer: call.claims.and_then(|claims| claims.issuer.clone()),
            latency,
        };
        let entry = self.entry(&current.under, call.about(&current.guard), event);
        self.misuse.observe(&entry);
        let code = answer.as_ref().err().map(|denial| denial.code.as_str());
        let is_recorded = code.is_none_or(|it| self.is_recorded(current, call.principal, it));
        let trail = Trail {
            id: entry.id,
            state: standing.state,
            claim: None,
            ended,
            latency,
        };
        Weighed {
            answer,
            entry: is_recorded.then_some(entry),
            trail,
            on_failure: current.guard.audit().on_failure,
        }
    }

    fn conclude(&self, weighed: Weighed) -> (Result<Permit, Denial>, Trail) {
        let Weighed {
            mut answer,
            entry,
            trail,
            on_failure,
        } = weighed;
        if let Some(entry) = entry
            && let Err(error) = self.log.put_down(entry)
            && let Some(denial) = self.unrecorded(on_failure, &error)
        {
            answer = answer.and(Err(denial));
        }
        self.metrics.decided(code_of(&answer));
        (answer, trail)
    }

    /// Counts a decision that could not be recorded. What was allowed is then refused, unless the
    /// policy says otherwise; a refusal stands without a record.
    pub(super) fn unrecorded(&self, on_failure: OnFailure, error: &AuditError) -> Option<Denial> {
        self.metrics.unrecorded();
        (on_failure == OnFailure::Deny).then(|| Denial::unrecorded(error))
    }

    /// Hands over the request of a call under the present circumstances.
    pub(super) fn asking<T>(
        &self,
        guard: &Guard,
        call: &Call<'_>,
        standing: &Standing,
        then: impl FnOnce(&Request<'_>) -> T,
    ) -> T {
        let circumstances = self.circumstances(guard, &call.attributes);
        let groups = call.groups.as_ref().unwrap_or(&standing.groups);
        then(&Request {
            principal: call.principal,
            groups: &guard.asked(call.principal, groups),
            state: standing.name(),
            circumstances: circumstances.as_ref().unwrap_or(&self.nothing),
            variant: call.variant,
        })
    }

    /// Takes a call through the gates, and counts it.
    fn pass(
        &self,
        current: &Current,
        request: &Request<'_>,
        call: &Call<'_>,
        standing: &Standing,
        now: u64,
    ) -> Result<Permit, Denial> {
        let guard = &current.guard;
        let admitted = guard.admit(request, call.wanted())?;
        standing.check_unused(guard, call)?;
        let (unknown, narrowed) = (admitted.unknown_groups(), admitted.narrowed());
        self.note_groups(current, call, unknown, narrowed);
        let limits = admitted.limits();
        let (counted, answer) = match self.count(call, admitted.counted_as(), &limits, now) {
            Ok(counted) => (counted, Ok(())),
            Err(overrun) => (None, Err(overrun)),
        };
        let permit = admitted.meter(answer)?.validate(&call.arguments);
        let permit = permit.and_then(|it| standing.check_bound(it, &call.arguments));
        if let (Err(_), Some(counted)) = (&permit, counted)
            && !guard.counts_invalid()
        {
            self.limiter.refund(counted);
        }
        permit
    }

    fn count(
        &self,
        call: &Call<'_>,
        counted_as: &str,
        limits: &Limits,
        now: u64,
    ) -> Result<Option<Counted>, Overrun> {
        let agent = Key::of_agent(counted_as, call.principal);
        let tool = Key::of_tool(counted_as);
        let (counted, asked) = match (limits.agent, limits.tool) {
            (None, None) => return Ok(None),
            (Some(limit), None) => (self.limiter.check(now, agent, limit), [limit, limit]),
            (None, Some(limit)) => (self.limiter.check(now, tool, limit), [limit, limit]),
            (Some(one), Some(all)) => (
                self.limiter.check_both(now, (agent, one), (tool, all)),
                [one, all],
            ),
        };
        counted.map(Some).map_err(|exceeded| match exceeded {
            Exceeded::Limit { which, retry_after } => {
                let [first, second] = asked;
                let limit = if which == 0 { first } else { second };
                Overrun::Limit { limit, retry_after }
            }
            Exceeded::Full { retry_after } => Overrun::Capacity { retry_after },
        })
    }

    /// What counting a call would say, without counting it.
    pub(super) fn would_pass(
        &self,
        call: &Call<'_>,
        counted_as: &str,
        limits: &Limits,
        now: u64,
    ) -> Result<(), Overrun> {
        let agent = limits
            .agent
            .map(|it| (it, Key::of_agent(counted_as, call.principal)));
        let tool = limits.tool.map(|it| (it, Key::of_tool(counted_as)));
        for (limit, key) in agent.into_iter().chain(tool) {
            if let Some(retry_after) = self.limiter.wait(now, key, limit) {
                return Err(Overrun::Limit { limit, retry_after });
            }
        }
        Ok(())
    }

    /// Where a session stands. A client may name its state until the session has left its first one, and
    /// only where the policy allows it. Nothing is changed.
    pub(super) fn standing(&self, guard: &Guard, call: &Call<'_>, now: u64) -> Standing {
        let claimed = call.state.filter(|state| !state.is_empty());
        let mut standing = Standing {
            state: None,
            groups: RequestedGroups::Default,
            bounds_groups: false,
            state_used: false,
            bound: BoundValues::default(),
            stay: None,
            claim: Claim::None,
            open: false,
        };
        standing.state = guard.initial_state(call.principal).cloned();
        if !self.sessions.is_empty()
            && let Some(found) = self
                .sessions
                .standing(call.whose(), now, guard.sessions().idle)
        {
            standing.open = true;
            standing.groups = found.groups;
            standing.bounds_groups = found.bounds_groups;
            standing.state_used = found.state_used;
            standing.bound = found.bound;
            standing.stay = Some(found.stay);
            standing.state = Some(found.state);
            if found.started {
                if claimed.is_some_and(|claimed| claimed != standing.name()) {
                    standing.claim = Claim::Refused;
                }
                return standing;
            }
        }
        if let Some(claimed) = claimed.filter(|claimed| *claimed != standing.name()) {
            if guard.sessions().initial_states.contain(claimed) {
                standing.claim = Claim::Starts;
                standing.state_used = false;
                standing.bound = BoundValues::default();
                standing.stay = None;
                standing.state = Some(claimed.into());
            } else {
                standing.claim = Claim::Refused;
            }
        }
        standing
    }

    /// Remembers that a session is in use, and where a client started it.
    fn keep_session(
        &self,
        guard: &Guard,
        call: &Call<'_>,
        standing: &Standing,
        now: u64,
    ) -> Result<(), Denial> {
        if standing.open {
            self.sessions.touch(call.whose(), now);
        }
        let (Claim::Starts, Some(state)) = (&standing.claim, &standing.state) else {
            return Ok(());
        };
        let groups = match (standing.open, &call.groups) {
            // A request that opens its session by the way does not bind those after it.
            (false, Some(groups)) => (groups.clone(), false),
            // What one call asks for does not change what the session asked for when it was opened.
            (true, _) | (_, None) => (standing.groups.clone(), standing.bounds_groups),
        };
        let at = self.moment(guard, now);
        let start = Start::Claimed(Arc::clone(state));
        let opened = self.sessions.open(call.whose(), groups, start, at);
        opened.then_some(()).ok_or_else(Denial::too_many_sessions)
    }

    pub(super) fn moment(&self, guard: &Guard, now: u64) -> Moment {
        Moment {
            wall: self.clock.wall(),
            now,
            idle: guard.sessions().idle,
        }
    }

    /// Counts and puts down that a client was not believed.
    pub(super) fn note_claim(&self, current: &Current, call: &Call<'_>, standing: &Standing) {
        if standing.claim != Claim::Refused {
            return;
        }
        self.metrics.escalation("client_state");
        self.metrics.invalid_transition("client_state");
        let detail = object(json!({"state": standing.name(), "claimed": call.state}));
        let code = "client_state";
        self.note(current, call, Event::Escalation { code, detail });
    }

    /// Counts and puts down groups that were asked for in vain: no tool is in them, or they are not
    /// granted and were left away.
    pub(super) fn note_groups(
        &self,
        current: &Current,
        call: &Call<'_>,
        unknown: &[String],
        narrowed: &[String],
    ) {
        if !unknown.is_empty() {
            self.metrics.unknown_groups(unknown.len());
            let detail = object(json!({"groups": unknown}));
            let code = "unknown_group";
            self.note(current, call, Event::Escalation { code, detail });
        }
        if !narrowed.is_empty() {
            self.count_excess(&current.guard, narrowed.iter().map(String::as_str));
            let detail = object(json!({"groups": narrowed}));
            let code = "groups_left_away";
            self.note(current, call, Event::Escalation { code, detail });
        }
    }

    /// What a request may reach, counted.
    pub(super) fn list(
        &self,
        current: &Current,
        call: &Call<'_>,
        standing: &Standing,
    ) -> Result<Arc<Availability>, Denial> {
        let guard = &current.guard;
        self.asking(guard, call, standing, |request| {
            let make = || standing.available(guard, request);
            let available = if guard.has_conditions() {
                make().map(Arc::new)
            } else {
                let asked = Asked {
                    principal: request.principal.into(),
                    groups: request.groups.clone(),
                    state: request.state.into(),
                    state_used: standing.state_used,
                    variant: request.variant.map(Box::from),
                };
                current.listings.get(asked, make)
            };
            match &available {
                Ok(found) => {
                    self.metrics.listed(guard, request, found);
                    self.note_groups(current, call, &found.unknown_groups, &found.narrowed);
                }
                Err(denial) => self.note_refused_listing(current, call, request, denial),
            }
            available
        })
    }

    /// Counts and records that a list was asked for with groups that may not be asked for.
    pub(super) fn note_refused_listing(
        &self,
        current: &Current,
        call: &Call<'_>,
        request: &Request<'_>,
        denial: &Denial,
    ) {
        self.count_denial(&current.guard, denial, request);
        let detail = object(json!({
            "groups": request.groups.names().collect::<Vec<_>>(),
            "reason": denial.reason,
        }));
        let code = denial.code.as_str();
        self.note(current, call, Event::Escalation { code, detail });
    }

    fn count_denial(&self, guard: &Guard, denial: &Denial, request: &Request<'_>) {
        let unknown = request
            .groups
            .names()
            .filter(|name| *name != toolwarden_guard::EVERY && !guard.has_tools_in_group(name));
        let unknown = unknown.count();
        if unknown > 0 {
            self.metrics.unknown_groups(unknown);
        }
        if denial.code == Code::GroupsNotGranted {
            let excess = request.groups.names();
            self.count_excess(
                guard,
                excess.filter(|it| !guard.may_request(request.principal, it)),
            );
        }
        if denial.code == Code::FilteredByState {
            self.metrics.invalid_transition("not_available");
        }
    }

    fn count_excess<'g>(&self, guard: &Guard, groups: impl Iterator<Item = &'g str>) {
        for group in groups {
            self.metrics.group_denied(guard, group);
        }
        self.metrics.escalation("groups");
    }

    /// What conditions are held to; none where the policy has no conditions.
    fn circumstances(
        &self,
        guard: &Guard,
        attributes: &BTreeMap<String, Value>,
    ) -> Option<Circumstances> {
        guard.has_conditions().then(|| Circumstances {
            now: self.clock.wall(),
            zone: guard.zone().clone(),
            load: Some(f64::from_bits(self.load.load(Ordering::Relaxed))).filter(|it| !it.is_nan()),
            attributes: attributes.clone(),
        })
    }

    fn entry(&self, under: &Arc<Under>, about: About, event: Event) -> Entry {
        let at_ms = self.clock.wall().as_millisecond();
        let id = self.ids.next(at_ms);
        Entry::new(at_ms, id, about, event, Arc::clone(under))
    }

    /// Puts down what happened besides decisions. Where it fails it is counted.
    pub(super) fn note(&self, current: &Current, call: &Call<'_>, event: Event) {
        if let Event::Escalation { code, .. } = event
            && code != SUMMED_UP
            && !self.is_recorded(current, call.principal, code)
        {
            let about = call.about(&current.guard);
            self.misuse
                .observe(&self.entry(&current.under, about, event));
            return;
        }
        // Nobody waits for it.
        drop(self.begin(current, call, event));
    }

    /// As [`Self::note`], for those who wait for it.
    pub(super) fn begin(&self, current: &Current, call: &Call<'_>, event: Event) -> Ticket {
        let about = call.about(&current.guard);
        let entry = self.entry(&current.under, about, event);
        self.misuse.observe(&entry);
        self.log.begin(entry).unwrap_or_else(|_| {
            self.metrics.unrecorded();
            Ticket::settled()
        })
    }
}

/// The code of an answer.
pub(super) fn code_of<P>(answer: &Result<P, Denial>) -> Code {
    answer
        .as_ref()
        .map_or_else(|denial| denial.code, |_| Code::Allowed)
}

/// The time between two readings of the monotonic clock.
pub(super) const fn between(earlier: u64, later: u64) -> Duration {
    Duration::from_nanos(later.saturating_sub(earlier))
}
