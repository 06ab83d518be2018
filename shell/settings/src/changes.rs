//! The differences between two settings, for a reload.

use super::{ListenLimits, ServerSettings, Settings};

/// The differences between two settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsChanges {
    /// New servers.
    pub added: Vec<String>,
    /// Removed servers.
    pub removed: Vec<String>,
    /// Servers with changed settings.
    pub changed: Vec<String>,
    /// Other keys that differ and take effect immediately.
    pub applied: Vec<&'static str>,
    /// Keys that differ and take effect after a restart of the gateway.
    pub need_restart: Vec<&'static str>,
}

impl SettingsChanges {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Settings {
    /// The differences from newer settings. A policy file may have changed under the same name; the caller
    /// that reads it must detect that.
    #[must_use]
    pub fn changes(&self, new: &Self) -> SettingsChanges {
        let find = |servers: &[ServerSettings], name: &str| {
            servers.iter().find(|it| it.name == name).cloned()
        };
        let mut changes = SettingsChanges::default();
        for server in &new.servers {
            match find(&self.servers, &server.name) {
                None => changes.added.push(server.name.clone()),
                Some(old) if !old.runs_like(server) => changes.changed.push(server.name.clone()),
                Some(_) => {}
            }
        }
        let old = self.servers.iter();
        let gone = old.filter(|it| find(&new.servers, &it.name).is_none());
        changes.removed = gone.map(|it| it.name.clone()).collect();
        changes.need_restart = changed_keys(&[
            ("listen.address", self.listen.address != new.listen.address),
            // New certificates take effect immediately; a change of protocol does not.
            (
                "listen.tls",
                self.listen.tls.is_some() != new.listen.tls.is_some(),
            ),
            (
                "listen.limits",
                ListenLimits {
                    body_within: self.listen.limits.body_within,
                    ..new.listen.limits
                } != self.listen.limits,
            ),
            ("store", self.store != new.store),
            ("traces", self.traces != new.traces),
        ]);
        let both_tls = self.listen.tls.is_some() && new.listen.tls.is_some();
        let rest = |it: &Self| {
            let mut listen = it.listen.clone();
            listen.address = self.listen.address;
            listen.limits = ListenLimits {
                body_within: listen.limits.body_within,
                ..self.listen.limits
            };
            listen.tls = listen.tls.filter(|_| both_tls);
            listen
        };
        changes.applied = changed_keys(&[
            ("listen", rest(self) != rest(new)),
            ("prefix", self.prefix != new.prefix),
            ("separator", self.separator != new.separator),
            (
                "client_attributes",
                self.client_attributes != new.client_attributes,
            ),
            ("page_size", self.page_size != new.page_size),
            ("policy", self.policy != new.policy),
            ("denials", self.denials != new.denials),
            ("identity", self.identity != new.identity),
            ("watch", self.watch != new.watch),
            ("alerts", self.alerts != new.alerts),
            ("misuse", self.misuse != new.misuse),
            ("store_quota", self.store_quota != new.store_quota),
            (
                "sessions",
                self.session_idle != new.session_idle || self.session_limits != new.session_limits,
            ),
            ("drain", self.drain != new.drain),
        ]);
        changes
    }
}

fn changed_keys(keys: &[(&'static str, bool)]) -> Vec<&'static str> {
    let differing = keys.iter().filter(|(_, differs)| *differs);
    differing.map(|(key, _)| *key).collect()
}
