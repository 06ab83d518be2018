//! Misuse alerts: patterns that only several records together show.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::broadcast;
use toolwarden_model::GroupName;

use super::denial_counts::DENIALS_SUMMARIZED;
use super::log_entry::{AuditEvent, LogEntry};

/// The maximum number of principals kept in memory.
const MAX_PRINCIPALS: usize = 10_000;
/// The maximum number of groups kept for a principal.
const MAX_GROUPS: usize = 256;
/// The maximum length of a group name that is kept, in bytes.
const MAX_GROUP_LEN: usize = 256;
/// The highest threshold: so many times are kept per principal and rule.
const MAX_TIMES: usize = 10_000;
/// How many alerts a subscriber may lag behind.
const BACKLOG: usize = 1024;

/// When the behaviour of a principal raises an alert. A threshold of zero turns its rule off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MisuseRules {
    /// Escalations within the window.
    pub escalations: usize,
    /// Requests with the session of another principal within the window.
    pub foreign_sessions: usize,
    /// Denied calls within the window.
    pub denials: usize,
    /// The number of requests with groups after which a group that the principal never named before raises
    /// an alert.
    pub new_groups_after: usize,
    /// How far back records count.
    pub window: Duration,
    /// The minimum time between two alerts of the same rule for the same principal.
    pub alert_interval: Duration,
}

impl Default for MisuseRules {
    fn default() -> Self {
        Self {
            escalations: 5,
            foreign_sessions: 3,
            denials: 30,
            new_groups_after: 20,
            window: Duration::from_secs(600),
            alert_interval: Duration::from_secs(3600),
        }
    }
}

/// A rule for misuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MisuseRule {
    /// The principal repeatedly requested more than it is granted.
    Escalations,
    /// The principal used sessions of other principals.
    ForeignSessions,
    /// Many calls of the principal were denied.
    Denials,
    /// The principal requested a group that it never requested before.
    NewGroups,
}

impl MisuseRule {
    /// Every rule.
    pub const ALL: [Self; 4] = [
        Self::Escalations,
        Self::ForeignSessions,
        Self::Denials,
        Self::NewGroups,
    ];

    /// The stable id, which is the key in the settings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Escalations => "escalations",
            Self::ForeignSessions => "foreign_sessions",
            Self::Denials => "denials",
            Self::NewGroups => "new_groups",
        }
    }
}

/// A principal whose behaviour matches a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MisuseAlert {
    /// The principal.
    pub principal: String,
    /// The rule.
    pub rule: MisuseRule,
    /// What the principal did, in one sentence.
    pub summary: String,
    /// The record that triggered the alert.
    pub record: String,
    /// The time, in milliseconds since 1970.
    pub at_ms: i64,
}

/// Counts the actions of principals, in bounded memory.
#[derive(Debug)]
pub(super) struct MisuseMonitor {
    state: Mutex<MonitorState>,
    alerts: broadcast::Sender<Arc<MisuseAlert>>,
}

#[derive(Debug, Default)]
struct MonitorState {
    rules: MisuseRules,
    principals: BTreeMap<Box<str>, PrincipalActivity>,
}

/// The history of one principal.
#[derive(Debug, Default)]
struct PrincipalActivity {
    last_ms: i64,
    /// The latest times for each rule.
    times: BTreeMap<MisuseRule, VecDeque<i64>>,
    /// When each rule raised its last alert.
    alerted: BTreeMap<MisuseRule, i64>,
    groups: BTreeSet<Box<str>>,
    /// The number of requests that named groups.
    requests: usize,
}

impl Default for MisuseMonitor {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            alerts: broadcast::channel(BACKLOG).0,
        }
    }
}

impl MisuseMonitor {
    pub(super) fn set_rules(&self, rules: MisuseRules) {
        self.state().rules = rules;
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Arc<MisuseAlert>> {
        self.alerts.subscribe()
    }

    /// Counts an entry of the log. Allowed calls without groups cost nothing.
    pub(super) fn observe(&self, entry: &LogEntry) {
        let Some((counted, groups)) = matching_rules(&entry.event) else {
            return;
        };
        if entry.principal().is_empty() {
            return;
        }
        let raised = self.state().observe(entry, counted, &groups);
        for (rule, summary) in raised {
            let alert = MisuseAlert {
                principal: entry.principal().to_owned(),
                rule,
                summary,
                record: entry.id.to_string(),
                at_ms: entry.at_ms,
            };
            // An alert without subscribers is dropped.
            let _unheard = self.alerts.send(Arc::new(alert));
        }
    }

    fn state(&self) -> MutexGuard<'_, MonitorState> {
        // After a panic, the counts are at most too low.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rules that an event counts for, and the groups it names; `None` if it counts for none.
fn matching_rules(event: &AuditEvent) -> Option<(&'static [MisuseRule], Vec<&str>)> {
    match event {
        AuditEvent::Escalation {
            code: "foreign_session",
            ..
        } => Some((
            &[MisuseRule::ForeignSessions, MisuseRule::Escalations],
            Vec::new(),
        )),
        // The denials that it summarizes were counted when they happened.
        AuditEvent::Escalation {
            code: DENIALS_SUMMARIZED,
            ..
        } => None,
        AuditEvent::Escalation { .. } => Some((&[MisuseRule::Escalations], Vec::new())),
        AuditEvent::Decision {
            denial: Some(_), ..
        } => Some((&[MisuseRule::Denials], Vec::new())),
        AuditEvent::Decision {
            denial: None,
            groups: Some(groups),
            ..
        } => Some((&[], groups.iter().map(GroupName::as_str).collect())),
        AuditEvent::Session {
            code: "opened",
            detail,
        } => {
            let groups = detail.get("granted_groups").and_then(Value::as_array)?;
            Some((&[], groups.iter().filter_map(Value::as_str).collect()))
        }
        AuditEvent::Decision { .. }
        | AuditEvent::Outcome { .. }
        | AuditEvent::Transition { .. }
        | AuditEvent::Session { .. }
        | AuditEvent::Policy { .. }
        | AuditEvent::Administration { .. } => None,
    }
}

impl MonitorState {
    fn observe(
        &mut self,
        entry: &LogEntry,
        counted: &[MisuseRule],
        groups: &[&str],
    ) -> Vec<(MisuseRule, String)> {
        let (rules, now) = (self.rules, entry.at_ms);
        let principal = entry.principal();
        self.evict_quiet(principal, now);
        let behaviour = self.principals.entry(principal.into()).or_default();
        behaviour.last_ms = now;
        let mut raised = Vec::new();
        for rule in counted {
            if let Some(count) = behaviour.count(*rule, &rules, now) {
                raised.push((*rule, summary(*rule, count, &rules)));
            }
        }
        if let Some(new) = behaviour.new_groups(groups, &rules) {
            let named = new.join("`, `");
            let rule = MisuseRule::NewGroups;
            raised.push((
                rule,
                format!("requested groups that it never requested before: `{named}`"),
            ));
        }
        raised.retain(|(rule, _)| behaviour.is_due(*rule, &rules, now));
        raised
    }

    /// If there is no room for another principal, drops those that were idle for a window; if there are
    /// none, drops all.
    fn evict_quiet(&mut self, principal: &str, now: i64) {
        if self.principals.len() < MAX_PRINCIPALS || self.principals.contains_key(principal) {
            return;
        }
        let window = milliseconds(self.rules.window.max(self.rules.alert_interval));
        self.principals
            .retain(|_, it| now.saturating_sub(it.last_ms) < window);
        if self.principals.len() >= MAX_PRINCIPALS {
            self.principals.clear();
        }
    }
}

impl PrincipalActivity {
    /// Counts a record; returns the number within the window once it reaches the threshold.
    fn count(&mut self, rule: MisuseRule, rules: &MisuseRules, now: i64) -> Option<usize> {
        let threshold = match rule {
            MisuseRule::Escalations => rules.escalations,
            MisuseRule::ForeignSessions => rules.foreign_sessions,
            MisuseRule::Denials => rules.denials,
            MisuseRule::NewGroups => 0,
        };
        let threshold = threshold.min(MAX_TIMES);
        if threshold == 0 {
            return None;
        }
        let times = self.times.entry(rule).or_default();
        times.push_back(now);
        let window = milliseconds(rules.window);
        while times.len() > threshold
            || times
                .front()
                .is_some_and(|first| now.saturating_sub(*first) > window)
        {
            times.pop_front();
        }
        (times.len() >= threshold).then_some(threshold)
    }

    /// The groups that the principal never named before, once its usual groups are known.
    fn new_groups(&mut self, groups: &[&str], rules: &MisuseRules) -> Option<Vec<String>> {
        if groups.is_empty() || rules.new_groups_after == 0 {
            return None;
        }
        let is_familiar = self.requests >= rules.new_groups_after;
        self.requests = self.requests.saturating_add(1);
        let mut new = Vec::new();
        let short = groups.iter().filter(|group| group.len() <= MAX_GROUP_LEN);
        for group in short {
            if self.groups.len() < MAX_GROUPS && self.groups.insert((*group).into()) {
                new.push(group.escape_debug().to_string());
            }
        }
        (is_familiar && !new.is_empty()).then_some(new)
    }

    /// Whether a rule may raise an alert again.
    fn is_due(&mut self, rule: MisuseRule, rules: &MisuseRules, now: i64) -> bool {
        let pause = milliseconds(rules.alert_interval);
        let last = self.alerted.get(&rule);
        let is_due = last.is_none_or(|last| now.saturating_sub(*last) >= pause);
        if is_due {
            self.alerted.insert(rule, now);
        }
        is_due
    }
}

fn summary(rule: MisuseRule, count: usize, rules: &MisuseRules) -> String {
    let what = match rule {
        MisuseRule::Escalations => "requested more than it is granted",
        MisuseRule::ForeignSessions => "used the session of another principal",
        MisuseRule::Denials => "was denied",
        MisuseRule::NewGroups => "asked for another group",
    };
    let seconds = rules.window.as_secs();
    format!("{what} {count} times or more within {seconds} s")
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
