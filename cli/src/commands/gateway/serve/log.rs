//! What is told on standard error while the gateway runs.

use std::collections::BTreeMap;
use std::time::Duration;

use anstream::eprintln;
use jiff::Timestamp;
use serde_json::{Value, json};
use toolwarden_gateway::Gateway;
use toolwarden_gateway::runtime::Running;
use toolwarden_gateway::upstream::Health;
use toolwarden_mcp::masked;
use toolwarden_warden::guard::RequestLog;
use toolwarden_warden::inline::RaisedNotice;
use toolwarden_warden::settings::SettingsChanges;

use crate::args::LogForm;
use crate::ci_escape::in_json;
use crate::style::{self, visible};

/// Tells events in words or in JSON.
#[derive(Debug)]
pub(super) struct Log {
    form: LogForm,
    /// How each server fared when it was last looked at.
    health: BTreeMap<String, Health>,
}

impl Log {
    pub(super) const fn new(form: LogForm) -> Self {
        Self {
            form,
            health: BTreeMap::new(),
        }
    }

    pub(super) fn warn(&self, text: &str) {
        let warning = style::WARNING;
        let told = format!("{warning}Warning{warning:#}: {}", visible(text));
        self.tell("warning", &told, json!({"message": text}));
    }

    pub(super) fn listening(&self, url: &str, about: &str) {
        let told = format!("listening on {url} ({})", visible(about));
        self.tell("listening", &told, json!({"url": url, "about": about}));
    }

    pub(super) fn ending(&self, drain: Duration) {
        let seconds = drain.as_secs_f64();
        let told = format!("ending: calls under way have {seconds} s");
        self.tell("ending", &told, json!({"drain_s": seconds}));
    }

    /// Tells the end, and of sessions that were open.
    pub(super) fn ended(&self, running: &Running, cut: usize) {
        let guard = running.gateway.guard();
        for open in guard.sessions() {
            if let Some(session) = guard.request_log(&open.principal, &open.session) {
                self.session(&session);
            }
        }
        let told = match cut {
            0 => "ended".to_owned(),
            1 => "ended; 1 connection was cut".to_owned(),
            cut => format!("ended; {cut} connections were cut"),
        };
        self.tell("ended", &told, json!({"cut": cut}));
    }

    /// Tells what one session asked for, saw and did.
    pub(super) fn session(&self, session: &RequestLog) {
        if self.form == LogForm::Json {
            self.tell("session", "", session.document());
        }
    }

    pub(super) fn alert(&self, alert: &RaisedNotice) {
        let (bad, dim) = (style::ERROR, style::DIM);
        let told = format!(
            "{bad}drift{bad:#} {} of {}: {}: {} {dim}(alert {}){dim:#}",
            visible(&alert.tool),
            visible(&alert.server),
            alert.class.as_str(),
            visible(&alert.summary),
            alert.id,
        );
        let members = json!({
            "server": alert.server,
            "tool": alert.tool,
            "class": alert.class.as_str(),
            "severity": alert.severity.as_str(),
            "message": alert.summary,
            "alert": alert.id,
        });
        self.tell("drift", &told, members);
    }

    pub(super) fn reloaded(&self, changes: &SettingsChanges) {
        let mut parts = Vec::new();
        let lists = [
            ("added", &changes.added),
            ("changed", &changes.changed),
            ("removed", &changes.removed),
        ];
        for (word, servers) in lists {
            if !servers.is_empty() {
                parts.push(format!("{word} {}", servers.join(", ")));
            }
        }
        if !changes.taken_over.is_empty() {
            parts.push(changes.taken_over.join(", "));
        }
        let what = if parts.is_empty() {
            "nothing that the settings themselves say; policy and other files were read again"
                .to_owned()
        } else {
            parts.join("; ")
        };
        let told = format!("taken over: {}", visible(&what));
        let members = json!({
            "added": changes.added,
            "changed": changes.changed,
            "removed": changes.removed,
            "taken_over": changes.taken_over,
            "need_restart": changes.need_restart,
        });
        self.tell("reloaded", &told, members);
        if self.form == LogForm::Text && !changes.need_restart.is_empty() {
            let keys = changes.need_restart.join(", ");
            self.warn(&format!(
                "{keys}: changed, and taken over with the next start"
            ));
        }
    }

    pub(super) fn refused(&self, why: &str) {
        let bad = style::ERROR;
        let lines: Vec<String> = why.lines().map(visible).collect();
        let told = format!(
            "{bad}not taken over{bad:#}, what is in force stays:\n    {}",
            lines.join("\n    ")
        );
        self.tell("refused", &told, json!({"message": why}));
    }

    /// Tells of servers that fare otherwise than before.
    pub(super) fn health(&mut self, gateway: &Gateway) {
        let mut now = BTreeMap::new();
        for upstream in gateway.upstreams() {
            let (name, status) = (upstream.name().to_owned(), upstream.status());
            let before = self.health.get(&name).copied();
            let failing = |it| matches!(it, Health::Down | Health::Failed);
            let why = status.last_error.map(|it| it.text).unwrap_or_default();
            let (word, told) = (status.health.as_str(), visible(&name));
            let members = json!({"server": name, "health": word, "message": why});
            if failing(status.health) && before != Some(status.health) {
                let bad = style::ERROR;
                let why = visible(&why.lines().collect::<Vec<_>>().join(" / "));
                let told = format!("{bad}{word}{bad:#} {told}: {why}");
                self.tell("server", &told, members);
            } else if before.is_some_and(failing) && status.health == Health::Up {
                // The error belongs to what was before.
                let members = json!({"server": name, "health": word, "previous_error": why});
                self.tell("server", &format!("{told} answers again"), members);
            }
            // What is tried again and fails again is no news.
            let known = match (before, status.health) {
                (Some(before), Health::Starting | Health::Idle) if failing(before) => before,
                (_, health) => health,
            };
            now.insert(name, known);
        }
        self.health = now;
    }

    fn tell(&self, event: &str, told: &str, members: Value) {
        if self.form == LogForm::Text {
            eprintln!("{}", masked(told));
            return;
        }
        let mut line = json!({
            "schema": "toolwarden/serve/event/v1",
            "at": format!("{:.3}", Timestamp::now()),
            "event": event,
        });
        if let (Value::Object(line), Value::Object(members)) = (&mut line, members) {
            line.extend(members);
        }
        eprintln!("{}", in_json(masked(&line.to_string()).into()));
    }
}
