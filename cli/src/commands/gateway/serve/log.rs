//! The log on standard error while the gateway runs.

use std::collections::BTreeMap;
use std::time::Duration;

use anstream::eprintln;
use jiff::Timestamp;
use serde_json::{Value, json};
use toolwarden_drift::ToolwatchSeverity;
use toolwarden_gateway::Gateway;
use toolwarden_gateway::runtime::RunningGateway;
use toolwarden_gateway::upstream::UpstreamHealth;
use toolwarden_live_guard::RequestLog;
use toolwarden_mcp::mask_secrets;
use toolwarden_settings::SettingsChanges;
use toolwarden_watch::inline::WatchAlert;

use crate::args::LogFormat;
use crate::ci_escape::escape_json;
use crate::style::{self, escape_controls};

/// Tells events in words or in JSON.
#[derive(Debug)]
pub(super) struct ServeLog {
    format: LogFormat,
    /// The status of each server at the last poll.
    health: BTreeMap<String, UpstreamHealth>,
}

impl ServeLog {
    pub(super) const fn new(format: LogFormat) -> Self {
        Self {
            format,
            health: BTreeMap::new(),
        }
    }

    pub(super) fn warn(&self, text: &str) {
        let warning = style::WARNING;
        let told = format!("{warning}Warning{warning:#}: {}", escape_controls(text));
        self.write_event("warning", &told, json!({"message": text}));
    }

    pub(super) fn log_listening(&self, url: &str, about: &str) {
        let told = format!("listening on {url} ({})", escape_controls(about));
        self.write_event("listening", &told, json!({"url": url, "about": about}));
    }

    pub(super) fn log_shutdown(&self, drain: Duration) {
        let seconds = drain.as_secs_f64();
        let told = format!("shutting down: calls in flight have {seconds} s to finish");
        self.write_event("ending", &told, json!({"drain_s": seconds}));
    }

    /// Tells the end, and of sessions that were open.
    pub(super) fn log_end(&self, running: &RunningGateway, cut: usize) {
        let guard = running.gateway.guard();
        for open in guard.sessions() {
            if let Some(session) = guard.request_log(&open.principal, &open.session) {
                self.log_session(&session);
            }
        }
        let told = match cut {
            0 => "ended".to_owned(),
            1 => "ended; 1 connection was cut".to_owned(),
            cut => format!("ended; {cut} connections were cut"),
        };
        self.write_event("ended", &told, json!({"cut": cut}));
    }

    /// Tells what one session asked for, saw and did.
    pub(super) fn log_session(&self, session: &RequestLog) {
        if self.format == LogFormat::Json {
            self.write_event("session", "", session.document());
        }
    }

    pub(super) fn log_alert(&self, alert: &WatchAlert) {
        let (bad, dim) = (style::ERROR, style::DIM);
        let told = format!(
            "{bad}drift{bad:#} {} of {}: {}: {} {dim}(alert {}){dim:#}",
            escape_controls(&alert.tool),
            escape_controls(&alert.server),
            alert.class.as_str(),
            escape_controls(&alert.summary),
            alert.id,
        );
        let members = json!({
            "server": alert.server,
            "tool": alert.tool,
            "class": alert.class.as_str(),
            "severity": ToolwatchSeverity::from(alert.severity).as_str(),
            "message": alert.summary,
            "alert": alert.id,
        });
        self.write_event("drift", &told, members);
    }

    pub(super) fn log_reload(&self, changes: &SettingsChanges) {
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
        if !changes.applied.is_empty() {
            parts.push(changes.applied.join(", "));
        }
        let what = if parts.is_empty() {
            "no setting changed; policy and other files were read again".to_owned()
        } else {
            parts.join("; ")
        };
        let told = format!("reloaded: {}", escape_controls(&what));
        let members = json!({
            "added": changes.added,
            "changed": changes.changed,
            "removed": changes.removed,
            "taken_over": changes.applied,
            "need_restart": changes.need_restart,
        });
        self.write_event("reloaded", &told, members);
        if self.format == LogFormat::Text && !changes.need_restart.is_empty() {
            let keys = changes.need_restart.join(", ");
            self.warn(&format!("{keys}: changed; a restart is needed"));
        }
    }

    pub(super) fn log_reload_error(&self, why: &str) {
        let bad = style::ERROR;
        let lines: Vec<String> = why.lines().map(escape_controls).collect();
        let told = format!(
            "{bad}not reloaded{bad:#}; the settings in force stay:\n    {}",
            lines.join("\n    ")
        );
        self.write_event("refused", &told, json!({"message": why}));
    }

    /// Tells of servers that fare otherwise than before.
    pub(super) fn log_health_changes(&mut self, gateway: &Gateway) {
        let mut now = BTreeMap::new();
        for upstream in gateway.upstreams() {
            let (name, status) = (upstream.name().to_owned(), upstream.status());
            let before = self.health.get(&name).copied();
            let failing = |it| matches!(it, UpstreamHealth::Down | UpstreamHealth::Failed);
            let why = status.last_error.map(|it| it.text).unwrap_or_default();
            let (word, told) = (status.health.as_str(), escape_controls(&name));
            let members = json!({"server": name, "health": word, "message": why});
            if failing(status.health) && before != Some(status.health) {
                let bad = style::ERROR;
                let why = escape_controls(&why.lines().collect::<Vec<_>>().join(" / "));
                let told = format!("{bad}{word}{bad:#} {told}: {why}");
                self.write_event("server", &told, members);
            } else if before.is_some_and(failing) && status.health == UpstreamHealth::Up {
                // The error belongs to what was before.
                let members = json!({"server": name, "health": word, "previous_error": why});
                self.write_event("server", &format!("{told} answers again"), members);
            }
            // A retry that fails again is not logged again.
            let known = match (before, status.health) {
                (Some(before), UpstreamHealth::Starting | UpstreamHealth::Idle)
                    if failing(before) =>
                {
                    before
                }
                (_, health) => health,
            };
            now.insert(name, known);
        }
        self.health = now;
    }

    fn write_event(&self, event: &str, told: &str, members: Value) {
        if self.format == LogFormat::Text {
            eprintln!("{}", mask_secrets(told));
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
        eprintln!("{}", escape_json(mask_secrets(&line.to_string()).into()));
    }
}
