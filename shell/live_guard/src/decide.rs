//! The parts of a decision that depend on changing state: sessions, counters, time and the log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_guard::{
    AuditFailureMode, Availability, BoundValues, ConditionInputs, Denial, Feature, Guard,
    INITIAL_STATE, LimitExceeded, Permit, ReasonCode, Request, RequestedGroups, ToolLimits,
};

use toolwarden_model::{GroupName, StateName};

use super::active_policy::ActivePolicy;
use super::audit::{AuditError, Ticket};
use super::availability_cache::AvailabilityKey;
use super::call::Call;
use super::denial_counts::DENIALS_SUMMARIZED;
use super::entry_policy::EntryPolicy;
use super::guard_state::GuardState;
use super::limiter::{CountedCall, RateKey, RateLimitExceeded};
use super::log_entry::{AuditEvent, EntryId, EntrySubject, LogEntry, object};
use super::session_table::{SessionKey, SessionStart, SessionTime, StateClaim};
use super::used_feature::UsedFeature;

/// The parts of a session that the gates use.
#[derive(Debug)]
pub(super) struct SessionContext {
    /// `None` is the initial state.
    pub(super) state: Option<StateName>,
    pub(super) groups: RequestedGroups,
    /// Whether requests may ask for no more than these groups.
    pub(super) bounds_groups: bool,
    /// Whether the single call that its state allows was permitted.
    pub(super) state_used: bool,
    /// The values that calls in its state must repeat.
    pub(super) bound: BoundValues,
    /// The current stay in its state, if the session is open.
    pub(super) state_visit: Option<StateClaim>,
    /// How the state that the client names is treated.
    client_claim: ClientClaim,
    /// Whether the session is open.
    pub(super) open: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum ClientClaim {
    /// The client named no state, or the known one.
    None,
    /// The session may start in the named state.
    Accepted,
    /// The session is not in the named state.
    Refused,
}

/// A decision that is not recorded yet.
#[derive(Debug)]
pub(super) struct UnrecordedDecision {
    pub(super) answer: Result<Permit, Denial>,
    /// `None` if the denial is only summarized with others.
    pub(super) entry: Option<LogEntry>,
    pub(super) trace: DecisionTrace,
    pub(super) on_failure: AuditFailureMode,
}

/// The parts of a decision that later steps of the call need.
#[derive(Debug)]
pub(super) struct DecisionTrace {
    pub(super) id: EntryId,
    /// The state in which it was made; `None` is the initial state.
    pub(super) state: Option<StateName>,
    /// The single-use state that the call has claimed.
    pub(super) claim: Option<StateClaim>,
    pub(super) decided_at: u64,
    pub(super) latency: Duration,
}

impl SessionContext {
    pub(super) fn state_name(&self) -> &StateName {
        self.state.as_ref().unwrap_or(&INITIAL_STATE)
    }

    /// How a session that is opened now starts.
    pub(super) fn start(&self) -> SessionStart {
        let state = self.state_name().clone();
        match self.client_claim {
            ClientClaim::Accepted => SessionStart::Claimed(state),
            ClientClaim::None | ClientClaim::Refused => SessionStart::Initial(state),
        }
    }
}

impl<'c> Call<'c> {
    pub(super) fn session_key(&self) -> SessionKey<'c> {
        SessionKey {
            principal: self.principal,
            session: self.session.unwrap_or_default(),
        }
    }

    /// The requested tool or feature.
    pub(super) fn requested_feature(&self) -> Feature<'c> {
        self.feature.unwrap_or_else(|| self.tool.into())
    }

    fn entry_subject(&self, guard: &Guard) -> EntrySubject {
        EntrySubject {
            principal: guard.principal_ref(self.principal),
            tool: guard.tool_ref(&self.requested_feature().record_name()),
            session: self.session.map(Box::from),
        }
    }
}

impl GuardState {
    /// Decides a call and records the decision: a call whose decision cannot be recorded is denied, unless
    /// the policy says otherwise.
    pub(super) fn decide(&self, call: &Call<'_>) -> (Result<Permit, Denial>, DecisionTrace) {
        let (answer, trail) = self.record_decision(self.evaluate(call));
        if answer.is_err() {
            self.release_state(call.session_key(), trail.claim);
        }
        (answer, trail)
    }

    /// Evaluates the gates for a call. The caller must record the result.
    pub(super) fn evaluate(&self, call: &Call<'_>) -> UnrecordedDecision {
        let began = self.clock.monotonic();
        let current = self.policy_for_call(call);
        let guard = &current.guard;
        let session_context = self.session_context(guard, call, began);
        let answer = self.with_request(guard, call, &session_context, |request| {
            let answer = self.evaluate_gates(&current, request, call, &session_context, began);
            if let Err(denial) = &answer {
                self.count_denial(guard, denial, request);
            }
            answer
        });
        let mut claim = None;
        let answer = answer.and_then(|permit| {
            self.update_session(guard, call, &session_context, began)?;
            claim = self.claim_state(guard, call, &session_context, began)?;
            Ok(permit)
        });
        let ended = self.clock.monotonic();
        self.record_refused_claim(&current, call, &session_context);
        let mut decision =
            self.build_decision(&current, call, session_context, answer, (began, ended));
        decision.trace.claim = claim;
        decision
    }

    /// Records that a call was denied before the gates could decide it.
    pub(super) fn record_refusal(&self, call: &Call<'_>, denial: Denial) -> Denial {
        let now = self.clock.monotonic();
        let current = self.policy_for_call(call);
        let session_context = self.session_context(&current.guard, call, now);
        let answer = Err(denial.clone());
        let decision = self.build_decision(&current, call, session_context, answer, (now, now));
        let (answer, _) = self.record_decision(decision);
        answer.err().unwrap_or(denial)
    }

    /// Like [`Self::record_refusal`], without waiting for the record.
    pub(super) fn queue_refusal(&self, call: &Call<'_>, denial: Denial) -> Denial {
        let now = self.clock.monotonic();
        let current = self.policy_for_call(call);
        let session_context = self.session_context(&current.guard, call, now);
        let answer = Err(denial.clone());
        let decision = self.build_decision(&current, call, session_context, answer, (now, now));
        if let Some(entry) = decision.entry
            && let Err(error) = self.log.append(entry)
        {
            // A denial stands even without a record.
            drop(self.handle_unrecorded(decision.on_failure, &error));
        }
        self.metrics.count_decision(denial.code);
        denial
    }

    fn build_decision(
        &self,
        current: &ActivePolicy,
        call: &Call<'_>,
        session_context: SessionContext,
        answer: Result<Permit, Denial>,
        (began, ended): (u64, u64),
    ) -> UnrecordedDecision {
        let latency = elapsed(began, ended);
        let event = AuditEvent::Decision {
            denial: answer.as_ref().err().cloned().map(Box::new),
            groups: call.groups.as_ref().and_then(RequestedGroups::named),
            state: session_context.state.clone(),
            arguments: Arc::clone(&call.arguments),
            feature: call.feature.as_ref().map(UsedFeature::of),
            attributes: (!call.attributes.is_empty()).then(|| Box::new(call.attributes.clone())),
            issuer: call.claims.and_then(|claims| claims.issuer.clone()),
            latency,
        };
        let entry = self.entry(
            &current.entry_policy,
            call.entry_subject(&current.guard),
            event,
        );
        self.misuse.observe(&entry);
        let code = answer.as_ref().err().map(|denial| denial.code.as_str());
        let is_recorded =
            code.is_none_or(|it| self.should_record_denial(current, call.principal, it));
        let trail = DecisionTrace {
            id: entry.id,
            state: session_context.state,
            claim: None,
            decided_at: ended,
            latency,
        };
        UnrecordedDecision {
            answer,
            entry: is_recorded.then_some(entry),
            trace: trail,
            on_failure: current.guard.audit().on_failure,
        }
    }

    fn record_decision(
        &self,
        decision: UnrecordedDecision,
    ) -> (Result<Permit, Denial>, DecisionTrace) {
        let UnrecordedDecision {
            mut answer,
            entry,
            trace: trail,
            on_failure,
        } = decision;
        if let Some(entry) = entry
            && let Err(error) = self.log.append_and_wait(entry)
            && let Some(denial) = self.handle_unrecorded(on_failure, &error)
        {
            answer = answer.and(Err(denial));
        }
        self.metrics.count_decision(code_of(&answer));
        (answer, trail)
    }

    /// Counts a decision that could not be recorded. An allowed call is then denied, unless the policy says
    /// otherwise; a denial stands even without a record.
    pub(super) fn handle_unrecorded(
        &self,
        on_failure: AuditFailureMode,
        error: &AuditError,
    ) -> Option<Denial> {
        self.metrics.count_unrecorded();
        (on_failure == AuditFailureMode::Deny).then(|| Denial::audit_unavailable(error))
    }

    /// Calls a function with the request of a call under the current circumstances.
    pub(super) fn with_request<T>(
        &self,
        guard: &Guard,
        call: &Call<'_>,
        session_context: &SessionContext,
        then: impl FnOnce(&Request<'_>) -> T,
    ) -> T {
        let condition_inputs = self.condition_inputs(guard, &call.attributes);
        let groups = call.groups.as_ref().unwrap_or(&session_context.groups);
        then(&Request {
            principal: call.principal,
            groups: &guard.asked(call.principal, groups),
            state: session_context.state_name(),
            condition_inputs: condition_inputs.as_ref().unwrap_or(&self.nothing),
            variant: call.variant,
        })
    }

    /// Evaluates the gates for a call, and counts it.
    fn evaluate_gates(
        &self,
        current: &ActivePolicy,
        request: &Request<'_>,
        call: &Call<'_>,
        session_context: &SessionContext,
        now: u64,
    ) -> Result<Permit, Denial> {
        let guard = &current.guard;
        let admitted = guard.admit(request, call.requested_feature())?;
        session_context.check_state_unused(guard, call)?;
        let (unknown, narrowed) = (admitted.unknown_groups(), admitted.dropped_groups());
        self.record_refused_groups(current, call, unknown, narrowed);
        let limits = admitted.limits();
        let (counted, answer) = match self.count_call(call, admitted.counted_as(), &limits, now) {
            Ok(counted) => (counted, Ok(())),
            Err(overrun) => (None, Err(overrun)),
        };
        let permit = admitted.meter(answer)?.validate(&call.arguments);
        let permit =
            permit.and_then(|it| session_context.check_bound_arguments(it, &call.arguments));
        if let (Err(_), Some(counted)) = (&permit, counted)
            && !guard.counts_invalid()
        {
            self.limiter.refund(counted);
        }
        permit
    }

    fn count_call(
        &self,
        call: &Call<'_>,
        counted_as: &str,
        limits: &ToolLimits,
        now: u64,
    ) -> Result<Option<CountedCall>, LimitExceeded> {
        let agent = RateKey::of_agent(counted_as, call.principal);
        let tool = RateKey::of_tool(counted_as);
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
            RateLimitExceeded::Limit { which, retry_after } => {
                let [first, second] = asked;
                let limit = if which == 0 { first } else { second };
                LimitExceeded::Limit { limit, retry_after }
            }
            RateLimitExceeded::Full { retry_after } => LimitExceeded::Capacity { retry_after },
        })
    }

    /// The answer of the rate gate for a call, without counting it.
    pub(super) fn check_limits(
        &self,
        call: &Call<'_>,
        counted_as: &str,
        limits: &ToolLimits,
        now: u64,
    ) -> Result<(), LimitExceeded> {
        let agent = limits
            .agent
            .map(|it| (it, RateKey::of_agent(counted_as, call.principal)));
        let tool = limits.tool.map(|it| (it, RateKey::of_tool(counted_as)));
        for (limit, key) in agent.into_iter().chain(tool) {
            if let Some(retry_after) = self.limiter.time_until_allowed(now, key, limit) {
                return Err(LimitExceeded::Limit { limit, retry_after });
            }
        }
        Ok(())
    }

    /// The status of a session. A client may name its state until the session has left its first one, and
    /// only if the policy allows it. Nothing changes.
    pub(super) fn session_context(
        &self,
        guard: &Guard,
        call: &Call<'_>,
        now: u64,
    ) -> SessionContext {
        let claimed = call.state.filter(|state| **state != "");
        let mut session_context = SessionContext {
            state: None,
            groups: RequestedGroups::Default,
            bounds_groups: false,
            state_used: false,
            bound: BoundValues::default(),
            state_visit: None,
            client_claim: ClientClaim::None,
            open: false,
        };
        session_context.state = guard.initial_state(call.principal).cloned();
        if !self.sessions.is_empty()
            && let Some(found) =
                self.sessions
                    .find_open(call.session_key(), now, guard.sessions().idle)
        {
            session_context.open = true;
            session_context.groups = found.groups;
            session_context.bounds_groups = found.bounds_groups;
            session_context.state_used = found.state_used;
            session_context.bound = found.bound;
            session_context.state_visit = Some(found.state_visit);
            session_context.state = Some(found.state);
            if found.started {
                if claimed.is_some_and(|claimed| claimed != session_context.state_name()) {
                    session_context.client_claim = ClientClaim::Refused;
                }
                return session_context;
            }
        }
        if let Some(claimed) = claimed.filter(|claimed| *claimed != session_context.state_name()) {
            if guard.sessions().initial_states.contains(claimed.as_str()) {
                session_context.client_claim = ClientClaim::Accepted;
                session_context.state_used = false;
                session_context.bound = BoundValues::default();
                session_context.state_visit = None;
                session_context.state = Some(claimed.clone());
            } else {
                session_context.client_claim = ClientClaim::Refused;
            }
        }
        session_context
    }

    /// Marks a session as used, and stores the state in which a client started it.
    fn update_session(
        &self,
        guard: &Guard,
        call: &Call<'_>,
        session_context: &SessionContext,
        now: u64,
    ) -> Result<(), Denial> {
        if session_context.open {
            self.sessions.touch(call.session_key(), now);
        }
        let (ClientClaim::Accepted, Some(state)) =
            (&session_context.client_claim, &session_context.state)
        else {
            return Ok(());
        };
        let groups = match (session_context.open, &call.groups) {
            // A request that opens its session implicitly does not bind later requests.
            (false, Some(groups)) => (groups.clone(), false),
            // The groups of one call do not change the groups that the session was opened with.
            (true, _) | (_, None) => (
                session_context.groups.clone(),
                session_context.bounds_groups,
            ),
        };
        let at = self.session_time(guard, now);
        let start = SessionStart::Claimed(state.clone());
        let opened = self.sessions.open(call.session_key(), groups, start, at);
        opened.then_some(()).ok_or_else(Denial::too_many_sessions)
    }

    pub(super) fn session_time(&self, guard: &Guard, now: u64) -> SessionTime {
        SessionTime {
            wall: self.clock.wall(),
            now,
            idle: guard.sessions().idle,
        }
    }

    /// Counts and records that the state which a client named was not accepted.
    pub(super) fn record_refused_claim(
        &self,
        current: &ActivePolicy,
        call: &Call<'_>,
        session_context: &SessionContext,
    ) {
        if session_context.client_claim != ClientClaim::Refused {
            return;
        }
        self.metrics.count_escalation("client_state");
        self.metrics.count_invalid_transition("client_state");
        let detail = object(json!({"state": session_context.state_name(), "claimed": call.state}));
        let code = "client_state";
        self.record_event(current, call, AuditEvent::Escalation { code, detail });
    }

    /// Counts and records requested groups without effect: they have no tools, or they are not granted and
    /// were left out.
    pub(super) fn record_refused_groups(
        &self,
        current: &ActivePolicy,
        call: &Call<'_>,
        unknown: &[GroupName],
        narrowed: &[GroupName],
    ) {
        if !unknown.is_empty() {
            self.metrics.count_unknown_groups(unknown.len());
            let detail = object(json!({"groups": unknown}));
            let code = "unknown_group";
            self.record_event(current, call, AuditEvent::Escalation { code, detail });
        }
        if !narrowed.is_empty() {
            self.count_excess(&current.guard, narrowed.iter());
            let detail = object(json!({"groups": narrowed}));
            let code = "groups_left_away";
            self.record_event(current, call, AuditEvent::Escalation { code, detail });
        }
    }

    /// The tools that a request may reach, counted in the metrics.
    pub(super) fn list_available(
        &self,
        current: &ActivePolicy,
        call: &Call<'_>,
        session_context: &SessionContext,
    ) -> Result<Arc<Availability>, Denial> {
        let guard = &current.guard;
        self.with_request(guard, call, session_context, |request| {
            let make = || session_context.available(guard, request);
            let available = if guard.has_conditions() {
                make().map(Arc::new)
            } else {
                let asked = AvailabilityKey {
                    principal: request.principal.into(),
                    groups: request.groups.clone(),
                    state: request.state.clone(),
                    state_used: session_context.state_used,
                    variant: request.variant.map(Box::from),
                };
                current.availability_cache.get_or_compute(asked, make)
            };
            match &available {
                Ok(found) => {
                    self.metrics.count_listing(guard, request, found);
                    self.record_refused_groups(
                        current,
                        call,
                        &found.unknown_groups,
                        &found.dropped_groups,
                    );
                }
                Err(denial) => self.record_refused_listing(current, call, request, denial),
            }
            available
        })
    }

    /// Counts and records a request for a list with groups that it may not name.
    pub(super) fn record_refused_listing(
        &self,
        current: &ActivePolicy,
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
        self.record_event(current, call, AuditEvent::Escalation { code, detail });
    }

    fn count_denial(&self, guard: &Guard, denial: &Denial, request: &Request<'_>) {
        let unknown = request.groups.names().filter(|name| {
            **name != toolwarden_guard::EVERY_GROUP && !guard.has_tools_in_group(name)
        });
        let unknown = unknown.count();
        if unknown > 0 {
            self.metrics.count_unknown_groups(unknown);
        }
        if denial.code == ReasonCode::GroupsNotGranted {
            let excess = request.groups.names();
            self.count_excess(
                guard,
                excess.filter(|it| !guard.may_request(request.principal, it)),
            );
        }
        if denial.code == ReasonCode::FilteredByState {
            self.metrics.count_invalid_transition("not_available");
        }
    }

    fn count_excess<'g>(&self, guard: &Guard, groups: impl Iterator<Item = &'g GroupName>) {
        for group in groups {
            self.metrics.count_group_denial(guard, group);
        }
        self.metrics.count_escalation("groups");
    }

    /// The circumstances for conditions; empty if the policy has no conditions.
    fn condition_inputs(
        &self,
        guard: &Guard,
        attributes: &BTreeMap<String, Value>,
    ) -> Option<ConditionInputs> {
        guard.has_conditions().then(|| ConditionInputs {
            now: self.clock.wall(),
            zone: guard.zone().clone(),
            load: Some(f64::from_bits(self.load.load(Ordering::Relaxed))).filter(|it| !it.is_nan()),
            attributes: attributes.clone(),
        })
    }

    fn entry(&self, under: &Arc<EntryPolicy>, about: EntrySubject, event: AuditEvent) -> LogEntry {
        let at_ms = self.clock.wall().as_millisecond();
        let id = self.ids.next(at_ms);
        LogEntry::new(at_ms, id, about, event, Arc::clone(under))
    }

    /// Records an event that is not a decision. A failure is counted.
    pub(super) fn record_event(&self, current: &ActivePolicy, call: &Call<'_>, event: AuditEvent) {
        if let AuditEvent::Escalation { code, .. } = event
            && code != DENIALS_SUMMARIZED
            && !self.should_record_denial(current, call.principal, code)
        {
            let about = call.entry_subject(&current.guard);
            self.misuse
                .observe(&self.entry(&current.entry_policy, about, event));
            return;
        }
        // No caller waits for this record.
        drop(self.queue_event(current, call, event));
    }

    /// Like [`Self::record_event`], for callers that wait for the record.
    pub(super) fn queue_event(
        &self,
        current: &ActivePolicy,
        call: &Call<'_>,
        event: AuditEvent,
    ) -> Ticket {
        let about = call.entry_subject(&current.guard);
        let entry = self.entry(&current.entry_policy, about, event);
        self.misuse.observe(&entry);
        self.log.append(entry).unwrap_or_else(|_| {
            self.metrics.count_unrecorded();
            Ticket::completed()
        })
    }
}

/// The code of an answer.
pub(super) fn code_of<P>(answer: &Result<P, Denial>) -> ReasonCode {
    answer
        .as_ref()
        .map_or_else(|denial| denial.code, |_| ReasonCode::Allowed)
}

/// The time between two readings of the monotonic clock.
pub(super) const fn elapsed(earlier: u64, later: u64) -> Duration {
    Duration::from_nanos(later.saturating_sub(earlier))
}
