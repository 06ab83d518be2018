//! Alerts on misuse: what single records show only together.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::broadcast;

use super::denial_rate::SUMMED_UP;
use super::entry::{Entry, Event};

/// The most principals that are remembered.
const MOST_PRINCIPALS: usize = 10_000;
/// The most groups that are remembered of a principal.
const MOST_GROUPS: usize = 256;
/// The longest name of a group that is remembered, in bytes.
const MAX_GROUP: usize = 256;
/// The highest threshold: so many times are remembered per principal and rule.
const MOST_TIMES: usize = 10_000;
/// How many alerts a listener may be behind.
const BACKLOG: usize = 1024;

/// When the behaviour of a principal is an alert. A threshold of zero turns its rule off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MisuseRules {
    /// Escalations within the window.
    pub escalations: usize,
    /// Requests with the session of another principal within the window.
    pub foreign_sessions: usize,
    /// Denied calls within the window.
    pub denials: usize,
    /// After so many requests that named groups, a group the principal never named before.
    pub new_groups_after: usize,
    /// How far back records count.
    pub window: Duration,
    /// How often the same rule raises an alert for the same principal at most.
    pub every: Duration,
}

impl Default for MisuseRules {
    fn default() -> Self {
        Self {
            escalations: 5,
            foreign_sessions: 3,
            denials: 30,
            new_groups_after: 20,
            window: Duration::from_secs(600),
            every: Duration::from_secs(3600),
        }
    }
}

/// A rule for misuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MisuseRule {
    /// The principal asked again and again for more than it is granted.
    Escalations,
    /// The principal came with sessions of others.
    ForeignSessions,
    /// Many calls of the principal were denied.
    Denials,
    /// The principal asked for a group it never asked for before.
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

/// A principal that behaves as a rule describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MisuseAlert {
    /// The principal.
    pub principal: String,
    /// The rule.
    pub rule: MisuseRule,
    /// What it did, in one sentence.
    pub summary: String,
    /// The record that made it an alert.
    pub record: String,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
}

/// Counts what principals do, in bounded memory.
#[derive(Debug)]
pub(super) struct MisuseMonitor {
    state: Mutex<State>,
    alerts: broadcast::Sender<Arc<MisuseAlert>>,
}

#[derive(Debug, Default)]
struct State {
    rules: MisuseRules,
    principals: BTreeMap<Box<str>, Behaviour>,
}

/// What is remembered of a principal.
#[derive(Debug, Default)]
struct Behaviour {
    last_ms: i64,
    /// The latest times of each rule.
    times: BTreeMap<MisuseRule, VecDeque<i64>>,
    /// When each rule raised its last alert.
    alerted: BTreeMap<MisuseRule, i64>,
    groups: BTreeSet<Box<str>>,
    /// How many requests named groups.
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

    /// Takes an entry of the log into account. Calls that were allowed and named no groups cost nothing.
    pub(super) fn observe(&self, entry: &Entry) {
        let Some((counted, groups)) = signs(&entry.event) else {
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
            // Nobody has to listen.
            let _unheard = self.alerts.send(Arc::new(alert));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What a panic leaves behind is counted too little at most.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rules an event counts for, and the groups it names; nothing for one that says nothing.
fn signs(event: &Event) -> Option<(&'static [MisuseRule], Vec<&str>)> {
    match event {
        Event::Escalation {
            code: "foreign_session",
            ..
        } => Some((
            &[MisuseRule::ForeignSessions, MisuseRule::Escalations],
            Vec::new(),
        )),
        // The denials it sums up were counted when they happened.
        Event::Escalation {
            code: SUMMED_UP, ..
        } => None,
        Event::Escalation { .. } => Some((&[MisuseRule::Escalations], Vec::new())),
        Event::Decision {
            denial: Some(_), ..
        } => Some((&[MisuseRule::Denials], Vec::new())),
        Event::Decision {
            denial: None,
            groups: Some(groups),
            ..
        } => Some((&[], groups.iter().map(|it| &**it).collect())),
        Event::Session {
            code: "opened",
            detail,
        } => {
            let groups = detail.get("granted_groups").and_then(Value::as_array)?;
            Some((&[], groups.iter().filter_map(Value::as_str).collect()))
        }
        Event::Decision { .. }
        | Event::Outcome { .. }
        | Event::Transition { .. }
        | Event::Session { .. }
        | Event::Policy { .. }
        | Event::Administration { .. } => None,
    }
}

impl State {
    fn observe(
        &mut self,
        entry: &Entry,
        counted: &[MisuseRule],
        groups: &[&str],
    ) -> Vec<(MisuseRule, String)> {
        let (rules, now) = (self.rules, entry.at_ms);
        let principal = entry.principal();
        self.make_room(principal, now);
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
                format!("asked for groups it never asked for before: `{named}`"),
            ));
        }
        raised.retain(|(rule, _)| behaviour.is_due(*rule, &rules, now));
        raised
    }

    /// Forgets principals that were quiet for a window where there is no room for another; where none was,
    /// all of them.
    fn make_room(&mut self, principal: &str, now: i64) {
        if self.principals.len() < MOST_PRINCIPALS || self.principals.contains_key(principal) {
            return;
        }
        let window = milliseconds(self.rules.window.max(self.rules.every));
        self.principals
            .retain(|_, it| now.saturating_sub(it.last_ms) < window);
        if self.principals.len() >= MOST_PRINCIPALS {
            self.principals.clear();
        }
    }
}

impl Behaviour {
    /// Counts a record; how many there are within the window once they reach the threshold.
    fn count(&mut self, rule: MisuseRule, rules: &MisuseRules, now: i64) -> Option<usize> {
        let threshold = match rule {
            MisuseRule::Escalations => rules.escalations,
            MisuseRule::ForeignSessions => rules.foreign_sessions,
            MisuseRule::Denials => rules.denials,
            MisuseRule::NewGroups => 0,
        };
        let threshold = threshold.min(MOST_TIMES);
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

    /// The groups the principal never named before, once it is known which ones it names.
    fn new_groups(&mut self, groups: &[&str], rules: &MisuseRules) -> Option<Vec<String>> {
        if groups.is_empty() || rules.new_groups_after == 0 {
            return None;
        }
        let is_familiar = self.requests >= rules.new_groups_after;
        self.requests = self.requests.saturating_add(1);
        let mut new = Vec::new();
        let short = groups.iter().filter(|group| group.len() <= MAX_GROUP);
        for group in short {
            if self.groups.len() < MOST_GROUPS && self.groups.insert((*group).into()) {
                new.push(group.escape_debug().to_string());
            }
        }
        (is_familiar && !new.is_empty()).then_some(new)
    }

    /// Whether a rule may raise an alert again.
    fn is_due(&mut self, rule: MisuseRule, rules: &MisuseRules, now: i64) -> bool {
        let pause = milliseconds(rules.every);
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
        MisuseRule::Escalations => "asked for more than it is granted",
        MisuseRule::ForeignSessions => "came with the session of another principal",
        MisuseRule::Denials => "was denied",
        MisuseRule::NewGroups => "asked for another group",
    };
    let seconds = rules.window.as_secs();
    format!("{what} {count} times or more within {seconds} s")
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
